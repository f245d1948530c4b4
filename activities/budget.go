package activities

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/protocol"
)

// unlimited is for engines without budgets.
type unlimited struct{}

func (unlimited) Priced(context.Context, string, string) (bool, error) { return false, nil }

func (unlimited) Charge(_ context.Context, _ jig.Call, run func() jig.ToolResult) jig.ToolResult {
	return run()
}

func (unlimited) Resume(context.Context, string, string) (string, error) { return "", nil }

func (unlimited) Periods() []string { return nil }

func (unlimited) Limits(context.Context, string, []budget.Used) (string, []protocol.BudgetState, error) {
	return "", []protocol.BudgetState{}, nil
}

// Usage returns what a tenant's sessions used, and how much of its budgets is used.
func (a *Activities) Usage(ctx context.Context, in protocol.UsageRequest) (protocol.Usage, error) {
	rows, err := a.Store.Usage(ctx, in)
	if err != nil {
		return protocol.Usage{}, temporalError(err)
	}
	used, err := a.Store.BudgetCounters(ctx, in.Tenant, a.Budgets.Periods(), in.SessionID)
	if err != nil {
		return protocol.Usage{}, temporalError(err)
	}
	usage := protocol.Usage{Since: in.Since.UTC(), Rows: rows}
	usage.Currency, usage.Budgets, err = a.Budgets.Limits(ctx, in.Tenant, used)
	return usage, temporalError(err)
}
