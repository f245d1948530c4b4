package store

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
)

// Observer is told what this process has stored, once for each change and only after its transaction was committed. A request that changes
// nothing, because an earlier attempt stored the same, is not reported. Its methods are called on the path of every call and must be quick.
type Observer interface {
	// SessionStarted reports a new session.
	SessionStarted(tenant string)
	// SessionEnded reports a session that has ended. A session that goes on after a message may end again.
	SessionEnded(tenant string, status jig.Status)
	// CallStarted reports that an attempt of a call begins. Attempts count from 1.
	CallStarted(tool string, attempt int)
	// CallEnded reports a call that has its final status. Only its ids, tool, status, result, child and attempt are set and, if an attempt has
	// ended it, the times of that attempt.
	CallEnded(call jig.Call)
	// CallUnknown reports a call whose outcome has become unknown, so that a person is asked what happened. It has the same fields.
	CallUnknown(call jig.Call)
	// CallHeld reports that a call begins to wait for a limit of a document of kind rate_limit.
	CallHeld(tenant, document, limit string)
	// CallReleased reports that a call has stopped waiting for such limits after a while, because it begins or because it has waited too long.
	CallReleased(waited time.Duration)
	// BudgetExhausted reports that a call did not fit into a limit, and what is done about it. budget and limit may be empty.
	BudgetExhausted(tenant, budget, limit, action string)
}

// observe has the observer told about a change when the transaction is committed. tell runs after all statements have been answered.
func (t *tx) observe(tell func(o Observer)) {
	if t.db.options.Observer != nil {
		t.changes = append(t.changes, func(context.Context) { tell(t.db.options.Observer) })
	}
}

// observed reports the changes of a committed transaction.
func (t *tx) observed(ctx context.Context) {
	for _, tell := range t.changes {
		tell(ctx)
	}
	t.changes = nil
}

// observeCalls has calls logged and the observer told when the transaction is committed, if they have a final status or if their outcome is
// unknown. find runs after all statements have been answered.
func (t *tx) observeCalls(find func() []jig.Call) {
	t.changes = append(t.changes, func(ctx context.Context) {
		for _, call := range find() {
			call.Tenant = t.tenant
			switch o := t.db.options.Observer; {
			case call.Status != jig.CallUnknown && !call.Status.Final():
				continue
			case o == nil:
			case call.Status == jig.CallUnknown:
				o.CallUnknown(call)
			default:
				o.CallEnded(call)
			}
			t.db.logCall(ctx, call)
		}
	})
}

// observeCall reports a change of a locked call.
func (t *tx) observeCall(rows *locked, change approval.CallChange) {
	t.observeCalls(func() []jig.Call {
		call := rows.call.became(change.Status, change.Result)
		if rows.timed {
			call.StartedAt, call.FinishedAt = rows.now().StartedAt, rows.now().FinishedAt
		}
		return []jig.Call{call}
	})
}

// became returns the fields of a call that an observer gets, with a new status and result, and without times.
func (r *callRow) became(status jig.CallStatus, result *jig.ToolResult) jig.Call {
	return jig.Call{SessionID: r.SessionID, ID: r.ID, Tool: r.Tool, Child: r.Child, Fence: r.Fence, Status: status, Result: result}
}

// logCall writes the line of a call that has ended, or whose outcome is unknown, to the log.
func (db *DB) logCall(ctx context.Context, call jig.Call) {
	line := []slog.Attr{
		slog.String("tenant", call.Tenant), slog.String("session_id", call.SessionID), slog.String("call_id", call.ID),
		slog.String("tool", call.Tool), slog.String("status", string(call.Status)), slog.Int64("duration_ms", call.Duration().Milliseconds()),
	}
	if call.Fence > 1 {
		line = append(line, slog.Int("attempt", call.Fence))
	}
	if call.Child != "" {
		line = append(line, slog.String("child_session_id", call.Child))
	}
	if call.Result != nil && call.Result.Error != nil {
		e := call.Result.Error
		line = append(line, slog.String("code", string(e.Code)), slog.String("error", jig.Cut(e.Message, 200)))
	}
	db.options.Logger.LogAttrs(ctx, slog.LevelInfo, "call ended", line...)
}

// observeExhausted reports the events of the type budget.exhausted.
func (t *tx) observeExhausted(events []jig.Event) {
	for _, e := range events {
		if e.Type != jig.EventBudgetExhausted {
			continue
		}
		t.observe(func(o Observer) {
			var about struct{ Budget, Limit, Action string }
			if json.Unmarshal(e.Data, &about) == nil {
				o.BudgetExhausted(t.tenant, about.Budget, about.Limit, about.Action)
			}
		})
	}
}
