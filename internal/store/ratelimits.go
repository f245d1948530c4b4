package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ratelimit"
)

// rateColumns are buckets as columns.
type rateColumns struct {
	documents, limits, keys []string
	times                   []time.Time
}

func (c *rateColumns) add(b ratelimit.Bucket) {
	c.documents, c.limits, c.keys = append(c.documents, b.Document), append(c.limits, b.Limit), append(c.keys, text(b.Key))
}

// AskRateLimits lets an attempt of a call, or a session, begin if it fits into all limits that concern it, and counts it; see [ratelimit.Decide]. Otherwise the
// call keeps its place in the queues of the limits that do not let it begin, as long as it asks again. That it begins to wait is an event.
func (db *DB) AskRateLimits(ctx context.Context, r ratelimit.Request) (answer ratelimit.Answer, err error) {
	slices.SortFunc(r.Claims, func(a, b ratelimit.Claim) int {
		return slices.Compare([]string{a.Document, a.Limit, a.Key}, []string{b.Document, b.Limit, b.Key})
	})
	err = db.transact(ctx, r.Tenant, func(t *tx) error {
		states, err := t.rateStates(ctx, r)
		if err != nil {
			return err
		}
		verdict := ratelimit.Decide(r, states)
		answer = verdict.Answer
		if answer.Wait == 0 || answer.Expired {
			err = t.rateLeave(ctx, r, states, answer)
		} else {
			err = t.rateWait(ctx, r, states, verdict)
		}
		if state(err) == stateForeignKeyViolation {
			return noSession(r.SessionID)
		}
		return err
	})
	return answer, err
}

// rateStates locks the buckets of a request and reads their state.
func (t *tx) rateStates(ctx context.Context, r ratelimit.Request) ([]ratelimit.State, error) {
	var all rateColumns
	var locked []string
	var states []ratelimit.State
	for _, c := range r.Claims {
		all.add(c.Bucket)
	}
	t.queue("RateBucketsEnsure", t.tenant, all.documents, all.limits, all.keys)
	column(t.queue("RateBucketsLock", t.tenant, all.documents, all.limits, all.keys), &locked)
	t.queue("RateCallsEnded", t.tenant, all.documents, all.limits, all.keys)
	list(t.queue("RateStates", t.tenant, all.documents, all.limits, all.keys, r.SessionID, r.CallID), &states)
	if err := t.flush(ctx); err != nil {
		return nil, err
	}
	if len(locked) != len(r.Claims) || len(states) != len(r.Claims) { // the sweeper has just deleted one
		return nil, jig.Errorf(jig.CodeUnavailable, "a rate limit is being cleaned up")
	}
	return states, nil
}

// rateLeave ends the waiting of a call, which begins unless it has waited too long.
func (t *tx) rateLeave(ctx context.Context, r ratelimit.Request, states []ratelimit.State, a ratelimit.Answer) error {
	if slices.ContainsFunc(states, func(s ratelimit.State) bool { return !s.Since.IsZero() }) {
		t.queue("RateCallsLeave", t.tenant, r.SessionID, r.CallID)
		waited := time.Duration(0)
		for _, s := range states {
			if !s.Since.IsZero() {
				waited = max(waited, s.Now.Sub(s.Since))
			}
		}
		t.observe(func(o Observer) { o.CallReleased(waited) })
	}
	if a.Expired {
		return t.commit(ctx)
	}
	var taken, running rateColumns
	for i, c := range r.Claims {
		if c.Rate > 0 {
			taken.add(c.Bucket)
			taken.times = append(taken.times, c.Taken(states[i]))
		}
		if c.Concurrency > 0 {
			running.add(c.Bucket)
		}
	}
	if len(taken.keys) > 0 {
		t.queue("RateBucketsTake", t.tenant, taken.documents, taken.limits, taken.keys, taken.times)
	}
	if len(running.keys) > 0 {
		t.queue("RateCallsRun", t.tenant, r.SessionID, r.CallID, running.documents, running.limits, running.keys, r.Fence)
	}
	return t.commit(ctx)
}

// rateWait keeps a call's places in the queues of the limits that do not let it begin.
func (t *tx) rateWait(ctx context.Context, r ratelimit.Request, states []ratelimit.State, v ratelimit.Verdict) error {
	var blocks, raised rateColumns
	began := true
	for i, c := range r.Claims {
		if v.Blocks[i] {
			blocks.add(c.Bucket)
		}
		if next := c.Next(states[i]); c.Rate > 0 && next.Before(states[i].Next) { // the limit was stricter before
			raised.add(c.Bucket)
			raised.times = append(raised.times, next)
		}
		began = began && states[i].Since.IsZero()
	}
	if !began && len(r.Claims) > len(blocks.keys) {
		t.queue("RateCallsRest", t.tenant, r.SessionID, r.CallID, blocks.documents, blocks.limits, blocks.keys)
	}
	if len(raised.keys) > 0 {
		t.queue("RateBucketsTake", t.tenant, raised.documents, raised.limits, raised.keys, raised.times)
	}
	t.queue("RateCallsWait", t.tenant, r.SessionID, r.CallID, blocks.documents, blocks.limits, blocks.keys, text(v.Why), v.Lives.Seconds())
	l := &log{}
	if began {
		b := r.Claims[slices.Index(v.Blocks, true)].Bucket
		t.observe(func(o Observer) { o.CallHeld(r.Tenant, b.Document, b.Limit) })
		event := jig.EventToolHeld
		if r.CallID == "" {
			event = jig.EventSessionHeld
		}
		l.add(jig.Event{Type: event, Pass: r.Pass, CallID: r.CallID, Tool: r.Tool, Data: details{"reason": v.Why}.json()})
	}
	return t.finish(ctx, l, r.SessionID)
}

// rateWaitingRow is a row of the query RateWaiting.
type rateWaitingRow struct{ CallID, Reason string }

// heldBack adds to a view why its calls, or the session itself, wait for a rate limit.
func heldBack(v *jig.SessionView, waiting []rateWaitingRow) {
	for _, w := range waiting {
		if w.CallID == "" {
			v.Held = append(v.Held, w.Reason)
			continue
		}
		i := slices.IndexFunc(v.Calls, func(c jig.CallView) bool { return c.Call == w.CallID })
		if i >= 0 && !v.Calls[i].Status.Final() {
			v.Calls[i].Summary = strings.TrimSpace("waits: " + w.Reason)
		}
	}
}

// ForgetRates deletes at most limit buckets and as many places in queues, of all tenants, that have no effect any more. It returns how many it
// deleted.
func (db *DB) ForgetRates(ctx context.Context, limit int) (int64, error) {
	gone, err := ask(ctx, db, "", value[int64], "RatesForget", limit)
	return orZero(gone), err
}
