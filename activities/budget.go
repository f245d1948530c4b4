package activities

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/protocol"
)

// Budgets charges calls to the budgets of tenants. The Model asks models within the same budgets.
type Budgets interface {
	// Priced reports whether the calls of a tool have a price, so that each must be reserved before it runs.
	Priced(ctx context.Context, tenant, tool string) (bool, error)
	// Charge runs an attempt of a call and charges its price. If the budget does not allow it, the result says that nothing happened.
	Charge(ctx context.Context, call jig.Call, run func() jig.ToolResult) jig.ToolResult
	// Resume lets a session go on that a budget has paused, if there is room again. Otherwise it returns why the session waits; "" if it does
	// not wait for a budget.
	Resume(ctx context.Context, tenant, session string) (held string, err error)
	// Periods returns the periods that limits count now. Limits adds the limits to their counters.
	Periods() []string
	Limits(ctx context.Context, tenant string, used []budget.Used) (currency string, states []protocol.BudgetState, err error)
}

// LimitStore reads what was used, releases what dead workers reserved, and forgets what rate limits do not need any more.
type LimitStore interface {
	// Usage returns what a tenant's sessions used, grouped and filtered as requested; at most 500 rows.
	Usage(ctx context.Context, r protocol.UsageRequest) ([]protocol.UsageRow, error)
	// BudgetCounters returns counters of the given periods: those with the given scope, or all if it is empty; at most 500.
	BudgetCounters(ctx context.Context, tenant string, periods []string, scope string) ([]budget.Used, error)
	// ReleaseBudgets releases at most limit reservations, of all tenants, that were not settled in time. It returns how many it released.
	ReleaseBudgets(ctx context.Context, limit int) (int64, error)
	// ForgetRates deletes at most limit rows of each kind, of all tenants. It returns how many it deleted.
	ForgetRates(ctx context.Context, limit int) (int64, error)
}

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

// releasedAtOnce limits how many reservations one sweep releases.
const releasedAtOnce = 1000

// releaseBudgets releases what dead workers reserved.
func (a *Activities) releaseBudgets(ctx context.Context) error {
	if a.store.LimitStore == nil {
		return nil
	}
	_, err := a.store.ReleaseBudgets(ctx, releasedAtOnce)
	return err
}

// Usage returns what a tenant's sessions used, and how much of its budgets is used.
func (a *Activities) Usage(ctx context.Context, in protocol.UsageRequest) (protocol.Usage, error) {
	rows, err := a.store.Usage(ctx, in)
	if err != nil {
		return protocol.Usage{}, temporalError(err)
	}
	used, err := a.store.BudgetCounters(ctx, in.Tenant, a.budgets.Periods(), in.SessionID)
	if err != nil {
		return protocol.Usage{}, temporalError(err)
	}
	usage := protocol.Usage{Since: in.Since.UTC(), Rows: rows}
	usage.Currency, usage.Budgets, err = a.budgets.Limits(ctx, in.Tenant, used)
	return usage, temporalError(err)
}
