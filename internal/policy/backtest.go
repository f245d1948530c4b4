package policy

import (
	"context"

	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// Backtest decides recorded calls, as of the time when they were made, both with the current policies and with others in their place. It
// returns one result for each call, in order. A call whose tool is unknown (nil) gets no verdict. Backtest returns an error only if ctx ends.
func Backtest(ctx context.Context, inForce, instead Tenant, calls []ledger.RecordedCall) ([]protocol.BacktestResult, error) {
	results := make([]protocol.BacktestResult, len(calls))
	for i, c := range calls {
		if err := ctx.Err(); err != nil {
			return nil, err //nolint:wrapcheck // the error of the caller's context
		}
		r := protocol.BacktestResult{
			SessionID: c.Call.SessionID, Call: c.Call.ID, Tool: c.Call.Tool, At: c.Call.CreatedAt,
			Recorded: c.Call.Verdict, Status: c.Call.Status,
		}
		if c.Tool != nil {
			x := instead.Explain(ctx, *c.Tool, c.Call, c.Session, c.Call.CreatedAt)
			r.Now = inForce.Explain(ctx, *c.Tool, c.Call, c.Session, c.Call.CreatedAt).Verdict
			r.New = x.Verdict
			for _, spoken := range x.Spoken {
				r.Rules = append(r.Rules, spoken.Policy+"/"+spoken.Rule)
			}
			if len(x.Spoken) > 0 {
				r.Reason = x.Spoken[0].Reason
			}
		}
		results[i] = r
	}
	return results, nil
}

// With returns a copy of the set with r added. If the set has a document with the same name, r replaces it.
func (s Set) With(r *Rules) Set {
	list := []*Rules{r}
	for _, other := range s {
		if other.Name() != r.Name() {
			list = append(list, other)
		}
	}
	return NewSet(list...)
}
