package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// last sorts after every text. A range that ends with it has no upper bound.
const last = "\U0010FFFF"

// listedRunes is how many characters of a name the list index holds.
const listedRunes = 200

// farFuture is later than any time that matters and fits into PostgreSQL.
var farFuture = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// cursor is the position where a page of pending approvals ended.
type cursor struct {
	At time.Time `json:"at"`
	ID int64     `json:"id"`
}

// defaultPending is the default size of a page of pending approvals.
const defaultPending = 100

// pendingLimit returns the size of a page of pending approvals.
func pendingLimit(limit int) int {
	if limit <= 0 {
		return defaultPending
	}
	return min(limit, maxPage)
}

// pendingPage cuts rows, which hold one more than a page, to one page. next is "" at the end.
func (db *DB) pendingPage(of pageOf, rows []approvalRow, limit int) (waiting []jig.Pending, next string, err error) {
	if len(rows) > limit {
		rows = rows[:limit]
		if next, err = db.cursors.seal(of, cursor{rows[limit-1].RequestedAt, rows[limit-1].ID}); err != nil {
			return nil, "", err
		}
	}
	waiting, err = pendings(rows)
	return waiting, next, err
}

// PendingApprovals lists the calls of a tenant that wait for people, oldest first, after a cursor ("" for the first page); next is "" at
// the end. A page has at most limit entries (100 when limit is not positive, at most 1,000).
func (db *DB) PendingApprovals(ctx context.Context, tenant, after string, limit int) (waiting []jig.Pending, next string, err error) {
	var from cursor
	of := pageOf{Tenant: tenant, List: "approvals"}
	if err := db.cursors.open(of, after, &from); err != nil {
		return nil, "", err
	}
	limit = pendingLimit(limit)
	rows, err := ask(ctx, db, tenant, list[approvalRow], "ApprovalsOpen", tenant, from.At, from.ID, limit+1)
	if err != nil {
		return nil, "", err
	}
	return db.pendingPage(of, rows, limit)
}

// ListPending lists the calls of a tenant that wait for people and match a filter, oldest first, after a cursor ("" for the first page);
// next is "" at the end. A page has at most limit entries (100 when limit is not positive, at most 1,000). A filter by session also
// matches the calls of the child sessions that answer the session's calls.
func (db *DB) ListPending(
	ctx context.Context, tenant string, filter jig.PendingFilter, after string, limit int,
) (waiting []jig.Pending, next string, err error) {
	same := filter
	same.Before, same.After = time.Time{}, time.Time{} // they may differ from page to page, because people write them as ages
	var from cursor
	of := pageOf{tenant, "approvals", same}
	if err := db.cursors.open(of, after, &from); err != nil {
		return nil, "", err
	}
	limit = pendingLimit(limit)
	sessions, via := []string{filter.SessionID}, map[string]string{}
	if filter.SessionID != "" {
		var delegated []delegatedRow
		err = db.once(ctx, tenant, func(t *tx) { list(t.queue("Delegated", tenant, text(filter.SessionID), maxDelegated), &delegated) })
		if err != nil {
			return nil, "", err
		}
		for _, d := range delegated {
			sessions, via[d.SessionID] = append(sessions, d.SessionID), d.Via
		}
	}
	lists := make([][]any, len(sessions))
	for i, session := range sessions {
		filter.SessionID = session
		if lists[i], err = listing(tenant, filter, from); err != nil {
			return nil, "", err
		}
	}
	pages := make([][]approvalRow, len(lists))
	err = db.once(ctx, tenant, func(t *tx) {
		for i, args := range lists {
			list(t.queue("ApprovalsListed", append(args, limit+1)...), &pages[i])
		}
	})
	if err != nil {
		return nil, "", err
	}
	rows := slices.Concat(pages...)
	slices.SortFunc(rows, func(x, y approvalRow) int {
		return cmp.Or(x.RequestedAt.Compare(y.RequestedAt), cmp.Compare(x.ID, y.ID))
	})
	waiting, next, err = db.pendingPage(of, rows, limit)
	for i := range waiting {
		waiting[i].Via = via[waiting[i].SessionID]
	}
	return waiting, next, err
}

// listing returns the arguments of ApprovalsListed for a filter and the position after which the page begins, without the limit.
func listing(tenant string, f jig.PendingFilter, from cursor) ([]any, error) {
	switch f.Kind {
	case "", jig.PendingApproval, jig.PendingReconcile, jig.PendingQuestion:
	default:
		return nil, jig.Errorf(jig.CodeInvalidInput, "%q is not a kind of pending call", text(string(f.Kind))).WithField("kind").
			WithHint("use approval, reconcile or question")
	}
	if f.After.After(from.At) {
		from = cursor{f.After, math.MaxInt64}
	}
	before := farFuture
	if !f.Before.IsZero() {
		before = f.Before
	}
	if err := checkToolFilter(f.Tool); err != nil {
		return nil, err
	}
	tool := only(f.Tool)
	if category, ok := strings.CutSuffix(f.Tool, "*"); ok {
		tool = bounds{text(category), text(category + last)}
	}
	kind, session, agent, requester := only(string(f.Kind)), only(f.SessionID), only(shortened(f.Agent)), only(shortened(f.RequestedBy))
	return []any{
		tenant, from.At, from.ID, before, kind.from, kind.to, tool.from, tool.to, session.from, session.to, agent.from, agent.to,
		requester.from, requester.to, text(f.Agent), text(f.RequestedBy),
	}, nil
}

func checkToolFilter(tool string) error {
	if category, ok := strings.CutSuffix(tool, "*"); ok && category != "" && !strings.HasSuffix(category, ".") {
		return jig.Errorf(jig.CodeInvalidInput, "%q is not a tool filter", text(tool)).WithField("tool").
			WithHint("use a tool's name, or category.* for all tools of a category")
	}
	return nil
}

// bounds is a range of texts.
type bounds struct{ from, to string }

// only returns the range of one text, or of all texts when s is "".
func only(s string) bounds {
	return bounds{text(s), text(cmp.Or(s, last))}
}

// shortened returns a name as the index stores it.
func shortened(name string) string {
	runes := []rune(name)
	return string(runes[:min(len(runes), listedRunes)])
}

// OpenApprovals counts the calls that wait for people, over all tenants.
func (db *DB) OpenApprovals(ctx context.Context) ([]protocol.OpenCount, error) {
	return ask(ctx, db, "", list[protocol.OpenCount], "ApprovalsOpenEverywhere")
}

// Outcomes counts how approvals ended between two times, over all tenants.
func (db *DB) Outcomes(ctx context.Context, since, until time.Time) ([]protocol.OutcomeCount, error) {
	return ask(ctx, db, "", list[protocol.OutcomeCount], "ApprovalsDecidedEverywhere", since, until)
}

// Pace returns how fast approvals were decided since a time, over all tenants.
func (db *DB) Pace(ctx context.Context, since time.Time) (protocol.Pace, error) {
	row, err := ask(ctx, db, "", first[protocol.Pace], "ApprovalsPaceEverywhere", since)
	return orZero(row), err
}

// Now returns the time of the database's clock, which sets the times in its rows.
func (db *DB) Now(ctx context.Context) (time.Time, error) {
	now, err := ask(ctx, db, "", value[time.Time], "DatabaseNow")
	return orZero(now), err
}
