package workflows_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/canonical"
	"github.com/jig-run/jig/internal/store/storetest"
)

// ending is the outcome of an attempt after a mutation.
type ending string

const (
	// asked: a person is shown what would run now, and exactly that runs after a new decision.
	asked ending = "asks again"
	// doubt: a person is asked whether the effect happened.
	doubt ending = "asked what happened"
	// denied, failed: the call has ended without an effect.
	denied ending = "denied"
	failed ending = "failed"
	// missing, away: the attempt fails with NOT_FOUND or UNAVAILABLE.
	missing ending = "NOT_FOUND"
	away    ending = "UNAVAILABLE"
	// same: the change does not concern what was approved, so exactly the approved payment is made, once.
	same ending = "runs as approved"
	// unasked: with the change nobody has to approve the call. Another tool than the payment runs, or policy allows it.
	unasked ending = "runs as policy says"
	// unseen: a documented limit. If the database's owner rewrites everything that is compared, it goes unnoticed.
	unseen ending = "limit: not noticed"
)

// mutation is a change and its expected outcome.
type mutation struct {
	change func(t *testing.T, v *vault) // nil if only columns change
	sql    []string
	// in changes the input of the attempt. activity is another name under which it runs.
	in       func(t *testing.T, v *vault, in *activities.RunInput)
	activity string
	end      ending
}

// columns returns mutations that consist of SQL only.
func columns(end ending, list ...[]string) map[string]mutation {
	m := map[string]mutation{}
	for _, sql := range list {
		m[strings.Join(sql, " + ")] = mutation{sql: sql, end: end}
	}
	return m
}

const otherInput = `input = '{"amount":9000,"memo":"x","to":"eve"}'`

// noResult makes a call open again, as the table's constraint requires.
const noResult = `result = null, summary = '', error = null, finished_at = null`

