package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	audittool "github.com/jig-run/jig/internal/builtin/audit"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
	"github.com/jig-run/jig/tools/tooltest"
)

// entry is the audit row of an approval.
func entry(call int) audit.Entry {
	return audit.Entry{Kind: audit.AuditApproved, By: "ana", SessionID: "ses_1", Call: jig.CallID(1, call), Reason: "ünïcode <b>"}
}

// audited returns a tenant whose chain has n rows.
func audited(t *testing.T, n int) (*store.DB, string) {
	t.Helper()
	db, tenant := storetest.New(t), storetest.Tenant(t)
	for i := range n {
		require.NoError(t, db.Audit(t.Context(), tenant, entry(i+1)))
	}
	return db, tenant
}

// chainOf reads a tenant's whole chain in small pages and checks it.
func chainOf(t *testing.T, db *store.DB, tenant string) []audit.Row {
	t.Helper()
	var rows []audit.Row
	chain := audit.NewChain(tenant, 1)
	for {
		page, err := db.AuditRows(t.Context(), tenant, int64(len(rows)), 7)
		require.NoError(t, err)
		for _, row := range page {
			require.Nil(t, chain.Next(row))
		}
		if rows = append(rows, page...); len(page) < 7 {
			break
		}
	}
	n, hash, err := db.AuditHead(t.Context(), tenant)
	require.NoError(t, err)
	require.Nil(t, chain.End(audit.Head{N: n, Hash: hash}))
	return rows
}

// asked returns the answer of the tool audit.verify.
func asked(t *testing.T, db *store.DB, tenant string) audittool.Result {
	t.Helper()
	kit := tooltest.New(t, audittool.Tools(audittool.Options{Rows: db.AuditRows, Head: db.AuditHead})...)
	kit.Invocation.Tenant = tenant
	var found audittool.Result
	kit.Succeed(audittool.VerifyTool, struct{}{}, &found)
	return found
}

func TestAudit_BeginsWithTheTenantsGenesis(t *testing.T) {
	t.Parallel()
	db, tenant := audited(t, 0)
	require.Empty(t, chainOf(t, db, tenant))
	before := time.Now().Add(-time.Second)
	require.NoError(t, db.Audit(t.Context(), tenant, entry(1), entry(2)))
	rows := chainOf(t, db, tenant)
	require.Len(t, rows, 2)
	genesis := audit.Genesis(tenant)
	require.Equal(t, fmt.Sprintf("%x", genesis), rows[0].Prev)
	var got audit.Entry
	require.NoError(t, json.Unmarshal([]byte(rows[1].Entry), &got))
	require.Equal(t, tenant, got.Tenant)
	require.True(t, got.At.After(before), got.At)
	require.Equal(t, time.UTC, got.At.Location())
	want := entry(2)
	want.Tenant, want.At = tenant, got.At
	require.Equal(t, want, got)
}

// With many concurrent writers, some of which roll back, the numbers have no gap and each row follows the one before.
func TestAudit_ConcurrentWriters(t *testing.T) {
	t.Parallel()
	db, tenant := audited(t, 0)
	const writers, each = 16, 12
	lost := jig.Errorf(jig.CodeDenied, "on second thoughts")
	var all sync.WaitGroup
	problems := make(chan error, writers*each)
	for w := range writers {
		all.Go(func() {
			for i := range each {
				if i%4 == 3 {
					if err := db.AuditAndFail(t.Context(), tenant, entry(999), lost); jig.CodeOf(err) != jig.CodeDenied {
						problems <- err
					}
					continue
				}
				if err := db.Audit(t.Context(), tenant, entry(w*each+i+1)); err != nil {
					problems <- err
				}
			}
		})
	}
	all.Wait()
	close(problems)
	for err := range problems {
		require.NoError(t, err)
	}
	rows := chainOf(t, db, tenant)
	require.Len(t, rows, writers*each*3/4)
	calls := map[string]bool{}
	for _, row := range rows {
		var e audit.Entry
		require.NoError(t, json.Unmarshal([]byte(row.Entry), &e))
		calls[e.Call] = true
	}
	require.Len(t, calls, len(rows))
	require.NotContains(t, calls, "1.999")
	require.True(t, asked(t, db, tenant).OK)
}

