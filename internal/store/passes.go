package store

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/stored"
)

// BeginPass sets the session's pass, sets its status to working, clears the answer of an earlier end and records pass.started, after
// pass.completed of the pass before unless that has ended already. A second call for the same pass changes nothing.
func (db *DB) BeginPass(ctx context.Context, tenant, id string, pass int) (ledger.Beginning, error) {
	var ending, last *int64
	var row *sessionRow
	var answered *turnRow
	var paused []jig.Pause
	var turns []turnRow
	var called []callRow
	var messages []chat.Message
	var latest *int
	err := db.transact(ctx, tenant, func(t *tx) error {
		if pass > 1 {
			if err := t.endPass(ledger.End{Tenant: tenant, SessionID: id, Pass: pass - 1, Status: jig.StatusWorking}, false, &ending); err != nil {
				return err
			}
		}
		value(t.queue("PassBegin", tenant, id, pass), &last)
		list(t.queue("PausesOfSession", tenant, id), &paused)
		first(t.queue("SessionGet", tenant, id), &row)
		first(t.queue("TurnGet", tenant, id, pass), &answered)
		list(t.queue("TurnsUnsummarized", tenant, id), &turns)
		list(t.queue("CallsUnsummarized", tenant, id), &called)
		list(t.queue("MessagesUnsummarized", tenant, id), &messages)
		value(t.queue("MessageLatestPass", tenant, id), &latest)
		return t.commit(ctx)
	})
	if err != nil {
		return ledger.Beginning{}, err
	}
	if row == nil {
		return ledger.Beginning{}, noSession(id)
	}
	db.committed(tenant, id, cmp.Or(last, ending))
	b := ledger.Beginning{Session: row.Session, MessagePass: orZero(latest), Exchanges: exchanges(turns, called, messages)}
	b.Session.Paused = pausing(paused, "")
	if answered != nil {
		b.Turn = &answered.Body
	}
	return b, nil
}

// StoreAnswer stores the model's turn of a pass, the admission of its calls and, if [ledger.Answer].End is set, the end of the session, in
// one transaction. It returns the end as recorded; nil if the session continues, for example because a message has arrived. The error is
// CONFLICT if the pass already has a turn or the session has ended, and then nothing is stored.
func (db *DB) StoreAnswer(ctx context.Context, a ledger.Answer) (*ledger.End, error) {
	body, err := encode(a.Turn)
	if err != nil {
		return nil, err
	}
	ready, err := db.admission(a.Admission)
	if err != nil {
		return nil, err
	}
	if l := remarks(a.Pass, a.Turn); l.len() > 0 {
		l.join(ready.log)
		ready.log = l
	}
	var ended *endedRow
	var last, ending *int64
	err = db.transact(ctx, a.Tenant, func(t *tx) error {
		t.storeTurn(a, body)
		if len(ready.ids) > 0 {
			t.admit(ready)
		}
		if ready.log.len() > 0 {
			t.record(ready.log, a.SessionID, &last)
		}
		if a.End != nil {
			if err := t.endPass(*a.End, !a.EndsAnyway, &ending); err != nil {
				return err
			}
			first(t.queue("PassEndGet", a.Tenant, a.SessionID, a.Pass), &ended)
		}
		if err := t.tell(ready.log); err != nil {
			return err
		}
		return t.commit(ctx)
	})
	switch {
	case state(err) == stateUniqueViolation:
		return nil, jig.Errorf(jig.CodeConflict, "pass %d of session %q already has a turn", a.Pass, a.SessionID)
	case state(err) == stateNotNullViolation:
		session, err := db.Session(ctx, a.Tenant, a.SessionID)
		if err != nil {
			return nil, err
		}
		return nil, sessionEndedAs(a.SessionID, session.Status)
	case err != nil:
		return nil, err
	}
	db.committed(a.Tenant, a.SessionID, cmp.Or(ending, last))
	if ended == nil {
		return nil, nil // nil means that the session continues
	}
	return new(ended.end()), nil
}