func approvedMutations() map[string]mutation {
	all := columns(asked,
		[]string{"calls: " + otherInput}, []string{`calls: input = '{"amount":10,"to":"eve"}'`}, []string{`calls: input = '{"amount":10.5e1,"to":"bob"}'`},
		[]string{`calls: input = '{"amount":10,"to":"bob"}'`}, // without the default that was filled in
		[]string{"calls: version = 'f00d'"}, []string{"calls: version = ''"},
		[]string{"calls: digest = 'f00d'"}, []string{"calls: digest = ''"},
		[]string{"calls: policy_version = 'other@1'"}, []string{"calls: policy_version = ''"},
		[]string{"calls: tool = 'bank.wipe'"},
		[]string{"approvals: status = 'denied'"}, []string{"approvals: status = 'expired'"}, []string{"approvals: status = 'canceled'"},
		[]string{"approvals: status = 'open', decided_at = null"},
		[]string{"approvals: approved_digest = 'f00d'"}, []string{"approvals: approved_digest = ''"},
		[]string{"approvals: kind = 'reconcile'"}, []string{"approvals: kind = 'question'"}, []string{"approvals: call_id = '1.2', status = 'canceled'"},
		[]string{"approvals: grant_id = 'grt_none'"},
		[]string{"approvals: votes = null, decided_by = ''"}, []string{"approvals: votes = '[]', decided_by = ''"},
		[]string{`approvals: votes = '[{"by":"ben","counts":[7],"at":"2026-01-01T00:00:00Z"}]'`},
		[]string{`approvals: terms = '{"requirements":[{"quorum":2}]}'`},
		// Pairs.
		[]string{"calls: " + otherInput, "calls: digest = 'f00d'"}, []string{"calls: " + otherInput, "calls: verdict = 'run'"},
		[]string{"calls: " + otherInput, "calls: signature = ''"}, []string{"calls: " + otherInput, "approvals: input = '{\"amount\":9000,\"to\":\"eve\"}'"},
		[]string{"calls: digest = 'f00d'", "approvals: approved_digest = 'f00d'"}, []string{"calls: digest = 'f00d'", "approvals: digest = 'f00d'"},
		[]string{"calls: version = 'f00d'", "calls: verdict = 'run'"}, []string{"calls: policy_version = 'other@1'", "approvals: policy_version = 'other@1'"},
		[]string{"calls: verdict = 'run'", "approvals: status = 'denied'"}, []string{"calls: verdict = 'run'", "approvals: status = 'open', decided_at = null"},
		[]string{"calls: verdict = 'run'", "calls: reasons = '[\"a person confirmed it in a message\"]'"},
		[]string{"calls: idempotent = true", "calls: " + otherInput}, []string{"calls: fence = 2", "calls: " + otherInput},
		[]string{"approvals: status = 'consumed', consumed_at = now()", "approvals: approved_digest = ''"},
		[]string{"calls: idempotent = true, write = false", "calls: digest = ''"},
		[]string{"calls: verdict = 'run', fence = 0, idempotent = true, write = false"}, []string{"calls: verdict = 'run'"},
	)
	maps.Copy(all, columns(denied, []string{`calls: status = 'denied', result = '{"success":false}'`}))
	maps.Copy(all, columns(failed, []string{`calls: input = '{"to":"eve"}'`}, []string{`calls: input = '{"amount":"much","to":"eve"}'`},
		[]string{"calls: input = null"}, []string{"sessions: principal = principal", "sessions: agent = jsonb_set(agent::jsonb, '{tools}', '[\"bank.read\"]')::json", "calls: digest = ''"}))
	maps.Copy(all, columns(doubt, []string{"calls: status = 'executing', fence = 1"}, []string{"calls: status = 'executing', fence = 1", "calls: " + otherInput}))
	maps.Copy(all, columns(missing, []string{"calls: status = 'waiting'"}, []string{"calls: status = 'unknown'"},
		[]string{"calls: status = 'waiting'", "approvals: status = 'denied'"}))
	maps.Copy(all, columns(away, []string{"calls: tool = 'bank.none'"}))
	maps.Copy(all, columns(unasked, []string{"calls: tool = 'bank.read'"}))
	maps.Copy(all, columns(same,
		[]string{"calls: pass = 7"}, []string{"calls: ordinal = 7"}, []string{"calls: provider_id = 'x'"}, []string{"calls: signature = 'x'"},
		[]string{"calls: concurrency_key = 'x'"}, []string{"calls: reasons = null"}, []string{"calls: write = false"},
		[]string{"calls: patch = '[]', edited_by = 'eve'"}, []string{"calls: fence = 5"}, []string{"calls: attempt = 'att_x'"},
		[]string{`calls: input = '{ "to": "bob",  "memo":"rent", "amount": 10.0 }'`},
		[]string{"approvals: note = 'x', reason = 'x', summary = 'x'"}, []string{"approvals: decided_by = 'eve', claimed = false"},
		[]string{"approvals: expires_at = now() - interval '1 day'"}, []string{"approvals: digest = 'f00d'"}, []string{"approvals: input = null"},
		[]string{"approvals: status = 'consumed', consumed_at = now()"}, []string{"sessions: task = 'x', pass = 9"},
	))
	for name, m := range everywhere() {
		all[name] = m
	}
	return all
}

