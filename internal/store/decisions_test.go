package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// decided is an audit row of a call of a tool and an agent.
func decided(kind audit.Kind, by, call, tool, agent string) audit.Entry {
	e := audit.Entry{Kind: kind, By: by, SessionID: "ses_1", Call: call, Tool: tool, Status: jig.CallReserved, Shown: &audit.Shown{
		Kind: jig.PendingApproval, Agent: agent, Input: []byte(`{"cents":1200}`), Preview: &jig.Preview{Title: "Pays 12.00 EUR"},
	}}
	if kind == audit.AuditVoted {
		e.Status = jig.CallWaiting
	}
	return e
}

func TestDecisions_AreFilteredByPersonToolAgentOutcomeAndTime(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.New(t), storetest.Tenant(t)
	vouched := decided(audit.AuditApproved, "ben", "1.1", "ledger.pay", "payer")
	vouched.Proof, vouched.Evidence, vouched.Note = jig.ProofVouched, &identity.Evidence{Key: "srv_1"}, "fine"
	edited := decided(audit.AuditEdited, "eve", "1.6", "ledger.pay", "payer")
	edited.Status = jig.CallWaiting
	for _, e := range []audit.Entry{
		decided(audit.AuditVoted, "ana", "1.1", "ledger.pay", "payer"), vouched, decided(audit.AuditDenied, "ana", "1.2", "ledger.void", "payer"),
		{Kind: audit.AuditPaused, By: "ana", Subject: "tenant"},
		decided(audit.AuditExpired, "", "1.3", "ledger2.pay", "clerk"),
		decided(audit.AuditWithdrawn, "", "1.4", "mail.send", "clerk"), decided(audit.AuditGrantUsed, "ana", "1.5", "mail.send", "clerk"), edited,
	} {
		require.NoError(t, db.Audit(t.Context(), tenant, e))
	}
	tamper(t, tenant, "update audit set at = at - interval '3 days' where n <= 3")
	yesterday := time.Now().Add(-24 * time.Hour)
	for name, row := range map[string]struct {
		filter protocol.AuditFilter
		want   string
	}{
		"nothing":               {protocol.AuditFilter{}, "1.5 1.4 1.3 1.2 1.1"},
		"a person with a vote":  {protocol.AuditFilter{By: "ana"}, "1.5 1.2 1.1"},
		"a person who changed":  {protocol.AuditFilter{By: "eve"}, "1.6"},
		"the last approver":     {protocol.AuditFilter{By: "ben"}, "1.1"},
		"what ana approved":     {protocol.AuditFilter{By: "ana", Outcome: audit.OutcomeApproved}, "1.1"},
		"approved":              {protocol.AuditFilter{Outcome: audit.OutcomeApproved}, "1.1"},
		"denied":                {protocol.AuditFilter{Outcome: audit.OutcomeDenied}, "1.2"},
		"expired":               {protocol.AuditFilter{Outcome: audit.OutcomeExpired}, "1.3"},
		"withdrawn":             {protocol.AuditFilter{Outcome: audit.OutcomeWithdrawn}, "1.4"},
		"by standing approvals": {protocol.AuditFilter{Outcome: audit.OutcomeGranted}, "1.5"},
		"a tool":                {protocol.AuditFilter{Tool: "mail.send"}, "1.5 1.4"},
		"a category":            {protocol.AuditFilter{Tool: "ledger.*"}, "1.2 1.1"},
		"an agent":              {protocol.AuditFilter{Agent: "clerk"}, "1.5 1.4 1.3"},
		"a session":             {protocol.AuditFilter{SessionID: "ses_2"}, ""},
		"since":                 {protocol.AuditFilter{Since: yesterday}, "1.5 1.4 1.3"},
		"until":                 {protocol.AuditFilter{Until: yesterday}, "1.2 1.1"},
		"everything":            {protocol.AuditFilter{By: "ana", Tool: "ledger.*", Agent: "payer", Outcome: audit.OutcomeDenied, Until: yesterday, SessionID: "ses_1"}, "1.2"},
		"half a name":           {protocol.AuditFilter{By: "an"}, ""},
	} {
		for _, limit := range []int{1, 2, 40} {
			var calls []string
			for cursor, more := "", true; more; more = cursor != "" {
				page, next, err := db.Decisions(t.Context(), tenant, row.filter, cursor, limit)
				require.NoError(t, err, name)
				require.LessOrEqual(t, len(page), limit)
				for _, p := range page {
					calls = append(calls, p.Call)
				}
				cursor = next
			}
			require.Equal(t, row.want, strings.Join(calls, " "), "%s, %d a page", name, limit)
		}
	}
	page, _, err := db.Decisions(t.Context(), tenant, protocol.AuditFilter{By: "ben"}, "", 1)
	require.NoError(t, err)
	d := page[0].Decided
	require.Equal(t, []any{"approved", "ben", "srv_1", "fine", jig.ProofVouched, false}, []any{d.Outcome, d.By, d.Key, d.Note, d.Proof, d.InPart})
	require.Equal(t, "Pays 12.00 EUR", page[0].Preview.Title)
	rows, next, err := db.FindAudit(t.Context(), tenant, protocol.AuditFilter{By: "ana"}, 0, 2)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 3, 3}, []int64{rows[0].N, rows[1].N, next})
	for field, filter := range map[string]protocol.AuditFilter{"outcome": {Outcome: "odd"}, "tool": {Tool: "fi*"}} {
		_, _, err = db.Decisions(t.Context(), tenant, filter, "", 0)
		requireCode(t, jig.CodeInvalidInput, err)
		require.Equal(t, field, jig.AsError(err).Field)
		_, _, err = db.FindAudit(t.Context(), tenant, filter, 0, 0)
		requireCode(t, jig.CodeInvalidInput, err)
	}
}