// The owner of the tables can change everything, and audit.verify detects it.
func TestAudit_DetectsTampering(t *testing.T) {
	t.Parallel()
	db, _ := audited(t, 0)
	for name, row := range map[string]struct {
		sql     string
		n       int64
		problem string
	}{
		"an entry":        {"update audit set entry = replace(entry, 'ana', 'bob') where n = 4", 4, "its entry does not hash to"},
		"entry and hash":  {"update audit set entry = '{}', hash = sha256(prev || int8send(n) || '{}'::bytea) where n = 4", 4, "belongs to the tenant"},
		"a hash":          {"update audit set hash = sha256('x') where n = 4", 4, "does not hash to"},
		"a link":          {"update audit set prev = sha256('x') where n = 4", 4, "it follows"},
		"a row gone":      {"delete from audit where n = 5", 5, "is missing; row 6 is in its place"},
		"the first gone":  {"delete from audit where n = 1", 1, "is missing; row 2 is in its place"},
		"the last gone":   {"delete from audit where n = 9", 9, "is missing; the chain continues to row 9"},
		"all gone":        {"delete from audit", 1, "is missing; the chain continues to row 9"},
		"the head back":   {"update audit_heads set (n, hash) = (select n, hash from audit where n = 7)", 8, "comes after the chain's end, row 7"},
		"the head's hash": {"update audit_heads set hash = sha256('x')", 9, "the chain's head says"},
		"renumbered":      {"delete from audit where n = 5; update audit set n = n + 100 where n > 5; update audit set n = n - 101 where n > 5; update audit_heads set n = 8", 5, "it follows"},
	} {
		tenant := storetest.Tenant(t)
		for i := range 9 {
			require.NoError(t, db.Audit(t.Context(), tenant, entry(i+1)))
		}
		require.Equal(t, int64(9), asked(t, db, tenant).Rows)
		tamper(t, tenant, row.sql)
		found := asked(t, db, tenant)
		require.False(t, found.OK, name)
		require.NotNil(t, found.Broken, name)
		require.Equal(t, row.n, found.Broken.N, "%s: %s", name, found.Broken)
		require.Contains(t, found.Broken.Problem, row.problem, name)
	}
}

// tamper changes a tenant's rows permanently, as the owner of the tables.
func tamper(t *testing.T, tenant, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), storetest.OwnerURL(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", tenant)
	require.NoError(t, err)
	for statement := range strings.SplitSeq(sql, ";") {
		tag, err := conn.Exec(t.Context(), statement)
		require.NoError(t, err)
		require.Positive(t, tag.RowsAffected())
	}
}

func TestAudit_RoleCanOnlyAppend(t *testing.T) {
	t.Parallel()
	db, tenant := audited(t, 3)
	for _, sql := range []string{
		"delete from audit", "delete from audit_heads", "truncate audit", "update audit set entry = ''", "update audit_heads set n = 1",
		"insert into audit (tenant_id, n, prev, hash, entry, at, kind, session_id, call_id, principal, tool, agent, outcome, in_part) select tenant_id, 4, prev, hash, entry, at, kind, '', '', '', '', '', '', false from audit limit 1",
		"insert into audit_heads (tenant_id, n, hash) values ('x', 0, sha256(''))",
		"select n from audit_heads for update",
		"alter table audit disable row level security",
		"drop function jig_audit(text, text, text, text, text, text, text, text, boolean)",
	} {
		direct(t, storetest.URL(t), tenant, func(tx pgx.Tx) {
			_, err := tx.Exec(t.Context(), sql)
			var pg *pgconn.PgError
			require.ErrorAs(t, err, &pg, sql)
			require.Equal(t, "42501", pg.Code, sql)
		})
	}
	for _, nobody := range []string{"", jig.GlobalTenant} {
		direct(t, storetest.URL(t), nobody, func(tx pgx.Tx) {
			_, err := tx.Exec(t.Context(), "select jig_audit('{}', 'approved', '', '')")
			var pg *pgconn.PgError
			require.ErrorAs(t, err, &pg)
			require.Equal(t, "42501", pg.Code)
		})
	}
	require.Len(t, chainOf(t, db, tenant), 3)
}

func TestAudit_IsSeparatedByTenant(t *testing.T) {
	t.Parallel()
	db, tenant := audited(t, 3)
	thief := storetest.Tenant(t)
	rows, err := db.AuditRows(t.Context(), thief, 0, 10)
	require.NoError(t, err)
	require.Empty(t, rows)
	rows, _, err = db.FindAudit(t.Context(), thief, protocol.AuditFilter{SessionID: "ses_1"}, 0, 10)
	require.NoError(t, err)
	require.Empty(t, rows)
	n, _, err := db.AuditHead(t.Context(), thief)
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, db.Audit(t.Context(), thief, entry(1)))
	for _, other := range []string{"", thief, jig.GlobalTenant} {
		direct(t, storetest.URL(t), other, func(tx pgx.Tx) {
			for _, table := range []string{"audit", "audit_heads"} {
				var n int
				require.NoError(t, tx.QueryRow(t.Context(), "select count(*) from "+table+" where tenant_id = $1", tenant).Scan(&n))
				require.Zero(t, n)
			}
		})
	}
	require.Len(t, chainOf(t, db, tenant), 3)
	require.Len(t, chainOf(t, db, thief), 1)
}

