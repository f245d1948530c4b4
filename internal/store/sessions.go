package store

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/stored"
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
	db.committed(s.Tenant, s.ID, last)
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
	case row == nil && orZero(retired):
		return nil, jig.Errorf(jig.CodeConflict, "the session %s was deleted, and its id is not used again", s.ID).WithField("id").
			WithReason(jig.ReasonSessionDeleted).WithHint("choose another id")
	}
	return row, nil
}

func started(s jig.Session) []byte {
	d := details{
		"agent": s.Agent.Name, "version": s.Agent.Version, "model": s.Agent.Model, "principal": s.Principal.ID,
		"claimed": s.Principal.Claimed, "parent_id": s.ParentID, "parent_call": s.ParentCall,
		"source": string(s.Source), "task": stored.Cut(s.Task, jig.ExcerptBytes),
	}
	if len(s.Input) > 0 {
		d["input"], _ = stored.Preview(s.Input)
	}
	return d.json()
}

// Session returns a session, or NOT_FOUND. An answer longer than [jig.InlineBytes] is cut; [DB.SessionView] names the artifact with
// the full answer.
func (db *DB) Session(ctx context.Context, tenant, id string) (jig.Session, error) {
	row, err := ask(ctx, db, tenant, first[sessionRow], "SessionGet", tenant, id)
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
	done, err := ask(ctx, db, tenant, value[string], "SessionSetTodo", tenant, id, optional(items))
	if err == nil && done == nil {
		return noSession(id)
	}
	return err
}

const (
	// defaultSessions and maxSessions are the default and the maximum size of a page of sessions.
	defaultSessions = 50
	maxSessions     = 100
	// sessionPages limits how many pages of live sessions are searched for those that wait for people.
	sessionPages = 10
	// listedBytes bounds the texts of a session in a list.
	listedBytes = 200
)

// sessionCursor is the position where a page of sessions ended.
type sessionCursor struct {
	At time.Time `json:"at"`
	ID string    `json:"id"`
}

// listedSessionRow is a row of the query SessionsListed.
type listedSessionRow struct {
	protocol.SessionItem

	Input      []byte
	Error      *jig.Error
	Busy, Held int
	Nested     bool
	Paused     bool
}

// ListSessions lists the sessions of a tenant that match a filter, the newest first, after a cursor ("" for the first page); next is "" at
// the end. A page has at most limit entries (50 when limit is not positive, at most 100), and may have fewer although more follow.
func (db *DB) ListSessions(
	ctx context.Context, tenant string, filter protocol.SessionFilter, after string, limit int,
) (page []protocol.SessionItem, next string, err error) {
	if limit = min(limit, maxSessions); limit <= 0 {
		limit = defaultSessions
	}
	statuses, err := storedStatuses(filter.Status)
	if err != nil {
		return nil, "", err
	}
	same := filter
	same.Before, same.After = time.Time{}, time.Time{} // they may differ from page to page, because people write them as ages
	from, of := sessionCursor{At: farFuture}, pageOf{tenant, "sessions", same}
	if !filter.Before.IsZero() {
		from.At = filter.Before
	}
	if err := db.cursors.open(of, after, &from); err != nil {
		return nil, "", err
	}
	page = []protocol.SessionItem{}
	for range sessionPages {
		items, more, err := db.listSessions(ctx, tenant, filter, statuses, from, limit)
		if err != nil {
			return nil, "", err
		}
		for i := range items {
			from.At, from.ID = items[i].CreatedAt, items[i].SessionID
			if filter.Status == "" || items[i].Status == filter.Status {
				page = append(page, items[i])
			}
			if len(page) == limit && (more || i < len(items)-1) {
				next, err = db.cursors.seal(of, from)
				return page, next, err
			}
		}
		if !more {
			return page, "", nil
		}
	}
	next, err = db.cursors.seal(of, from)
	return page, next, err
}

// storedStatuses returns the statuses that the store may have for sessions of a status. A session that waits for people is stored as
// working.
func storedStatuses(status jig.Status) ([]string, error) {
	live := []string{string(jig.StatusWorking), string(jig.StatusInputRequired)}
	switch status {
	case "":
		return append(live, string(jig.StatusCompleted), string(jig.StatusFailed), string(jig.StatusCanceled)), nil
	case jig.StatusWorking, jig.StatusInputRequired:
		return live, nil
	case jig.StatusCompleted, jig.StatusFailed, jig.StatusCanceled:
		return []string{string(status)}, nil
	}
	return nil, jig.Errorf(jig.CodeInvalidInput, "%q is not a status of a session", text(string(status))).WithField("status").
		WithHint("use working, input_required, completed, failed or canceled")
}

// listSessions reads one page of sessions whose stored status is one of the given ones. more reports that others follow.
func (db *DB) listSessions(
	ctx context.Context, tenant string, f protocol.SessionFilter, statuses []string, from sessionCursor, limit int,
) (items []protocol.SessionItem, more bool, err error) {
	rows, err := ask(ctx, db, tenant, list[listedSessionRow], "SessionsListed", tenant, from.At, text(from.ID), f.After, statuses,
		text(f.Agent), text(f.RequestedBy), text(f.ParentID), !f.Children && f.ParentID == "", limit+1, text(f.Reason))
	if err != nil {
		return nil, false, err
	}
	if more = len(rows) > limit; more {
		rows = rows[:limit]
	}
	below, err := db.delegatedOf(ctx, tenant, rows)
	if err != nil {
		return nil, false, err
	}
	items = make([]protocol.SessionItem, len(rows))
	for i := range rows {
		items[i] = rows[i].item(below[i])
	}
	return items, more, nil
}

// delegatedOf returns, for each row, the sessions that answer calls of that session.
func (db *DB) delegatedOf(ctx context.Context, tenant string, rows []listedSessionRow) ([][]delegatedRow, error) {
	below := make([][]delegatedRow, len(rows))
	nested := false
	for i := range rows {
		nested = nested || rows[i].Nested
	}
	if !nested {
		return below, nil
	}
	err := db.once(ctx, tenant, func(t *tx) {
		for i := range rows {
			if rows[i].Nested {
				list(t.queue("Delegated", tenant, rows[i].SessionID, maxDelegated), &below[i])
			}
		}
	})
	return below, err
}

func (r *listedSessionRow) item(below []delegatedRow) protocol.SessionItem {
	item := r.SessionItem
	item.ClientID, item.Task, item.Input = jig.ClientID(r.SessionID), jig.Cut(r.Task, listedBytes), listedInput(r.Input)
	if e := r.Error; e != nil {
		item.Error = jig.Cut(string(e.Code)+": "+e.Message, listedBytes)
	}
	for _, d := range below {
		item.Waiting += d.Waiting
	}
	if item.Status == jig.StatusWorking && onlyPeople(r.Waiting, r.Busy, r.Held, idleChildren(below)[r.SessionID], r.Paused) {
		item.Status = jig.StatusInputRequired
	}
	return item
}

// listedInput returns the beginning of an input as text; "" if there is none or it is empty.
func listedInput(beginning []byte) string {
	text := jig.Cut(string(beginning), listedBytes)
	if text == "{}" || text == "null" {
		return ""
	}
	return text
}
