package store_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// change runs SQL as the application role of the world's tenant, and commits it.
func (w world) change(t testing.TB, statement string, args ...any) {
	t.Helper()
	storetest.Exec(t, w.tenant, statement, args...)
}

// waiting is an approval that listing tests seed.
type waiting struct {
	tool, kind, agent, by string
	age                   time.Duration
}

// seed stores open approvals, call 1.1 for the first and so on, each requested its age before the given time.
func (w world) seed(t testing.TB, at time.Time, list ...waiting) {
	t.Helper()
	for i, one := range list {
		w.change(t, `with c as (insert into calls (tenant_id, session_id, call_id, pass, ordinal, tool, verdict, status, idempotency_key)
			values ($1, $2, $3, 1, $4, $5, 'ask', 'waiting', $2 || '/' || $3) returning 1)
			insert into approvals (tenant_id, session_id, call_id, kind, tool, agent, requested_by, requested_at)
			select $1, $2, $3, $6, $5, $7, $8, $9 from c`,
			w.tenant, w.session, jig.CallID(1, i+1), i+1, one.tool, one.kind, one.agent, one.by, at.Add(-one.age))
	}
}

func TestListPending_Filters(t *testing.T) {
	t.Parallel()
	w, at := newWorld(t), time.Now().UTC().Truncate(time.Second)
	long := strings.Repeat("é", 300)
	w.seed(t, at,
		waiting{"file.write", "approval", "writer", "ana", 5 * time.Hour},
		waiting{"file.move", "approval", "mover", "bo", 4 * time.Hour},
		waiting{"filet.cut", "approval", "cook", "ana", 3 * time.Hour},
		waiting{"person.ask", "question", "cook", long + "1", 2 * time.Hour},
		waiting{"http.post", "reconcile", "writer", long + "2", time.Hour},
	)
	for name, row := range map[string]struct {
		filter jig.PendingFilter
		want   string
	}{
		"nothing":           {jig.PendingFilter{}, "1.1 1.2 1.3 1.4 1.5"},
		"a tool":            {jig.PendingFilter{Tool: "file.move"}, "1.2"},
		"a category":        {jig.PendingFilter{Tool: "file.*"}, "1.1 1.2"},
		"all tools":         {jig.PendingFilter{Tool: "*"}, "1.1 1.2 1.3 1.4 1.5"},
		"a tool's half":     {jig.PendingFilter{Tool: "file"}, ""},
		"a kind":            {jig.PendingFilter{Kind: jig.PendingQuestion}, "1.4"},
		"an agent":          {jig.PendingFilter{Agent: "cook"}, "1.3 1.4"},
		"a requester":       {jig.PendingFilter{RequestedBy: "ana"}, "1.1 1.3"},
		"a long name":       {jig.PendingFilter{RequestedBy: long + "2"}, "1.5"},
		"half a long name":  {jig.PendingFilter{RequestedBy: long}, ""},
		"a session":         {jig.PendingFilter{SessionID: w.session}, "1.1 1.2 1.3 1.4 1.5"},
		"another session":   {jig.PendingFilter{SessionID: "ses_other"}, ""},
		"older calls":       {jig.PendingFilter{Before: at.Add(-3 * time.Hour)}, "1.1 1.2"},
		"newer calls":       {jig.PendingFilter{After: at.Add(-3 * time.Hour)}, "1.4 1.5"},
		"between":           {jig.PendingFilter{After: at.Add(-5 * time.Hour), Before: at.Add(-2 * time.Hour)}, "1.2 1.3"},
		"several at once":   {jig.PendingFilter{Tool: "file.*", Agent: "writer", RequestedBy: "ana", Kind: jig.PendingApproval}, "1.1"},
		"several, no match": {jig.PendingFilter{Tool: "file.*", Agent: "cook"}, ""},
	} {
		for _, limit := range []int{0, 1, 2} {
			var calls []string
			cursor := ""
			for {
				page, next, err := w.ListPending(t.Context(), w.tenant, row.filter, cursor, limit)
				require.NoError(t, err, name)
				require.True(t, limit == 0 || len(page) <= limit, name)
				for _, p := range page {
					calls = append(calls, p.Call)
				}
				if cursor = next; next == "" {
					break
				}
			}
			require.Equal(t, row.want, strings.Join(calls, " "), "%s, %d a page", name, limit)
		}
	}
}

func TestListPending_InvalidFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for field, filter := range map[string]jig.PendingFilter{"kind": {Kind: "odd"}, "tool": {Tool: "fi*"}} {
		_, _, err := w.ListPending(t.Context(), w.tenant, filter, "", 0)
		requireCode(t, jig.CodeInvalidInput, err)
		require.Equal(t, field, jig.AsError(err).Field)
		require.NotEmpty(t, jig.AsError(err).Hint)
	}
	_, _, err := w.ListPending(t.Context(), w.tenant, jig.PendingFilter{}, "x", 0)
	requireCode(t, jig.CodeInvalidInput, err)
	odd := jig.PendingFilter{Tool: "a\x00\xff", Agent: "\x00", RequestedBy: "\xff", SessionID: "\x00"}
	list, _, err := w.ListPending(t.Context(), w.tenant, odd, "", 0)
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestLists_AreSeparatedByTenant(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	w.asking(t)
	list, _, err := other.ListPending(t.Context(), w.tenant, jig.PendingFilter{}, "", 0)
	require.NoError(t, err)
	require.Len(t, list, 1, "the store filters by the given tenant")
	list, _, err = other.ListPending(t.Context(), other.tenant, jig.PendingFilter{SessionID: w.session}, "", 0)
	require.NoError(t, err)
	require.Empty(t, list)
}

