package store_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// planned is a node of a plan that EXPLAIN ANALYZE printed.
type planned struct {
	Table   string    `json:"Relation Name"`                 //nolint:tagliatelle // PostgreSQL names it
	Rows    float64   `json:"Actual Rows"`                   //nolint:tagliatelle // PostgreSQL names it
	Loops   float64   `json:"Actual Loops"`                  //nolint:tagliatelle // PostgreSQL names it
	Removed float64   `json:"Rows Removed by Filter"`        //nolint:tagliatelle // PostgreSQL names it
	Recheck float64   `json:"Rows Removed by Index Recheck"` //nolint:tagliatelle // PostgreSQL names it
	Plans   []planned `json:"Plans"`                         //nolint:tagliatelle // PostgreSQL names it
}

// read returns how many rows of tables a plan read, those that it did not use included.
func (p planned) read() (rows float64) {
	if p.Table != "" { // a bitmap's index is read for its table
		rows = (p.Rows + p.Removed + p.Recheck) * p.Loops
	}
	for _, below := range p.Plans {
		rows += below.read()
	}
	return rows
}

// rowsRead runs a statement with arguments as the application's role does, and returns how many rows it read.
func rowsRead(t *testing.T, tx pgx.Tx, query string, args ...any) float64 {
	t.Helper()
	settings := "set local plan_cache_mode = force_custom_plan"
	if strings.Contains(query, "-- plan: ordered\n") {
		settings += "; set local enable_bitmapscan = off; set local enable_seqscan = off"
	}
	_, err := tx.Exec(t.Context(), settings)
	require.NoError(t, err)
	var plan []byte
	require.NoError(t, tx.QueryRow(t.Context(), "explain (analyze, format json) "+query, append([]any{pgx.QueryExecModeExec}, args...)...).Scan(&plan))
	var whole []struct{ Plan planned }
	require.NoError(t, json.Unmarshal(plan, &whole))
	return whole[0].Plan.read()
}

// In a tenant of many ended sessions, a page reads few more rows than it shows, whatever its filter is: also where one value of a filter is
// rare, where nearly all sessions were started by others, and where nothing matches.
func TestListSessions_ReadsFewRows(t *testing.T) {
	t.Parallel()
	w := world{DB: storetest.New(t), tenant: storetest.Tenant(t)}
	w.session = storetest.Session(t, w.DB, w.tenant).ID
	const many = 20_000
	w.change(t, `insert into sessions (tenant_id, session_id, status, agent, agent_name, principal, parent_id, parent_call, reason, created_at)
		select $1, 'ses_size' || n, case when n % 500 = 0 then 'failed' when n % 4999 = 0 then 'working' else 'completed' end, '{}',
			case when n % 1000 = 0 then 'rare' else 'usual' end, json_build_object('id', case when n % 1001 = 0 then 'rare' else 'usual' end),
			case when n % 20 <> 0 then 'ses_size' || n / 20 * 20 else '' end, case when n % 20 <> 0 then '1.' || n else '' end,
			case when n % 1003 = 0 then 'partial' else '' end, now() - make_interval(secs => n)
		from generate_series(1, $2::integer) n`, w.tenant, many)
	list, err := store.Queries()
	require.NoError(t, err)
	owner, err := pgx.Connect(t.Context(), storetest.OwnerURL(t))
	require.NoError(t, err)
	defer func() { _ = owner.Close(t.Context()) }()
	_, err = owner.Exec(t.Context(), "analyze sessions")
	require.NoError(t, err)
	all := []string{"working", "input_required", "completed", "failed", "canceled"}
	direct(t, storetest.URL(t), w.tenant, func(tx pgx.Tx) {
		for _, statuses := range [][]string{all, {"completed"}, {"failed"}, {"canceled"}, {"working", "input_required"}} {
			for _, agent := range []string{"", "usual", "rare", "none"} {
				for _, by := range []string{"", "usual", "rare", "none"} {
					for _, parent := range []string{"", "ses_size40", "none"} {
						for _, topmost := range []bool{true, false} {
							name := fmt.Sprint(statuses, agent, by, parent, topmost)
							read := rowsRead(t, tx, list["SessionsListed"], w.tenant, time.Now(), "", time.Time{}, statuses, agent, by, parent, topmost && parent == "", 51, "")
							require.LessOrEqual(t, read, 1500.0, name)
						}
					}
				}
			}
		}
		for _, reason := range []string{"partial", "none"} {
			read := rowsRead(t, tx, list["SessionsListed"], w.tenant, time.Now(), "", time.Time{}, all, "", "", "", true, 51, reason)
			require.LessOrEqual(t, read, 1500.0, reason)
		}
	})
}

