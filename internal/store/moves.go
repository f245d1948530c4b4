package store

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/plan"
)

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
