package store

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/stored"
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
	rows, err := ask(ctx, db, tenant, list[frameValueRow], "FrameValuesGet", tenant, id, callID, paths)
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
	rows, err := ask(ctx, db, tenant, list[begunRow], "CallsBegunBelow", tenant, id, callID, tools)
	for _, r := range rows {
		wrote = wrote || r.Write
		calls = append(calls, r.CallID)
	}
	return wrote, calls, err
}

// move is a composition's move, converted to arguments of the SQL statements.
type move struct {
	plan.FrameMove
	ready  admitting // zero when there are no calls
	result []byte
	waits  []byte // nil for none
	events *log
	paths  []string // of the values; sorted
}

// MoveFrame stores a move in one transaction: the state, the calls with their approvals and events (as [DB.Admit] does), and the
// cancellations, values, events, changes of the entity and consumed events. Calls get the pass and ordinal of the call that the
// composition answers. It returns NOT_FOUND when there is no such composition, and CONFLICT when another move was stored since, when the
// composition has ended, or when calls are to be admitted and the session has ended; then nothing has changed.
func (db *DB) MoveFrame(ctx context.Context, m plan.FrameMove) error {
	ready, err := db.moving(m)
	if err != nil {
		return err
	}
	return db.transact(ctx, m.Tenant, func(t *tx) error {
		var moved *int64
		var status *jig.Status
		var dropped []callRow
		artifact := ""
		if len(m.Whole) > 0 && m.Done {
			artifact = t.keep(m.SessionID, "application/json", m.Whole)
		}
		value(t.queue("FrameMove", m.Tenant, m.SessionID, m.CallID, m.Revision, []byte(m.State), m.Done, ready.result, artifact, ready.waits), &moved)
		value(t.queue("SessionStatus", m.Tenant, m.SessionID), &status)
		if len(m.Cancel) > 0 {
			statuses := []string{string(jig.CallWaiting), string(jig.CallReserved), string(jig.CallUnknown)}
			if m.Abandon {
				statuses = append(statuses, string(jig.CallExecuting))
			}
			list(t.queue("FrameCallsLock", m.Tenant, m.SessionID, m.CallID, m.Cancel, statuses), &dropped)
		}
		entity := t.changeFields(ctx, m.Entity)
		if err := t.flush(ctx); err != nil {
			return err
		}
		switch {
		case moved == nil:
			return t.notMoved(ctx, m)
		case len(m.Calls) > 0 && status.Final():
			return sessionEndedAs(m.SessionID, *status)
		}
		return t.move(ctx, ready, dropped, entity)
	})
}

// moving checks a move and prepares its columns.
func (db *DB) moving(m plan.FrameMove) (move, error) {
	pass, ordinal, _, err := jig.ParseCallID(m.CallID)
	if err != nil {
		return move{}, err
	}
	ready := move{FrameMove: m, events: &log{}}
	if len(m.Waits) > 0 && !m.Done {
		if ready.waits, err = encode(m.Waits); err != nil {
			return move{}, err
		}
	}
	if m.Done {
		if m.Result == nil {
			return move{}, jig.Errorf(jig.CodeInvalidInput, "a composition ends with a result").WithField("result")
		}
		if ready.result, err = encode(m.Result); err != nil {
			return move{}, err
		}
	}
	for path, v := range m.Values {
		if !json.Valid(v) {
			return move{}, jig.Errorf(jig.CodeInvalidInput, "the value of %q is not JSON", path).WithField("values")
		}
		ready.paths = append(ready.paths, path)
	}
	slices.Sort(ready.paths)
	for _, e := range m.Events {
		if e.Pass == 0 {
			e.Pass = pass
		}
		ready.events.add(e)
	}
	if len(m.Calls) == 0 {
		return ready, nil
	}
	a := ledger.Admission{Tenant: m.Tenant, SessionID: m.SessionID, Pass: pass, Calls: slices.Clone(m.Calls), Approvals: m.Approvals}
	for i := range a.Calls {
		c := &a.Calls[i]
		if c.Frame != m.CallID {
			return move{}, jig.Errorf(jig.CodeInvalidInput, "call %q does not belong to the composition of call %q", c.ID, m.CallID).WithField("frame")
		}
		c.Pass, c.Ordinal = pass, ordinal
	}
	ready.ready, err = db.admission(a)
	return ready, err
}

