package store

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

// CreateSession stores a new session with its first message (the task, if any) and the events session.started and message.added. If the
// session already exists, it is returned unchanged. The error is CONFLICT when the id was used for another request, or when a session
// with this id was deleted.
func (db *DB) CreateSession(ctx context.Context, s jig.Session) (jig.Session, error) {
	if err := jig.CheckTenant(s.Tenant); err != nil {
		return jig.Session{}, err
	}
	columns, err := sessionColumns(s)
	if err != nil {
		return jig.Session{}, err
	}
	var row *sessionRow
	err = db.transact(ctx, s.Tenant, func(t *tx) error {
		var err error
		if row, err = t.begunBefore(ctx, s); err != nil || row != nil {
			return err
		}
		t.queue("TenantEnsure", s.Tenant)
		t.queue("SessionCreate", columns...)
		t.asked(s)
		t.observe(func(o Observer) { o.SessionStarted(s.Tenant) })
		l := &log{}
		l.add(jig.Event{Type: jig.EventSessionStarted, Data: started(s)})
		if s.Task != "" {
			t.queue("MessageFirst", s.Tenant, s.ID, "task", text(s.Task), text(s.Principal.ID))
			l.add(jig.Event{Type: jig.EventMessageAdded, Data: messageDetails(chat.Message{Role: chat.RoleUser, Text: s.Task, By: s.Principal.ID})})
		}
		first(t.queue("SessionGet", s.Tenant, s.ID), &row)
		return t.finish(ctx, l, s.ID)
	})
	if err != nil {
		return jig.Session{}, err
	}
	return row.Session, nil
}

// CreateCall stores the session of a single call: the session, its only pass and the turn that asks for the call. If the session already
// exists, only what is missing is added. It returns the session, or CONFLICT in the same cases as [DB.CreateSession].
func (db *DB) CreateCall(ctx context.Context, s jig.Session, turn chat.Turn) (jig.Session, error) {
	if err := jig.CheckTenant(s.Tenant); err != nil {
		return jig.Session{}, err
	}
	columns, err := sessionColumns(s)
	if err != nil {
		return jig.Session{}, err
	}
	body, err := encode(turn)
	if err != nil {
		return jig.Session{}, err
	}
	var row *sessionRow
	var last *int64
	err = db.transact(ctx, s.Tenant, func(t *tx) error {
		var err error
		if row, err = t.begunBefore(ctx, s); err != nil {
			return err
		}
		if row == nil {
			t.queue("TenantEnsure", s.Tenant)
			t.queue("SessionCreate", columns...)
			t.asked(s)
			t.observe(func(o Observer) { o.SessionStarted(s.Tenant) })
			l := &log{}
			l.add(jig.Event{Type: jig.EventSessionStarted, Data: started(s)})
			t.record(l, s.ID, &last)
		}
		value(t.queue("PassBegin", s.Tenant, s.ID, 1), &last)
		if len(body) <= jig.InlineBytes {
			t.queue("TurnInsert", turnColumns(s.Tenant, s.ID, 1, body, nil, turn)...)
		}
		first(t.queue("SessionGet", s.Tenant, s.ID), &row)
		return t.commit(ctx)
	})
	if err != nil {
		return jig.Session{}, err
	}
	db.touched(s.Tenant, s.ID, last)
	if len(body) > jig.InlineBytes {
		if _, err := db.SaveTurn(ctx, s.Tenant, s.ID, 1, turn); err != nil {
			return jig.Session{}, err
		}
	}
	return row.Session, nil
}

func sessionColumns(s jig.Session) ([]any, error) {
	agent, err := encodeReadable(s.Agent)
	if err != nil {
		return nil, err
	}
	principal, err := encodeReadable(s.Principal)
	if err != nil {
		return nil, err
	}
	catalog, err := encode(s.Catalog)
	if err != nil {
		return nil, err
	}
	return []any{
		s.Tenant, s.ID, agent, text(s.Agent.Name), principal, []byte(s.Input), text(s.Task), catalog, optional(s.Todo),
		text(s.ParentID), s.Depth, text(s.ParentCall), text(s.ParentAgent), text(cmp.Or(s.RootAgent, s.Agent.Name)),
		cmp.Or(s.Source, jig.SourceAPI), s.RequestDigest, s.ReadPrivate, s.ReadUntrusted,
	}, nil
}

// begunBefore returns the existing session with the id of a new one, or nil. An id belongs to one request, even after its session
// was deleted, because the effects that ran under it must not run again.
func (t *tx) begunBefore(ctx context.Context, s jig.Session) (*sessionRow, error) {
	var row *sessionRow
	var retired *bool
	first(t.queue("SessionGet", s.Tenant, s.ID), &row)
	value(t.queue("SessionRetired", s.Tenant, s.ID), &retired)
	if err := t.flush(ctx); err != nil {
		return nil, err
	}
	switch {
	case row != nil && (row.RequestDigest != s.RequestDigest || row.ParentID != s.ParentID):
		return nil, jig.Errorf(jig.CodeConflict, "the id %s was used for another request", s.ID).WithField("id").
			WithHint("repeat the first request exactly, or choose another id")
	case row == nil && retired != nil && *retired:
		return nil, jig.Errorf(jig.CodeConflict, "the session %s was deleted, and its id is not used again", s.ID).WithField("id").
			WithReason(jig.ReasonSessionDeleted).WithHint("choose another id")
	}
	return row, nil
}

func started(s jig.Session) []byte {
	d := details{
		"agent": s.Agent.Name, "version": s.Agent.Version, "model": s.Agent.Model, "principal": s.Principal.ID,
		"claimed": s.Principal.Claimed, "parent_id": s.ParentID, "parent_call": s.ParentCall,
		"source": string(s.Source), "task": cut(s.Task, jig.ExcerptBytes),
	}
	if len(s.Input) > 0 {
		d["input"], _ = preview(s.Input)
	}
	return d.json()
}

// Session returns a session, or NOT_FOUND. An answer longer than [jig.InlineBytes] is cut; [DB.SessionView] names the artifact with
// the full answer.
func (db *DB) Session(ctx context.Context, tenant, id string) (jig.Session, error) {
	var row *sessionRow
	err := db.once(ctx, tenant, func(t *tx) { first(t.queue("SessionGet", tenant, id), &row) })
	if err != nil {
		return jig.Session{}, err
	}
	if row == nil {
		return jig.Session{}, noSession(id)
	}
	return row.Session, nil
}

// SaveSummary stores the summary that replaces the passes up to through. It never replaces a later summary by an earlier one.
func (db *DB) SaveSummary(ctx context.Context, tenant, id string, through int, summary string) error {
	var done *string
	var status *string
	err := db.once(ctx, tenant, func(t *tx) {
		value(t.queue("SessionSetSummary", tenant, id, through, text(summary)), &done)
		value(t.queue("SessionStatus", tenant, id), &status)
	})
	if err == nil && status == nil {
		return noSession(id)
	}
	return err
}

// SetTodo replaces the session's to-do list.
func (db *DB) SetTodo(ctx context.Context, tenant, id string, items json.RawMessage) error {
	var done *string
	err := db.once(ctx, tenant, func(t *tx) {
		value(t.queue("SessionSetTodo", tenant, id, optional(items)), &done)
	})
	if err == nil && done == nil {
		return noSession(id)
	}
	return err
}
