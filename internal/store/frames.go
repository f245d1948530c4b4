package store

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/plan"
)

// frameRead queues the queries for a composition and the events that it has received.
func (t *tx) frameRead(id, callID string, frame **plan.Frame, received *[]plan.ReceivedEvent) {
	first(t.queue("FrameGet", t.tenant, id, callID), frame)
	list(t.queue("FrameReceived", t.tenant, id, callID), received)
}

func withReceived(f plan.Frame, received []plan.ReceivedEvent) plan.Frame {
	if len(received) > 0 {
		f.Received = received
	}
	return f
}

// BeginFrame stores a new composition. Its call must exist and be open; otherwise the error is NOT_FOUND or CONFLICT. If the composition
// already exists, it is returned with the higher of the two fences, because a later attempt at the call takes it over, and is otherwise
// unchanged. If a new composition fills an entity, the entity then names the composition's session and call.
func (db *DB) BeginFrame(ctx context.Context, f plan.Frame) (plan.Frame, error) {
	var frame *plan.Frame
	var received []plan.ReceivedEvent
	err := db.once(ctx, f.Tenant, func(t *tx) {
		t.queue("FrameTakeOver", f.Tenant, f.SessionID, f.CallID, f.Fence)
		t.queue("FrameInsert", f.Tenant, f.SessionID, f.CallID, text(f.Kind), text(f.Name), text(f.Version), f.Fence, []byte(f.State),
			text(f.Entity))
		t.frameRead(f.SessionID, f.CallID, &frame, &received)
	})
	if err != nil {
		return plan.Frame{}, err
	}
	if frame != nil {
		return withReceived(*frame, received), nil
	}
	call, err := db.Call(ctx, f.Tenant, f.SessionID, f.CallID)
	if err != nil {
		return plan.Frame{}, err
	}
	return plan.Frame{}, jig.Errorf(jig.CodeConflict, "call %q of session %q is %s: no composition can begin",
		f.CallID, f.SessionID, call.Status).WithField("call")
}

// Frame returns a composition, or NOT_FOUND.
func (db *DB) Frame(ctx context.Context, tenant, id, callID string) (plan.Frame, error) {
	var frame *plan.Frame
	var received []plan.ReceivedEvent
	err := db.once(ctx, tenant, func(t *tx) { t.frameRead(id, callID, &frame, &received) })
	if err != nil {
		return plan.Frame{}, err
	}
	if frame == nil {
		return plan.Frame{}, noFrame(id, callID)
	}
	return withReceived(*frame, received), nil
}

func noFrame(session, call string) *jig.Error {
	return jig.Errorf(jig.CodeNotFound, "call %q of session %q runs no composition", call, session).WithField("call")
}

// FrameWindow returns all open calls of a composition in the order of their admission, with their open approvals. It returns no calls for
// an unknown composition.
func (db *DB) FrameWindow(ctx context.Context, tenant, id, callID string) (ledger.Window, error) {
	var rows []callRow
	var open []approvalRow
	err := db.once(ctx, tenant, func(t *tx) {
		list(t.queue("FrameCallsOpen", tenant, id, callID), &rows)
		list(t.queue("ApprovalsOpenOfFrame", tenant, id, callID), &open)
	})
	if err != nil {
		return ledger.Window{}, err
	}
	w := ledger.Window{Calls: calls(rows)}
	w.Approvals, err = approvalsOf(w.Calls, open)
	return w, err
}

// frameValueRow is a row of the query FrameValuesGet.
type frameValueRow struct {
	Path  string
	Value json.RawMessage
}

// FrameValues returns the values stored under paths of a composition. Paths without a value are left out.
func (db *DB) FrameValues(ctx context.Context, tenant, id, callID string, paths []string) (map[string]json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	if len(paths) == 0 {
		return values, nil
	}
	var rows []frameValueRow
	err := db.once(ctx, tenant, func(t *tx) { list(t.queue("FrameValuesGet", tenant, id, callID, paths), &rows) })
	for _, r := range rows {
		values[r.Path] = r.Value
	}
	return values, err
}

// begunRow is a row of the query CallsBegunBelow.
type begunRow struct {
	CallID string
	Write  bool
}

// BegunBelow reports whether a call that writes has begun inside a call, or in the whole session when callID is empty. It also
// returns the ids of the calls that began there and write or use one of the given tools (at most 1,000). A composition counts only
// through its steps.
func (db *DB) BegunBelow(ctx context.Context, tenant, id, callID string, tools []string) (wrote bool, calls []string, err error) {
	var rows []begunRow
	err = db.once(ctx, tenant, func(t *tx) { list(t.queue("CallsBegunBelow", tenant, id, callID, tools), &rows) })
	for _, r := range rows {
		wrote = wrote || r.Write
		calls = append(calls, r.CallID)
	}
	return wrote, calls, err
}