// everywhere returns the mutations of anything but the call's row and the approval's row.
func everywhere() map[string]mutation {
	sell := func(change func(*jig.Tool)) func(*testing.T, *vault) {
		return func(t *testing.T, v *vault) { t.Helper(); v.sell(v.catalog(t, change)) }
	}
	govern := func(rules ...string) func(*testing.T, *vault) {
		return func(t *testing.T, v *vault) { t.Helper(); v.govern(t, rules...) }
	}
	return map[string]mutation{
		"catalog: another revision":    {change: sell(func(c *jig.Tool) { c.Revision++ }), end: asked},
		"catalog: another description": {change: sell(func(c *jig.Tool) { c.Description = "Pays twice." }), end: asked},
		"catalog: destructive now":     {change: sell(func(c *jig.Tool) { c.Permission = jig.PermissionDestructive }), end: asked},
		"catalog: always asks now":     {change: sell(func(c *jig.Tool) { c.Approval = jig.ApprovalAlwaysAsk }), end: asked},
		"catalog: idempotent now":      {change: sell(func(c *jig.Tool) { c.Idempotent = true }), end: asked},
		"catalog: another timeout":     {change: sell(func(c *jig.Tool) { c.Timeout = time.Hour }), end: asked},
		"catalog: a permission needed": {change: sell(func(c *jig.Tool) { c.RequiredPermission = "money" }), end: failed},
		"catalog: others' tool now":    {change: sell(func(c *jig.Tool) { c.Tenants = []string{"others"} }), end: failed},
		"catalog: gone":                {change: sell(func(c *jig.Tool) { c.Name = "" }), end: away},
		"catalog: a read now":          {change: sell(func(c *jig.Tool) { c.Permission = jig.PermissionRead }), end: unasked},

		"policy: denies now":          {change: govern("  - {name: no, when: 'true', verdict: deny}\n"), end: denied},
		"policy: denies large ones":   {change: govern("  - {name: no, when: 'input.amount > 100', verdict: deny}\n"), end: same},
		"policy: asks two people now": {change: govern(quorumRule), end: same},
		"policy: would let it run":    {change: govern("  - {name: yes, when: 'true', verdict: run}\n"), end: same},
		"policy: two documents more":  {change: govern("  - {name: a, when: 'true', verdict: ask}\n", "  - {name: b, when: 'true', verdict: run}\n"), end: same},
		"policy: cannot be found": {change: func(t *testing.T, v *vault) {
			t.Helper()
			v.lost = jig.Errorf(jig.CodeUnavailable, "the policies are away")
		}, end: away},
		"policy: another, and the row's input": {change: govern(quorumRule), sql: []string{"calls: " + otherInput}, end: asked},

		"installation: a copy of the database": {change: func(t *testing.T, v *vault) { t.Helper(); v.serve(t, elsewhere{v.db}) }, end: asked},
		"digest: of the form before":           {change: func(t *testing.T, v *vault) { t.Helper(); v.digestAs(t, map[string]any{"v": 1}) }, end: asked},
		"digest: with another preview": {change: func(t *testing.T, v *vault) {
			t.Helper()
			v.digestAs(t, map[string]any{"preview": map[string]string{"title": "Pays bob."}})
		}, end: asked},
		"digest: of another installation":   {change: func(t *testing.T, v *vault) { t.Helper(); v.digestAs(t, map[string]any{"installation": "elsewhere"}) }, end: asked},
		"digest: as the engine computes it": {change: func(t *testing.T, v *vault) { t.Helper(); v.digestAs(t, nil) }, end: same},

		"request: another call that waits": {in: func(_ *testing.T, _ *vault, in *activities.RunInput) { in.Call = "1.2" }, end: asked},
		"request: a destructive call":      {in: func(_ *testing.T, _ *vault, in *activities.RunInput) { in.Call = "1.3" }, end: asked},
		"request: no such call":            {in: func(_ *testing.T, _ *vault, in *activities.RunInput) { in.Call = "1.9" }, end: missing},
		"request: no call":                 {in: func(_ *testing.T, _ *vault, in *activities.RunInput) { in.Call = "" }, end: missing},
		"request: no such session":         {in: func(_ *testing.T, _ *vault, in *activities.RunInput) { in.SessionID = "ses_none" }, end: missing},
		"request: no such tenant":          {in: func(_ *testing.T, _ *vault, in *activities.RunInput) { in.Tenant = "nobody" }, end: missing},
		"request: no tenant":               {in: func(_ *testing.T, _ *vault, in *activities.RunInput) { in.Tenant = "" }, end: missing},
		"request: another session's call": {in: func(t *testing.T, v *vault, in *activities.RunInput) {
			t.Helper()
			in.SessionID = v.open(t, v.tenant)
		}, end: asked},
		"request: another tenant's session": {in: func(t *testing.T, v *vault, in *activities.RunInput) {
			t.Helper()
			in.Tenant = storetest.Tenant(t)
			v.open(t, in.Tenant)
		}, end: missing},
		"history: under another tool's name":    {activity: ledgerWipe, end: same},
		"history: under a read's name":          {activity: ledgerRead, end: same},
		"history: the wipe under a read's name": {activity: ledgerRead, in: func(_ *testing.T, _ *vault, in *activities.RunInput) { in.Call = "1.3" }, end: asked},

		"copied: under another call's id": {
			change: func(t *testing.T, v *vault) { t.Helper(); v.copied(t, v.tenant, map[string]string{"call_id": "1.7"}) },
			in:     func(_ *testing.T, _ *vault, in *activities.RunInput) { in.Call = "1.7" }, end: asked,
		},
		"copied: over another call": {
			change: func(t *testing.T, v *vault) { t.Helper(); v.copied(t, v.tenant, map[string]string{"call_id": "1.2"}) },
			in:     func(_ *testing.T, _ *vault, in *activities.RunInput) { in.Call = "1.2" }, end: asked,
		},
		"copied: into another session": {in: func(t *testing.T, v *vault, in *activities.RunInput) {
			t.Helper()
			in.SessionID = v.open(t, v.tenant)
			v.copied(t, v.tenant, map[string]string{"session_id": in.SessionID})
		}, end: asked},
		"copied: into another tenant": {in: func(t *testing.T, v *vault, in *activities.RunInput) {
			t.Helper()
			in.Tenant = storetest.Tenant(t)
			in.SessionID = v.open(t, in.Tenant)
			v.copied(t, in.Tenant, map[string]string{"tenant_id": in.Tenant, "session_id": in.SessionID})
		}, end: asked},
		"copied: the approval gone": {change: func(t *testing.T, v *vault) {
			t.Helper()
			v.owner(t, v.tenant, func(conn *pgx.Conn) {
				tag, err := conn.Exec(t.Context(), "delete from approvals where session_id = $1 and call_id = '1.1'", v.session)
				require.NoError(t, err)
				require.Equal(t, int64(1), tag.RowsAffected())
			})
		}, end: asked},
		"copied: the call gone": {change: func(t *testing.T, v *vault) {
			t.Helper()
			v.owner(t, v.tenant, func(conn *pgx.Conn) {
				_, err := conn.Exec(t.Context(), "delete from calls where session_id = $1 and call_id = '1.1'", v.session)
				require.NoError(t, err)
			})
		}, end: missing},

		// Limits: if the database's owner rewrites everything that is compared, it goes unnoticed here. The exported audit chain
		// still says what was approved.
		"limit: input, digest and approval together": {change: func(t *testing.T, v *vault) { t.Helper(); v.forge(t) }, end: unseen},
		"limit: who it is done for":                  {sql: []string{`sessions: principal = '{"id":"eve"}'`}, end: same},
		"limit: whether it may be tried again":       {sql: []string{"calls: idempotent = true"}, end: same},
	}
}