// usage returns a report with all groups, or with by.
func (w world) usage(t *testing.T, r protocol.UsageRequest) []protocol.UsageRow {
	t.Helper()
	r.Tenant = w.tenant
	rows, err := w.Usage(t.Context(), r)
	require.NoError(t, err)
	return rows
}

// Reports are the same before and after days are summed up, to the last row, wherever they begin and end; and reading them takes few rows.
func TestUsage_OfSummedDaysIsExact(t *testing.T) {
	t.Parallel()
	w := world{DB: storetest.New(t), tenant: storetest.Tenant(t)}
	w.session = storetest.Session(t, w.DB, w.tenant).ID
	const days, perDay = 20, 200
	random := rand.New(rand.NewPCG(1, 2))
	at := func() time.Time {
		return time.Now().UTC().Truncate(24 * time.Hour).Add(24*time.Hour - time.Duration(random.Int64N(int64(days*24*time.Hour))))
	}
	times := make([]time.Time, days*perDay)
	for i := range times {
		times[i] = at()
	}
	w.change(t, `with s as (
			insert into sessions (tenant_id, session_id, status, agent, agent_name, principal)
			select $1, 'ses_use' || n, 'completed', '{}', 'agent' || n % 3, '{}' from generate_series(1, 20) n returning session_id),
		t as (
			insert into turns (tenant_id, session_id, pass, body, tokens, model, output_tokens, cost, created_at)
			select $1, 'ses_use' || 1 + n % 20, n, '{}', n % 7 + 5, 'model' || n % 4, 3, n, a from unnest($2::timestamptz[]) with ordinality q(a, n)
			where exists (select from s) returning 1)
		insert into calls (tenant_id, session_id, call_id, pass, ordinal, tool, verdict, status, idempotency_key, result, started_at)
		select $1, 'ses_use' || 1 + n % 20, '1.' || n, 1, n, 'tool' || n % 5, 'run', 'succeeded', 'key' || n, '{}', a + interval '1 minute'
		from unnest($2::timestamptz[]) with ordinality q(a, n) where exists (select from t)`, w.tenant, times)
	reports := []protocol.UsageRequest{
		{Since: at().Add(-days * 24 * time.Hour), By: []string{"day"}},
		{Since: at().Add(-days * 24 * time.Hour), By: protocol.UsageDimensions()[:3]},
		{Since: at().Add(-days * 24 * time.Hour), SessionID: "ses_use3"},
	}
	for range 20 {
		one, other := at(), at()
		if other.Before(one) {
			one, other = other, one
		}
		reports = append(reports, protocol.UsageRequest{Since: one, Until: other, By: []string{"agent", "tool"}},
			protocol.UsageRequest{Since: one, Until: other.Truncate(24 * time.Hour), By: []string{"day"}, Agent: "agent1"},
			protocol.UsageRequest{Since: one.Truncate(24 * time.Hour), Until: other, By: []string{"model"}, Tool: "tool2"})
	}
	before := make([][]protocol.UsageRow, len(reports))
	for i, r := range reports {
		before[i] = w.usage(t, r)
	}
	require.NotEmpty(t, before[0])
	for {
		worked, err := w.SumUsage(t.Context(), 1000)
		require.NoError(t, err)
		if worked == 0 {
			break
		}
	}
	for i, r := range reports {
		require.Equal(t, before[i], w.usage(t, r), "%+v", r)
	}
	list, err := store.Queries()
	require.NoError(t, err)
	direct(t, storetest.URL(t), w.tenant, func(tx pgx.Tx) {
		var sums, rest int
		require.NoError(t, tx.QueryRow(t.Context(), "select count(*) from usage_days").Scan(&sums))
		require.Positive(t, sums)
		today := time.Now().UTC().Truncate(24 * time.Hour)
		require.NoError(t, tx.QueryRow(t.Context(), "select count(*) from turns where created_at >= $1", today.Add(-24*time.Hour)).Scan(&rest))
		read := rowsRead(t, tx, list["UsageGrouped"], w.tenant, today.Add(-10*24*time.Hour), today.Add(24*time.Hour), []string{"day"}, "", "", "", "", 500,
			today.Add(-10*24*time.Hour), today)
		require.LessOrEqual(t, read, float64(sums+5*rest), "only sums are read for days that have been summed up")
	})
}
