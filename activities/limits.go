package activities

import (
	"cmp"
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/ratelimit"
)

// noRateLimits is for engines without rate limits.
type noRateLimits struct{}

func (noRateLimits) Limited(context.Context, string, string) (bool, error) { return false, nil }

func (noRateLimits) Ask(context.Context, jig.Session, jig.Call, bool) (ratelimit.Answer, error) {
	return ratelimit.Answer{}, nil
}

// waitsHere is how long an attempt waits for rate limits on its worker. A call that must wait longer is handed back to Temporal, so that it
// occupies no worker.
const waitsHere = time.Second

// limited asks the rate limits whether an attempt of a call may begin. ended is set if the call must wait, or has waited too long and failed.
func (a *Activities) limited(ctx context.Context, session jig.Session, call jig.Call, attempt string) (ended *unclaimed, err error) {
	concerned, err := a.RateLimits.Limited(ctx, call.Tenant, call.Tool)
	if err != nil || !concerned {
		return nil, err
	}
	room := time.Duration(0)
	if activity.IsActivity(ctx) && !activity.GetInfo(ctx).IsLocalActivity {
		room = waitsHere
	}
	for {
		var answer ratelimit.Answer
		err := retryWhileUnavailable(ctx, func() (err error) {
			answer, err = a.RateLimits.Ask(ctx, session, call, attempt == frameAttempt)
			return err
		})
		switch {
		case err != nil:
			return nil, err
		case answer.Expired:
			return a.failWaited(ctx, call, answer.Why)
		case answer.Wait == 0:
			return nil, nil
		case answer.Wait > room:
			stuck, err := a.Store.HeldBack(ctx, call.Tenant, call.SessionID, call.ID)
			return &unclaimed{ran: Ran{State: call.Status, Paused: true, Held: answer.Why, Stuck: stuck, again: answer.Wait}}, err
		}
		room -= answer.Wait
		select {
		case <-ctx.Done():
			return nil, jig.Errorf(jig.CodeUnavailable, "the attempt was interrupted while call %s waited for a rate limit", call.ID)
		case <-time.After(answer.Wait):
		}
	}
}

// mayStart asks the rate limits whether a session may begin. A session that another one starts has been asked for as a call.
func (a *Activities) mayStart(ctx context.Context, session jig.Session) (answer ratelimit.Answer, err error) {
	if session.ParentID != "" {
		return answer, nil
	}
	concerned, err := a.RateLimits.Limited(ctx, session.Tenant, "")
	if err != nil || !concerned {
		return answer, err
	}
	err = retryWhileUnavailable(ctx, func() (err error) {
		answer, err = a.RateLimits.Ask(ctx, session, jig.Call{Tenant: session.Tenant, SessionID: session.ID, Input: session.Input}, false)
		return err
	})
	return answer, err
}

// StartsIn returns how long a session should wait before it asks again whether it may begin; 0 if it may.
func (a *Activities) StartsIn(ctx context.Context, in protocol.SessionRef) (time.Duration, error) {
	answer, err := a.starts(ctx, in)
	return answer.Wait, temporalError(err)
}

// AwaitStart succeeds once no rate limit holds a session back any more. Until then each attempt fails, and Temporal retries it when the turn of
// the session should come.
func (a *Activities) AwaitStart(ctx context.Context, in protocol.SessionRef) error {
	answer, err := a.starts(ctx, in)
	if err != nil || answer.Wait == 0 {
		return temporalError(err)
	}
	return pausedError("the session", answer.Why, answer.Wait)
}

func (a *Activities) starts(ctx context.Context, in protocol.SessionRef) (ratelimit.Answer, error) {
	session, err := a.Store.Session(ctx, in.Tenant, in.SessionID)
	if err != nil {
		return ratelimit.Answer{}, err
	}
	return a.mayStart(ctx, session)
}

// failWaited fails a call that has waited too long for a rate limit.
func (a *Activities) failWaited(ctx context.Context, call jig.Call, why string) (*unclaimed, error) {
	fresh := call
	refuse(&fresh, ratelimit.Expired(why))
	stored, err := a.Store.Readmit(ctx, call, fresh, nil)
	if err != nil {
		return nil, err
	}
	if stored.Status == jig.CallWaiting || stored.Status == jig.CallUnknown {
		ran, err := a.asked(ctx, stored)
		return &unclaimed{ran: ran}, err
	}
	return &unclaimed{ran: result(stored), again: !stored.Status.Final()}, nil
}

// retryDelay returns how long a call that is held back waits before it is tried again.
func (r Ran) retryDelay() time.Duration { return cmp.Or(r.again, pauseRetry) }

// noBudgets is for engines without budgets.
type noBudgets struct{}

func (noBudgets) Priced(context.Context, string, string) (bool, error) { return false, nil }

func (noBudgets) Charge(_ context.Context, _ jig.Call, run func() jig.ToolResult) jig.ToolResult {
	return run()
}

func (noBudgets) Resume(context.Context, string, string) (string, error) { return "", nil }

func (noBudgets) Periods() []string { return nil }

func (noBudgets) Limits(context.Context, string, []budget.Used) (string, []protocol.BudgetState, error) {
	return "", []protocol.BudgetState{}, nil
}

// Usage returns what a tenant's sessions used, and how much of its budgets is used.
func (a *Activities) Usage(ctx context.Context, in protocol.UsageRequest) (protocol.Usage, error) {
	usage, err := ReadUsage(ctx, a.Store, a.Budgets, in)
	return usage, temporalError(err)
}

// ReadUsage returns what a tenant's sessions used, and how much of its budgets is used.
func ReadUsage(ctx context.Context, store usageStore, budgets budgetMeter, in protocol.UsageRequest) (protocol.Usage, error) {
	rows, err := store.Usage(ctx, in)
	if err != nil {
		return protocol.Usage{}, err
	}
	used, err := store.BudgetCounters(ctx, in.Tenant, budgets.Periods(), in.SessionID)
	if err != nil {
		return protocol.Usage{}, err
	}
	usage := protocol.Usage{Since: in.Since.UTC(), Rows: rows}
	usage.Currency, usage.Budgets, err = budgets.Limits(ctx, in.Tenant, used)
	return usage, err
}