// Listing with any filter reads only the index made for it.
func TestListPending_UsesItsIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	list, err := store.Queries()
	require.NoError(t, err)
	query := list["ApprovalsListed"]
	direct(t, storetest.URL(t), w.tenant, func(tx pgx.Tx) {
		for _, setting := range []string{"plan_cache_mode = force_generic_plan", "enable_seqscan = off", "enable_sort = off"} {
			_, err := tx.Exec(t.Context(), "set local "+setting)
			require.NoError(t, err)
		}
		_, err := tx.Prepare(t.Context(), "listed", query)
		require.NoError(t, err)
		rows, err := tx.Query(t.Context(), "explain execute listed ("+strings.TrimSuffix(strings.Repeat("null, ", 17), ", ")+")",
			pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		whole := strings.Join(plan, "\n")
		require.Contains(t, whole, "approvals_listing", whole)
		require.NotContains(t, whole, "Sort", whole)
		for _, column := range []string{"kind", "tool", "session_id", "listed_agent", "listed_requester"} {
			require.Regexp(t, "Index Cond:.*"+column, whole)
		}
	})
}

// Statements whose filters are optional are planned for the filters that are given, because a generic plan cannot use the index of any.
func TestQueries_WithOptionalFiltersAreNotPlannedGenerically(t *testing.T) {
	t.Parallel()
	all, err := store.Queries()
	require.NoError(t, err)
	optional := regexp.MustCompile(`\(\$\d+(::\w+)? (= ''|is null) or \w+\.?\w* (=|>|<)|\(not \$\d+::boolean or`)
	// ApprovalsListed has an index that serves every filter; the others read the few rows of one key in any case.
	exempt := []string{"ApprovalsListed", "DocumentsSeen", "DocumentVersions"}
	found := 0
	for name, text := range all {
		if optional.MatchString(text) && !strings.Contains("\n"+text, "\nupdate ") && !slices.Contains(exempt, name) {
			found++
			require.Contains(t, text, "-- plan: custom\n", "%s has optional filters", name)
		}
	}
	require.Positive(t, found)
}

// BenchmarkListPending lists from 100,000 open approvals of 50 sessions and 20 tools: the first page and one from the middle, with
// each filter.
func BenchmarkListPending(b *testing.B) {
	w := world{DB: storetest.New(b), tenant: storetest.Tenant(b)}
	w.session = storetest.Session(b, w.DB, w.tenant).ID
	at := time.Now().UTC().Truncate(time.Second)
	sessions := []string{w.session}
	for len(sessions) < 50 {
		sessions = append(sessions, storetest.Session(b, w.DB, w.tenant).ID)
	}
	w.change(b, `with c as (insert into calls (tenant_id, session_id, call_id, pass, ordinal, tool, verdict, status, idempotency_key)
		select $1, ($2::text[])[1 + n % 50], '1.' || n, 1, n, 'tools' || n / 7 % 4 || '.do' || n / 7 % 20, 'ask', 'waiting', 'key' || n
		from generate_series(1, 100000) n returning session_id, call_id, tool, ordinal as n)
		insert into approvals (tenant_id, session_id, call_id, kind, tool, agent, requested_by, requested_at, summary, reasons, input)
		select $1, session_id, call_id, case when n % 100 = 0 then 'question' else 'approval' end, tool, 'agent' || n % 30,
		'person' || n % 200, $3::timestamptz - make_interval(secs => n), repeat('s', 100), '["it writes"]', '{"path":"a"}' from c`,
		w.tenant, sessions, at)
	middle := at.Add(-50_000 * time.Second)
	for name, f := range map[string]jig.PendingFilter{
		"all": {}, "tool": {Tool: "tools1.do5"}, "category": {Tool: "tools2.*"}, "kind": {Kind: jig.PendingQuestion},
		"session": {SessionID: sessions[7]}, "agent": {Agent: "agent3"}, "requester": {RequestedBy: "person17"},
		"older": {Before: middle}, "newer": {After: middle}, "everything": {Tool: "tools1.*", Agent: "agent5", RequestedBy: "person5", Before: middle},
		"nothing_found": {Agent: "nobody"}, "nothing_by_tool": {Tool: "none.*", Kind: jig.PendingReconcile},
	} {
		for _, depth := range []string{"first", "deep"} {
			b.Run(fmt.Sprintf("%s/%s", name, depth), func(b *testing.B) {
				cursor, err := "", error(nil)
				if depth == "deep" {
					all, _, failed := w.ListPending(b.Context(), w.tenant, jig.PendingFilter{After: middle.Add(-time.Second)}, "", 1)
					require.NoError(b, failed)
					_, cursor, err = w.ListPending(b.Context(), w.tenant, jig.PendingFilter{After: all[0].RequestedAt.Add(-2 * time.Second)}, "", 1)
					require.NoError(b, err)
				}
				var took []time.Duration
				for b.Loop() {
					began := time.Now()
					_, _, err := w.ListPending(b.Context(), w.tenant, f, cursor, 40)
					require.NoError(b, err)
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			})
		}
	}
}