// storeTurn stores a turn whose JSON is body, as an artifact if it is large.
func (t *tx) storeTurn(a ledger.Answer, body []byte) {
	var artifact *string
	if len(body) > jig.InlineBytes {
		artifact, body = new(t.keep(a.SessionID, "application/json", body)), nil
	}
	t.queue("TurnStore", append([]any{t.tenant, a.SessionID, a.Pass, body, artifact}, turnUsage(a.Turn)...)...)
}

// PassState returns the data that settling a pass needs. A pass without a turn (a call that a person made) has the zero Turn.
func (db *DB) PassState(ctx context.Context, tenant, id string, pass int) (ledger.PassState, error) {
	var row *sessionRow
	var answered *turnRow
	var tally []countRow
	var unread, messagePass *int
	err := db.once(ctx, tenant, func(t *tx) {
		first(t.queue("SessionGet", tenant, id), &row)
		first(t.queue("TurnGet", tenant, id, pass), &answered)
		list(t.queue("CallCountsOfPass", tenant, id, pass), &tally)
		value(t.queue("MessagesUnread", tenant, id, pass), &unread)
		value(t.queue("MessageLatestPass", tenant, id), &messagePass)
	})
	if err != nil {
		return ledger.PassState{}, err
	}
	if row == nil {
		return ledger.PassState{}, noSession(id)
	}
	state := ledger.PassState{Session: row.Session, Counts: counts(tally), Unread: *unread, MessagePass: orZero(messagePass)}
	if answered != nil {
		state.Turn = answered.Body
	}
	return state, nil
}

// endedRow is a row of the query PassEndGet.
type endedRow struct {
	Body   ledger.End
	Answer []byte
}

// EndPass records pass.completed and, unless End.Status is working, ends the session with its event, answer and error. It is
// idempotent by session and pass: a second call returns the first call's End. A session that has already ended keeps its end, which
// is returned.
func (db *DB) EndPass(ctx context.Context, end ledger.End) (ledger.End, error) {
	if end.Status == "" {
		end.Status = jig.StatusWorking
	}
	var ended *endedRow
	var row *sessionRow
	var last *int64
	err := db.transact(ctx, end.Tenant, func(t *tx) error {
		if len(end.Answer) > jig.InlineBytes { // rare: look first, so that no unused artifact is stored
			t.queue("SessionLock", end.Tenant, end.SessionID)
			first(t.queue("PassEndGet", end.Tenant, end.SessionID, end.Pass), &ended)
			if err := t.flush(ctx); err != nil || ended != nil {
				return err
			}
		}
		if err := t.endPass(end, false, &last); err != nil {
			return err
		}
		first(t.queue("PassEndGet", end.Tenant, end.SessionID, end.Pass), &ended)
		first(t.queue("SessionGet", end.Tenant, end.SessionID), &row)
		return t.commit(ctx)
	})
	if err != nil {
		return ledger.End{}, err
	}
	db.committed(end.Tenant, end.SessionID, last)
	switch {
	case ended != nil:
		return ended.end(), nil
	case row == nil:
		return ledger.End{}, noSession(end.SessionID)
	}
	return ledger.End{ // it ended in another way
		Tenant: end.Tenant, SessionID: end.SessionID, Pass: end.Pass, Status: row.Status, Reason: row.Reason, Answer: row.Answer, Error: row.Error,
	}, nil
}

func (r *endedRow) end() ledger.End {
	end := r.Body
	if r.Answer != nil {
		end.Answer = string(r.Answer)
	}
	return end
}

// endPass queues the end of a pass. If unlessUnread is set, nothing happens while the session has messages that no turn has followed.
func (t *tx) endPass(end ledger.End, unlessUnread bool, last **int64) error {
	columns, err := t.endColumns(end)
	if err != nil {
		return err
	}
	l := endEvents(end)
	args := append([]any{t.tenant, end.SessionID, end.Pass}, columns...)
	value(t.queue("PassEnd", append(args, l.types, l.data, unlessUnread)...), last)
	if end.Status.Final() {
		t.observe(func(o Observer) {
			if *last != nil {
				o.SessionEnded(end.Tenant, end.Status)
			}
		})
	}
	return nil
}