// notMoved returns why the compare-and-set changed no row.
func (t *tx) notMoved(ctx context.Context, m plan.FrameMove) error {
	var row *plan.Frame
	first(t.queue("FrameGet", m.Tenant, m.SessionID, m.CallID), &row)
	if err := t.flush(ctx); err != nil {
		return err
	}
	switch {
	case row == nil:
		return noFrame(m.SessionID, m.CallID)
	case row.Done:
		return jig.Errorf(jig.CodeConflict, "the composition of call %q has ended", m.CallID).WithField("revision")
	}
	return jig.Errorf(jig.CodeConflict, "the composition of call %q has moved: it has revision %d, not %d", m.CallID, row.Revision, m.Revision).
		WithField("revision").WithHint("read it again and recompute the move")
}

// move stores the rest of a move, after the composition's row is locked, and commits.
func (t *tx) move(ctx context.Context, m move, dropped []callRow, entity *changing) error {
	l := &log{}
	if m.Audit != nil {
		l.audits = append(l.audits, *m.Audit)
	}
	if len(dropped) > 0 {
		const why = "its composition no longer needs it"
		ids := make([]string, len(dropped))
		for i := range dropped {
			ids[i] = dropped[i].ID
		}
		if err := t.cancelCalls(ctx, dropped, l, why); err != nil {
			return err
		}
		var asked []approvalRow
		list(t.queue("ApprovalsOfCallsOpenLock", t.tenant, m.SessionID, ids), &asked)
		if err := t.flush(ctx); err != nil {
			return err
		}
		l.withdrawn(asked, why)
		t.queue("ApprovalsCancelOf", t.tenant, m.SessionID, ids, why)
	}
	l.join(m.events)
	if len(m.Calls) > 0 {
		t.admit(m.ready)
		l.join(m.ready.log)
	}
	if len(m.paths) > 0 {
		t.keepValues(m)
	}
	if err := t.changed(ctx, entity); err != nil {
		return err
	}
	if len(m.Consumed) > 0 {
		t.queue("FrameConsume", t.tenant, m.SessionID, m.CallID, m.Consumed)
	}
	return t.finish(ctx, l, m.SessionID)
}

// keepValues queues the storage of a move's values. Large values go to artifacts.
func (t *tx) keepValues(m move) {
	values, artifacts := make([][]byte, len(m.paths)), make([]*string, len(m.paths))
	for i, path := range m.paths {
		if v := m.Values[path]; len(v) <= jig.InlineBytes {
			values[i] = v
		} else {
			id := t.keep(m.SessionID, "application/json", v)
			artifacts[i] = &id
		}
	}
	t.queue("FrameValuesPut", t.tenant, m.SessionID, m.CallID, m.paths, values, artifacts)
}

const (
	// maxReceived is how many events a session takes, and maxReceivedBytes how many bytes their names and data may have together.
	maxReceived      = 10_000
	maxReceivedBytes = 16 << 20
)

// receivingRow is a row of the query ReceivedInsert.
type receivingRow struct {
	Seq   *int64
	Had   int64
	Known bool
}

// Receive stores an event that was sent to the session, once per key, and records custom.<name>. It reports whether the event was
// new. Running compositions find it in [plan.Frame].Received. The error is CONFLICT if the session has received too many events.
func (db *DB) Receive(ctx context.Context, tenant, id, key string, e plan.ReceivedEvent) (bool, error) {
	switch {
	case key == "":
		return false, jig.Errorf(jig.CodeInvalidInput, "an event needs a key").WithField("key")
	case e.Name == "":
		return false, jig.Errorf(jig.CodeInvalidInput, "an event needs a name").WithField("name")
	case len(e.Data) > 0 && !json.Valid(e.Data):
		return false, jig.Errorf(jig.CodeInvalidInput, "the data of event %q are not JSON", e.Name).WithField("data")
	}
	d := details{"by": e.By}
	if e.Claimed {
		d["claimed"] = true
	}
	if len(e.Data) > 0 {
		shown, truncated := stored.Preview(e.Data)
		if truncated {
			d["data_preview"] = shown
		} else {
			d["data"] = shown
		}
	}
	var held *string
	var row *receivingRow
	err := db.once(ctx, tenant, func(t *tx) {
		value(t.queue("SessionHold", tenant, id), &held)
		first(t.queue("ReceivedInsert", tenant, id, text(key), text(e.Name), optional(e.Data), text(e.By), text("custom."+e.Name),
			d.json(), e.Claimed, maxReceived, maxReceivedBytes), &row)
	})
	switch {
	case err != nil:
		return false, err
	case held == nil:
		return false, noSession(id)
	case row.Seq == nil && !row.Known:
		return false, jig.Errorf(jig.CodeConflict, "the session has received %d events; it takes at most %d, with %d MB together",
			row.Had, maxReceived, maxReceivedBytes>>20)
	}
	db.committed(tenant, id, row.Seq)
	return row.Seq != nil, nil
}