// digestAs binds the call and its approval to a digest in which the given members differ from those of the call.
func (v *vault) digestAs(t *testing.T, other map[string]any) {
	t.Helper()
	call, err := v.db.Call(t.Context(), v.tenant, v.session, "1.1")
	require.NoError(t, err)
	members := map[string]any{
		"v": 2, "installation": v.db.Installation(), "tenant": v.tenant, "session": v.session, "call": "1.1", "tool": call.Tool,
		"version": call.Version, "input": json.RawMessage(call.Input), "policy_version": call.PolicyVersion, "preview": nil,
	}
	maps.Copy(members, other)
	digest, err := canonical.Hash(members)
	require.NoError(t, err)
	v.update(t, "calls: digest = '"+digest+"'", "approvals: approved_digest = '"+digest+"', digest = '"+digest+"'")
}

// forge rewrites a call's input and everything that binds it: its digest and the approved digest.
func (v *vault) forge(t *testing.T) {
	t.Helper()
	forged := newForgery(t, v)
	v.update(t, "calls: "+otherInput+", digest = '"+forged+"'", "approvals: approved_digest = '"+forged+"', digest = '"+forged+"'")
}

// newForgery returns the digest that the engine computes for the changed input, by having the call admitted again.
func newForgery(t *testing.T, v *vault) string {
	t.Helper()
	v.update(t, "calls: "+otherInput)
	ran, err := v.attempt(t, ledgerPay, v.ref())
	require.NoError(t, err)
	require.Equal(t, jig.CallWaiting, ran.State)
	v.owner(t, v.tenant, func(conn *pgx.Conn) {
		for _, sql := range []string{
			"delete from approvals where session_id = $1 and call_id = '1.1' and status = 'open'",
			"update approvals set status = 'approved' where session_id = $1 and call_id = '1.1'",
			"update calls set status = 'reserved' where session_id = $1 and call_id = '1.1'",
		} {
			tag, err := conn.Exec(t.Context(), sql, v.session)
			require.NoError(t, err)
			require.Positive(t, tag.RowsAffected(), sql)
		}
	})
	return ran.Ask.Digest
}

