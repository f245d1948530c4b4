package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

const (
	// defaultSessions and maxSessions are the default and the maximum size of a page of sessions.
	defaultSessions = 50
	maxSessions     = 100
	// sessionPages limits how many pages of live sessions are searched for those that wait for people.
	sessionPages = 10
	// listedBytes bounds the texts of a session in a list.
	listedBytes = 200
)

// sessionCursor is the position where a page of sessions ended. Filter identifies the filter of that page.
type sessionCursor struct {
	At     time.Time `json:"at"`
	ID     string    `json:"id"`
	Filter string    `json:"filter"`
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
	from, err := sessionsAfter(filter, after)
	if err != nil {
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
				next, err = encodeCursor(from)
				return page, next, err
			}
		}
		if !more {
			return page, "", nil
		}
	}
	next, err = encodeCursor(from)
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

// sessionsAfter returns where a page begins. A cursor is valid only with the filter of the page that returned it; its times may differ,
// because people write them as ages.
func sessionsAfter(filter protocol.SessionFilter, after string) (sessionCursor, error) {
	same := filter
	same.Before, same.After = time.Time{}, time.Time{}
	encoded, err := encode(same)
	if err != nil {
		return sessionCursor{}, err
	}
	sum := sha256.Sum256(encoded)
	fingerprint := hex.EncodeToString(sum[:8])
	from := sessionCursor{At: farFuture, Filter: fingerprint}
	if !filter.Before.IsZero() {
		from.At = filter.Before
	}
	if err := decodeCursor(after, &from); err != nil {
		return from, err
	}
	if from.Filter != fingerprint {
		return from, otherFilter()
	}
	return from, nil
}

// otherFilter returns the error for a cursor with another filter than that of its page.
func otherFilter() error {
	return jig.Errorf(jig.CodeInvalidInput, "the cursor belongs to a list with another filter").WithField("cursor").
		WithHint("repeat the filter of the first page")
}

// listSessions reads one page of sessions whose stored status is one of the given ones. more reports that others follow.
func (db *DB) listSessions(
	ctx context.Context, tenant string, f protocol.SessionFilter, statuses []string, from sessionCursor, limit int,
) (items []protocol.SessionItem, more bool, err error) {
	var rows []listedSessionRow
	err = db.once(ctx, tenant, func(t *tx) {
		list(t.queue("SessionsListed", tenant, from.At, text(from.ID), f.After, statuses, text(f.Agent), text(f.RequestedBy),
			text(f.ParentID), !f.Children && f.ParentID == "", limit+1, text(f.Reason)), &rows)
	})
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
