package store

import (
	"encoding/json"
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
	// CallEnded reports a call that has its final status. took is the duration of its last attempt; 0 if the call ended in another way.
	CallEnded(tool string, status jig.CallStatus, code jig.Code, took time.Duration)
	// CallUnknown reports a call whose outcome has become unknown, so that a person is asked what happened.
	CallUnknown(tool string)
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
		t.changes = append(t.changes, tell)
	}
}

// observed tells the observer about the changes of a committed transaction.
func (t *tx) observed() {
	for _, tell := range t.changes {
		tell(t.db.options.Observer)
	}
	t.changes = nil
}

// observeStatus reports a call that has a final status, or whose outcome is unknown now. It ignores other statuses.
func observeStatus(o Observer, tool string, status jig.CallStatus, result *jig.ToolResult, took time.Duration) {
	switch {
	case status == jig.CallUnknown:
		o.CallUnknown(tool)
	case status.Final():
		o.CallEnded(tool, status, codeOf(result), took)
	}
}

// observeCall reports a change of a locked call.
func (t *tx) observeCall(rows *locked, change approval.CallChange) {
	t.observe(func(o Observer) {
		took := time.Duration(0)
		if rows.timed {
			took = rows.now().took()
		}
		observeStatus(o, rows.call.Tool, change.Status, change.Result, took)
	})
}

// codeOf returns the code of a result's error, or "".
func codeOf(r *jig.ToolResult) jig.Code {
	if r == nil || r.Error == nil {
		return ""
	}
	return r.Error.Code
}

// took returns how long the last attempt of a finished call took.
func (r *callRow) took() time.Duration {
	if r.StartedAt == nil || r.FinishedAt == nil {
		return 0
	}
	return r.FinishedAt.Sub(*r.StartedAt)
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