func quorumMutations() map[string]mutation {
	all := columns(asked,
		[]string{"approvals: votes = null"}, []string{"approvals: votes = '[]'"}, []string{"approvals: votes = json_build_array(votes->0)"},
		[]string{"approvals: votes = json_build_array(votes->1)"}, []string{"approvals: votes = json_build_array(votes->0, votes->0)"},
		[]string{`approvals: votes = replace(votes::text, '"fay"', '"flo"')::json`}, []string{"approvals: votes = '{}'"},
		[]string{`approvals: votes = replace(votes::text, '[0]', '[]')::json`},
		[]string{`approvals: terms = replace(terms::text, '"quorum":2', '"quorum":3')::json`},
		[]string{"calls: verdict = 'run'", "approvals: votes = null"}, []string{"calls: " + otherInput},
		[]string{"approvals: grant_id = 'grt_none'"},
	)
	maps.Copy(all, columns(same,
		[]string{`approvals: terms = replace(terms::text, '"quorum":2', '"quorum":1')::json`}, []string{"approvals: terms = null"},
		[]string{"approvals: delegations = '[]'"},
	))
	// The terms exclude those on whose word the call rests, and now one of the voters is among them.
	maps.Copy(all, columns(asked, []string{"approvals: requested_by = 'flo'"}))
	return all
}

func waitingMutations() map[string]mutation {
	all := columns(asked,
		[]string{"calls: status = 'reserved'"}, []string{"calls: status = 'reserved', verdict = 'run'"},
		[]string{"calls: status = 'reserved'", "approvals: kind = 'reconcile'"},
		[]string{"calls: status = 'reserved'", "approvals: status = 'approved', decided_at = now()"},
		[]string{"calls: status = 'reserved'", "approvals: status = 'approved', decided_at = now(), approved_digest = digest"},
		[]string{"calls: status = 'reserved', idempotent = true, verdict = 'run'", "approvals: status = 'canceled', decided_at = now()"},
		[]string{"calls: " + otherInput}, []string{"calls: version = 'f00d'"},
	)
	maps.Copy(all, columns(missing, []string{"approvals: status = 'approved', decided_at = now(), approved_digest = digest"},
		[]string{"approvals: status = 'denied', decided_at = now()"}))
	maps.Copy(all, columns(asked, []string{ // a vote is missing, and only those count
		"calls: status = 'reserved'", "approvals: status = 'approved', decided_at = now(), approved_digest = digest, decided_by = 'eve'",
	}))
	return all
}

func deniedMutations() map[string]mutation {
	return columns(asked,
		[]string{"calls: status = 'reserved', " + noResult}, []string{"calls: status = 'reserved', verdict = 'run', " + noResult},
		[]string{"calls: status = 'reserved', " + noResult, "approvals: status = 'approved'"},
	)
}

func grantMutations() map[string]mutation {
	all := columns(asked,
		[]string{"grants: revoked_at = now()"}, []string{"grants: used = max_uses"}, []string{"grants: expires_at = now()"},
		[]string{"calls: " + otherInput}, []string{"approvals: votes = '[]'", "grants: revoked_at = now()"},
		[]string{"calls: digest = 'f00d'", "grants: revoked_at = now()"}, []string{"calls: verdict = 'run'", "grants: revoked_at = now()"},
		[]string{"grants: meaning = 'f00d'"}, []string{"grants: meaning = ''"}, []string{"calls: digest = 'f00d'", "grants: meaning = 'f00d'"},
	)
	sell := func(change func(*jig.Tool)) func(*testing.T, *vault) {
		return func(t *testing.T, v *vault) { t.Helper(); v.sell(v.catalog(t, change)) }
	}
	all["catalog: another revision"] = mutation{change: sell(func(c *jig.Tool) { c.Revision++ }), end: asked}
	all["catalog: another timeout"] = mutation{change: sell(func(c *jig.Tool) { c.Timeout = time.Hour }), end: asked}
	all["catalog: another description"] = mutation{change: sell(func(c *jig.Tool) { c.Description = "Pays somebody, at once." }), end: same}
	all["catalog: another icon"] = mutation{change: sell(func(c *jig.Tool) { c.Icon = "coin" }), end: same}
	maps.Copy(all, columns(same, []string{"grants: used = max_uses - 1"}, []string{"grants: note = 'x'"}, []string{"approvals: grant_id = 'grt_none'"},
		[]string{"calls: digest = 'f00d'"}, []string{"approvals: status = 'expired'"}, []string{"calls: verdict = 'run'"}))
	return all
}