// A decided call can be shown for ever: the record of its decisions outlives its session.
func TestDecisionsOf_OutliveTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.asking(t)
	w.decide(t, "k", jig.Decision{Call: c.ID, By: "ana", Answer: jig.AnswerApprove})
	list, err := w.DecisionsOf(t.Context(), w.tenant, w.session, c.ID)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, jig.CallReserved, list[0].Decided.Status, "what the call has come to")
	require.Equal(t, jig.PendingApproval, list[0].Kind)
	tamper(t, w.tenant, "delete from sessions where session_id = '"+w.session+"'")
	after, err := w.DecisionsOf(t.Context(), w.tenant, w.session, c.ID)
	require.NoError(t, err)
	list[0].Decided.Status = ""
	require.Equal(t, list, after)
}

// crowd fills the chain of a tenant with n decisions of ben and of the tool pay.out. Row 7 is ana's and of the tool pay.back.
func crowd(t *testing.T, tenant string, n int) {
	t.Helper()
	tamper(t, tenant, "insert into tenants (tenant_id) values ('"+tenant+"')")
	tamper(t, tenant, fmt.Sprintf("insert into audit_heads (tenant_id, n, hash) values ('%s', %d, sha256(''))", tenant, n))
	tamper(t, tenant, fmt.Sprintf(`insert into audit (tenant_id, n, prev, hash, entry, at, kind, session_id, call_id, principal, tool, agent, outcome, in_part)
		select '%s', n, sha256(''), sha256(''), '{}', now() - make_interval(secs => %d - n), 'approved', 'ses_' || n / 3, '1.1',
		case when n = 7 then 'ana' else 'ben' end, case when n = 7 then 'pay.back' else 'pay.out' end, 'payer',
		case when n = 7 then 'denied' else 'approved' end, false from generate_series(1, %d) n`, tenant, n, n))
}

// A filter that matches little finds it without reading the whole chain: alone by its index, with others in pages of bounded work.
func TestDecisions_ReadABoundedPartOfTheChain(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.New(t), storetest.Tenant(t)
	crowd(t, tenant, 21_000)
	for index, args := range map[string]string{
		"audit_of_principal": "'', 'ana', '', '', '', '', ''", "audit_of_tool": "'', '', 'pay.back', '', '', '', ''", "audit_of_agent": "'', '', '', '', '', 'clerk', ''",
		"audit_of_outcome": "'', '', '', '', '', '', 'denied'", "audit_of_session": "'ses_2', '', '', '', '', '', ''",
	} {
		for _, name := range []string{"AuditFind", "AuditDecisions"} {
			require.Contains(t, planOf(t, tenant, name, args), index, name)
		}
	}
	for name, f := range map[string]protocol.AuditFilter{
		"by": {By: "ana"}, "tool": {Tool: "pay.back"}, "outcome": {Outcome: audit.OutcomeDenied},
	} {
		page, next, err := db.Decisions(t.Context(), tenant, f, "", 40)
		require.NoError(t, err)
		require.Len(t, page, 1, name)
		require.Empty(t, next)
		rows, through, err := db.FindAudit(t.Context(), tenant, f, 0, 40)
		require.NoError(t, err)
		require.Len(t, rows, 1, name)
		require.Zero(t, through)
	}
	rows, _, err := db.FindAudit(t.Context(), tenant, protocol.AuditFilter{Since: time.Now().Add(-time.Minute)}, 0, 40)
	require.NoError(t, err)
	require.NotEmpty(t, rows, "it begins with the first row of the period")
	page, _, err := db.Decisions(t.Context(), tenant, protocol.AuditFilter{Until: time.Now().Add(-20_990 * time.Second)}, "", 40)
	require.NoError(t, err)
	require.NotEmpty(t, page, "it begins with the last row of the period")
	both := protocol.AuditFilter{By: "ana", Agent: "payer"}
	page, next, err := db.Decisions(t.Context(), tenant, both, "", 40)
	require.NoError(t, err)
	require.NotEmpty(t, next)
	require.Empty(t, page, "what was looked at has none")
	page, next, err = db.Decisions(t.Context(), tenant, both, next, 40)
	require.NoError(t, err)
	require.Len(t, page, 1)
	require.Empty(t, next)
	rows, through, err := db.FindAudit(t.Context(), tenant, both, 7, 40)
	require.NoError(t, err)
	require.Empty(t, rows)
	require.Equal(t, int64(20_007), through)
}

// planOf returns how PostgreSQL runs a statement with the fragment audit_filter; texts are its arguments from $6 on, without the limit.
func planOf(t *testing.T, tenant, name, texts string) (plan string) {
	t.Helper()
	list, err := store.Queries()
	require.NoError(t, err)
	direct(t, storetest.URL(t), tenant, func(tx pgx.Tx) {
		_, err := tx.Exec(t.Context(), "set local plan_cache_mode = force_custom_plan")
		require.NoError(t, err)
		_, err = tx.Prepare(t.Context(), "audited", list[name])
		require.NoError(t, err)
		rows, err := tx.Query(t.Context(), "explain execute audited ('"+tenant+"', 0, 9223372036854775807, "+texts+", 41)", pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		plan = strings.Join(lines, "\n")
		_, err = tx.Exec(t.Context(), "deallocate audited")
		require.NoError(t, err)
	})
	return plan
}
