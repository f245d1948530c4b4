package policy

import (
	"context"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/duration"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/spec"
)

// EngineOptions configure an engine.
type EngineOptions struct {
	// Documents is required.
	Documents bundle.Documents
	// Settings returns a tenant's settings, which name its owners. Required.
	Settings func(ctx context.Context, tenant string) (tenancy.Settings, error)
	// Failed is called for each rule that could not be evaluated; default: nothing.
	Failed func(tenant, policy, rule string)
}

// Engine decides calls by the current policies of their tenant. It compiles each set of versions once, and looks for changes once a second.
// It is safe for concurrent use.
type Engine struct {
	options EngineOptions
	tenants *bundle.Current[Tenant]
}

// NewEngine returns an engine.
func NewEngine(o EngineOptions) *Engine {
	if o.Failed == nil {
		o.Failed = func(string, string, string) {}
	}
	return &Engine{options: o, tenants: bundle.NewCurrent(o.Documents, string(spec.KindPolicy), compileAll)}
}

// Rule returns the verdict on a call, or holds it back; see [Tenant.Decide].
func (e *Engine) Rule(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (Ruling, error) {
	of, err := e.tenants.Of(ctx, session.Tenant)
	if err != nil {
		return Ruling{}, err
	}
	x, err := e.decide(ctx, of, tool, call, session, now)
	for _, applied := range x.Rules {
		if applied.Failed {
			e.options.Failed(session.Tenant, applied.Policy, applied.Rule)
		}
	}
	return x.Ruling, err
}

// Policies lists a tenant's policies by name, including those that cannot be read.
func (e *Engine) Policies(ctx context.Context, tenant string) ([]jig.PolicyState, error) {
	of, err := e.tenants.Of(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return of.States(), nil
}

// Unreadable counts the policies that cannot be read, by tenant. It covers only tenants whose policies have been loaded, and looks again at
// those with such a policy, because it may have been replaced since. A tenant whose policies can all be read again counts 0.
func (e *Engine) Unreadable(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	for tenant, was := range e.tenants.All() {
		if len(was.Unreadable) == 0 {
			continue
		}
		of, err := e.tenants.Of(ctx, tenant)
		if err != nil {
			return nil, err
		}
		counts[tenant] = len(of.Unreadable)
	}
	return counts, nil
}

// Backtest decides recorded calls with the tenant's policies, and again with the given document added to them. The document replaces a policy
// of the same name. It returns CONFLICT if a policy of the tenant cannot be read, because then there is nothing to compare with.
func (e *Engine) Backtest(ctx context.Context, tenant, document string, calls []ledger.RecordedCall) ([]protocol.BacktestResult, error) {
	tried, err := read(document)
	if err != nil {
		return nil, err
	}
	of, err := e.tenants.Of(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if len(of.Unreadable) > 0 {
		return nil, jig.Errorf(jig.CodeConflict, "the policies in force cannot be read, so there is nothing to compare with: %s", of.Unreadable[0].Unreadable()).
			WithHint("first register a version of that policy that the worker can read")
	}
	return Backtest(ctx, of, of.With(tried), calls)
}

// Cases runs the cases of a policy document; see [Test]. A document that cannot be read is INVALID_INPUT.
func (e *Engine) Cases(ctx context.Context, document string, tools func(name string) (jig.Tool, bool)) (protocol.CasesPage, error) {
	rules, err := read(document)
	if err != nil {
		return protocol.CasesPage{}, err
	}
	results := Test(ctx, rules, tools)
	return protocol.CasesPage{OK: !slices.ContainsFunc(results, func(c protocol.CaseResult) bool { return !c.OK }), Cases: results}, nil
}

// Simulate rules on a call by the policies of the session's tenant. A document, which is not registered, takes the place of the policy of the same
// name. One that cannot be read is INVALID_INPUT.
func (e *Engine) Simulate(ctx context.Context, document string, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (protocol.Verdict, error) {
	of, err := e.tenants.Of(ctx, session.Tenant)
	if err != nil {
		return protocol.Verdict{}, err
	}
	if document != "" {
		tried, err := read(document)
		if err != nil {
			return protocol.Verdict{}, err
		}
		of = of.With(tried)
	}
	x, err := e.decide(ctx, of, tool, call, session, now)
	if err != nil {
		return protocol.Verdict{}, err
	}
	return x.Report(tool.Name), nil
}

// Report returns the explanation of the ruling on a call of a tool, as clients get it.
func (x Explanation) Report(tool string) protocol.Verdict {
	v := protocol.Verdict{
		Tool: tool, Verdict: x.Verdict, Reasons: append([]string{}, x.Reasons...), PolicyVersion: x.PolicyVersion, Terms: x.Terms, Held: x.Held,
		Base: protocol.BaseVerdict{Verdict: x.Base.Verdict, Reasons: append([]string{}, x.Base.Reasons...)}, Rules: []protocol.AppliedRule{},
	}
	if x.Expires > 0 {
		v.Expires = duration.Format(x.Expires)
	}
	for _, r := range x.Rules {
		v.Rules = append(v.Rules, r.AppliedRule)
	}
	return v
}

// decide decides a call by policies, on the terms of the tenant's owners for the tools of operators.
func (e *Engine) decide(ctx context.Context, of Tenant, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (Explanation, error) {
	if Operator(tool.Name) {
		settings, err := e.options.Settings(ctx, session.Tenant)
		of.Owners, of.OwnersUnknown = OwnerTerms(settings), err
	}
	return of.Decide(ctx, tool, call, session, now)
}

// read compiles a policy document that is not registered.
func read(document string) (*Rules, error) {
	doc, problems := spec.Load(spec.Unnamed, []byte(document))
	if err := problems.OrNil(); err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the document cannot be read: %w", err).WithField("document").
			WithHint("`jig validate` says what is wrong, and where")
	}
	if doc.Policy() == nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the document is not a policy").WithField("document").WithHint("write a document with kind: policy")
	}
	return Compile(*doc.Policy(), doc.Version)
}

// compileAll compiles the policies of a tenant. It keeps those that cannot be read apart.
func compileAll(_ context.Context, _ string, documents []bundle.StoredDocument) (of Tenant, err error) {
	list := make([]*Rules, 0, len(documents))
	for _, d := range documents {
		read, err := spec.LoadPolicy(d.Name, d.Body)
		if err != nil {
			of.Unreadable = append(of.Unreadable, Unreadable(d.Name, d.Version, err))
			continue
		}
		rules, err := Compile(read, d.Version)
		if err != nil {
			of.Unreadable = append(of.Unreadable, Unreadable(d.Name, d.Version, err))
			continue
		}
		list = append(list, rules)
	}
	of.Policies = NewSet(list...)
	return of, nil
}