// endColumns returns arguments of PassEnd: the body, the answer's artifact, and the status, reason, answer and error of the session.
func (t *tx) endColumns(end ledger.End) ([]any, error) {
	end.Answer = text(end.Answer)
	artifact := ""
	if len(end.Answer) > jig.InlineBytes {
		artifact = t.keep(end.SessionID, "text/plain; charset=utf-8", []byte(end.Answer))
		end.Answer = stored.Cut(end.Answer, jig.InlineBytes)
	}
	body, err := encode(end)
	if err != nil {
		return nil, err
	}
	failure, err := encodeIf(end.Error != nil, end.Error)
	if err != nil {
		return nil, err
	}
	return []any{body, artifact, end.Status, text(end.Reason), end.Answer, failure}, nil
}

// endEvents returns the events of the end of a pass.
func endEvents(end ledger.End) *log {
	l := &log{}
	l.add(jig.Event{Type: jig.EventPassCompleted, Pass: end.Pass, Data: json.RawMessage("{}")})
	if end.Status.Final() {
		l.add(sessionEnded(end))
	}
	return l
}

func sessionEnded(end ledger.End) jig.Event {
	kind := jig.EventSessionCompleted
	switch end.Status {
	case jig.StatusFailed:
		kind = jig.EventSessionFailed
	case jig.StatusCanceled:
		kind = jig.EventSessionCanceled
	case jig.StatusCompleted, jig.StatusWorking, jig.StatusInputRequired:
	}
	d := details{"reason": end.Reason}
	if end.Answer != "" {
		shown := stored.Cut(end.Answer, jig.ExcerptBytes)
		d["answer"], d["truncated"] = shown, len(shown) < len(end.Answer)
	}
	if end.Error != nil {
		d["error"] = end.Error
	}
	return jig.Event{Type: kind, Pass: end.Pass, Data: d.json()}
}

// endSession ends a locked session with the events so far and its own event, and commits.
func (t *tx) endSession(ctx context.Context, end ledger.End, l *log) error {
	columns, err := t.endColumns(end)
	if err != nil {
		return err
	}
	t.queue("PassEndInsert", t.tenant, end.SessionID, end.Pass, columns[0], columns[1])
	l.add(sessionEnded(end))
	var last *int64
	args := []any{t.tenant, end.SessionID, columns[2], columns[3], columns[4], columns[1], columns[5]}
	value(t.queue("SessionEnd", append(args, l.columns()...)...), &last)
	t.observe(func(o Observer) { o.SessionEnded(end.Tenant, end.Status) })
	if err := t.tell(l); err != nil {
		return err
	}
	if err := t.commit(ctx); err != nil {
		return err
	}
	t.db.committed(t.tenant, end.SessionID, last)
	return nil
}

// ReadPass returns what was said and done in a pass: the messages that came before its turn, the turn, and up to limit of its calls, those
// of compositions included, after the first skip. A pass that the session has not reached is empty. The error is NOT_FOUND if the tenant
// has no such session.
func (db *DB) ReadPass(ctx context.Context, tenant, id string, pass, skip, limit int) (ledger.PassRead, error) {
	var row *sessionRow
	var answered *turnRow
	var at *time.Time
	var messages []chat.Message
	var called []callRow
	err := db.once(ctx, tenant, func(t *tx) {
		first(t.queue("SessionGet", tenant, id), &row)
		list(t.queue("MessagesOfPass", tenant, id, pass-1), &messages)
		first(t.queue("TurnGet", tenant, id, pass), &answered)
		value(t.queue("TurnTime", tenant, id, pass), &at)
		list(t.queue("CallsOfPass", tenant, id, pass, skip, limit), &called)
	})
	if err != nil {
		return ledger.PassRead{}, err
	}
	if row == nil {
		return ledger.PassRead{}, noSession(id)
	}
	read := ledger.PassRead{Session: row.Session, Exchange: chat.Exchange{Pass: pass, Messages: messages, Calls: calls(called)}}
	if answered != nil {
		read.Exchange.Turn, read.TurnAt = &answered.Body, at
	}
	return read, nil
}
