package worker

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/spec"
)

// Backtest evaluates recorded calls twice: with the tenant's current policies, and with those policies plus the given document, which
// replaces the policy of the same name if there is one. It returns CONFLICT if a current policy cannot be read, because then there is
// nothing to compare with.
func (p *policies) Backtest(ctx context.Context, tenant, document string, calls []ledger.RecordedCall) ([]protocol.BacktestResult, error) {
	doc, problems := spec.Load("the document", []byte(document))
	if err := problems.OrNil(); err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the document cannot be read: %w", err).WithField("document").
			WithHint("`jig validate` says what is wrong, and where")
	}
	if doc.Policy == nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the document describes no policy").WithField("document").WithHint("needed: kind: policy")
	}
	tried, err := policy.Compile(*doc.Policy, doc.Version)
	if err != nil {
		return nil, err
	}
	of, err := p.of(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if len(of.policies.Unreadable) > 0 {
		return nil, jig.Errorf(jig.CodeConflict, "there is nothing to compare with: %s", of.policies.Unreadable[0].Unreadable()).
			WithHint("register a version of that policy that can be read first")
	}
	return policy.Backtest(ctx, of.policies, of.policies.With(tried), calls)
}