func TestFindAudit_FiltersBySessionAndTime(t *testing.T) {
	t.Parallel()
	db, tenant := audited(t, 4)
	other := entry(5)
	other.SessionID = "ses_2"
	require.NoError(t, db.Audit(t.Context(), tenant, other))
	tamper(t, tenant, "update audit set at = at - interval '3 days' where n <= 2")
	numbers := func(session string, since, until time.Time, after int64, limit int) []int64 {
		rows, _, err := db.FindAudit(t.Context(), tenant, protocol.AuditFilter{SessionID: session, Since: since, Until: until}, after, limit)
		require.NoError(t, err)
		list := []int64{}
		for _, row := range rows {
			list = append(list, row.N)
		}
		return list
	}
	none, yesterday := time.Time{}, time.Now().Add(-24*time.Hour)
	require.Equal(t, []int64{1, 2, 3, 4, 5}, numbers("", none, none, 0, 0))
	require.Equal(t, []int64{1, 2, 3, 4}, numbers("ses_1", none, none, 0, 10))
	require.Equal(t, []int64{2, 3}, numbers("ses_1", none, none, 1, 2))
	require.Equal(t, []int64{3, 4, 5}, numbers("", yesterday, none, 0, 10))
	require.Equal(t, []int64{1, 2}, numbers("", none, yesterday, 0, 10))
	require.Empty(t, numbers("ses_2", none, yesterday, 0, 10))
	require.Empty(t, numbers("ses_\x00", none, none, 0, 10))
}

// A decision is recorded even if its texts are very long or contain invalid characters.
func TestAudit_AcceptsLongAndInvalidTexts(t *testing.T) {
	t.Parallel()
	db, tenant := audited(t, 0)
	reasons := make([]string, 500)
	for i := range reasons {
		reasons[i] = strings.Repeat("<\x00\xff", 1000)
	}
	odd := audit.Entry{
		Kind: audit.AuditEdited, SessionID: "ses_1", By: "a\x00b\xff", Note: "€" + big(200_000), Reason: strings.Repeat("\x01", 50_000), Digest: big(9_000),
		Patch:    json.RawMessage(`[{"op":"add","path":"/a","value":"\u0000` + big(100_000) + `"}]`),
		Evidence: &identity.Evidence{Key: "k", Token: big(1_500)},
		Shown:    &audit.Shown{Summary: big(70_000), Reasons: reasons, Input: json.RawMessage(`not JSON`), Truncated: true},
	}
	before := odd.Shown.Summary
	require.NoError(t, db.Audit(t.Context(), tenant, odd))
	require.Equal(t, before, odd.Shown.Summary, "the caller's entry is not modified")
	rows := chainOf(t, db, tenant)
	require.LessOrEqual(t, len(rows[0].Entry), 64<<10)
	var got audit.Entry
	require.NoError(t, json.Unmarshal([]byte(rows[0].Entry), &got))
	require.True(t, strings.HasPrefix(got.Note, "€0123"))
	require.Equal(t, big(1_500), got.Evidence.Token, "evidence is not shortened")
	require.True(t, got.Shown.Truncated)
	require.JSONEq(t, `"not JSON"`, string(got.Shown.Input))
	require.True(t, asked(t, db, tenant).OK)

	short := audit.Entry{Kind: audit.AuditEdited, Patch: json.RawMessage(`[{"op":"test","path":"/a","value":"\u0000\ud800"}]`)}
	require.NoError(t, db.Audit(t.Context(), tenant, short))
	require.Contains(t, chainOf(t, db, tenant)[1].Entry, `\u0000\ud800`, "to the byte")
}

func TestAudit_OutlivesSessionsButNotTheTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := entry(1)
	e.SessionID = w.session
	require.NoError(t, w.Audit(t.Context(), w.tenant, e))
	require.NoError(t, w.CancelSession(t.Context(), ledger.End{Tenant: w.tenant, SessionID: w.session}))
	pruned, err := w.PruneTenant(t.Context(), w.tenant, time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, int64(1), pruned)
	require.Len(t, chainOf(t, w.DB, w.tenant), 1)
	require.NoError(t, w.EraseTenant(t.Context(), w.tenant))
	require.Empty(t, chainOf(t, w.DB, w.tenant))
}
