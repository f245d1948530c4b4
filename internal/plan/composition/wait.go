package composition

import (
	"context"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/duration"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/plan"
)

// maxWait is the longest time that a wait step may wait.
const maxWait = 3650 * 24 * time.Hour

func (r *run) wait(ctx context.Context, n *node, st *stepState, sc *scope, path string) (outcome, error) {
	if !st.Begun {
		until, problem, err := r.waitEnd(ctx, n, sc)
		if problem != nil || err != nil {
			return r.broken(n, path, problem, err)
		}
		st.Begun, st.Until = true, until
		if r.Now() < until {
			r.waiting(n, st, path)
		}
	}
	if r.Now() < st.Until {
		return outcome{}, nil
	}
	return outcome{over: true, mark: markNothing}, nil
}

// waitEnd computes when a wait ends, in milliseconds since 1970.
func (r *run) waitEnd(ctx context.Context, n *node, sc *scope) (int64, *jig.Error, error) {
	if n.action == actWait {
		text, problem, err := r.text(ctx, n.wait, sc)
		if problem != nil || err != nil {
			return 0, problem, err
		}
		d, err := duration.Parse(text)
		if err != nil || d > maxWait {
			problem := jig.Errorf(jig.CodeInvalidInput, "%q is not a length of time", jig.Cut(text, 100)).WithHint(`e.g. "90s", "48h" or "3d", at most 3650d`)
			return 0, r.plan.Located(n.wait.at, problem), nil
		}
		return r.After(d), nil, nil
	}
	v, problem, err := r.value(ctx, n.until, sc)
	if problem != nil || err != nil {
		return 0, problem, err
	}
	text, ok := v.(string)
	at, err := time.Parse(time.RFC3339Nano, text)
	if !ok || err != nil {
		problem := jig.Errorf(jig.CodeInvalidInput, "this does not evaluate to a point in time").WithHint("e.g. timestamp('2026-01-31T09:00:00Z') or now + duration('1h')")
		return 0, r.plan.Located(n.until.at, problem), nil
	}
	if at.Sub(r.At.Now) > maxWait {
		return 0, r.plan.Located(n.until.at, jig.Errorf(jig.CodeInvalidInput, "%s is more than ten years away", text)), nil
	}
	return r.After(at.Sub(r.At.Now)), nil, nil
}

// waitFor takes the oldest event that fits and that no other wait has taken. It checks each event once.
func (r *run) waitFor(ctx context.Context, n *node, st *stepState, sc *scope, path string) (outcome, error) {
	begins := !st.Begun
	if begins {
		if st.Begun = true; n.waitFor.timeout > 0 {
			st.Until = r.After(n.waitFor.timeout)
		}
	}
	for _, e := range r.At.Events {
		if e.ID <= st.Seen || e.Name != n.waitFor.event || slices.Contains(r.st.Taken, e.ID) {
			continue
		}
		fits, problem, err := r.fits(ctx, n, e, sc)
		if problem != nil || err != nil {
			return r.broken(n, path, problem, err)
		}
		if st.Seen = e.ID; !fits {
			continue
		}
		r.take(e)
		m, err := r.keepResult(n, path, jig.ToolResult{Success: true, Data: plan.OrNull(e.Data)})
		return outcome{over: true, mark: m}, err
	}
	if st.Until != 0 && r.Now() >= st.Until {
		return r.broken(n, path, jig.Errorf(jig.CodeTimeout, "no event %q came within %s", n.waitFor.event, n.waitFor.timeout), nil)
	}
	if begins {
		r.waiting(n, st, path)
	}
	return outcome{}, nil
}

// waiting writes the event that a step begins to wait.
func (r *run) waiting(n *node, st *stepState, path string) {
	w, _ := leaf{n: n, st: st, path: path}.wait()
	w.Call = "" // the event names it
	if data, err := jsontext.Encode(w); err == nil {
		r.Move.Events = append(r.Move.Events, jig.Event{Type: jig.EventStepWaiting, CallID: path, Data: data})
	}
}

// fits reports whether an event meets the condition of a wait.
func (r *run) fits(ctx context.Context, n *node, e Event, sc *scope) (bool, *jig.Error, error) {
	if n.waitFor.when == nil {
		return true, nil, nil
	}
	v, err := expr.From(map[string]any{"name": e.Name, "data": plan.OrNull(e.Data)})
	if err != nil { // the event's data is not JSON
		return false, nil, nil //nolint:nilerr // such an event fits no wait
	}
	r.event = &v
	is, problem, err := r.boolean(ctx, n.waitFor.when, sc)
	r.event = nil
	return is, problem, err
}

// take records that an event is taken. It forgets taken events that the situation no longer lists.
func (r *run) take(e Event) {
	r.st.Taken = slices.DeleteFunc(r.st.Taken, func(id int64) bool {
		return !slices.ContainsFunc(r.At.Events, func(e Event) bool { return e.ID == id })
	})
	r.st.Taken = append(r.st.Taken, e.ID)
	r.Move.Consumed = append(r.Move.Consumed, e.ID)
}
