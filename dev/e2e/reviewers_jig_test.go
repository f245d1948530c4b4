package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
)

// says runs jig for the tenant, checks the exit code, and decodes the output into v.
func (o tenantEnv) says(code int, v any, args ...string) commandResult {
	o.t.Helper()
	got := o.jig(append(args, "--tenant", o.tenant, "--output", "json")...)
	require.Equal(o.t, code, got.code, "%v: %s%s", args, got.out, got.err)
	if v != nil {
		require.NoError(o.t, json.Unmarshal([]byte(got.out), v), "%v: %s", args, got.out)
	}
	return got
}

// keyOf creates a person's key with jig. It returns the key's file and its line in a tenant's document.
func (o tenantEnv) keyOf(person string) (file, line string) {
	o.t.Helper()
	var made struct {
		ID        string `json:"id"`
		Algorithm string `json:"algorithm"`
		PublicKey string `json:"public_key"`
	}
	file = filepath.Join(o.dir, person+".key")
	got := o.jig("key", "new", "--principal", person, "--out", file, "--output", "json")
	require.Zero(o.t, got.code, got.err)
	require.NoError(o.t, json.Unmarshal([]byte(got.out), &made), got.out)
	return file, fmt.Sprintf("  - {id: %q, algorithm: %s, principal: %s, public_key: %q}\n", made.ID, made.Algorithm, person, made.PublicKey)
}

// In a tenant where decisions must be signed, every command that decides can sign with a key and is refused without one. `jig token` makes
// the tokens that the stock CLI sends.
func TestReviewers_SignDecisions(t *testing.T) {
	t.Parallel()
	o, r := joinTenantEnv(t), newReceiver(t)
	ana, anas := o.keyOf("ana")
	ben, bens := o.keyOf("ben")
	file := filepath.Join(o.dir, "tenant.yaml")
	document := o.tenantDocument("approvals: {signals: signed}\nkeys:\n" + anas + bens)
	require.NoError(t, os.WriteFile(file, []byte(document), 0o600))
	o.says(0, nil, "catalog", "add", file, "--yes")
	write := func(name string) string {
		return o.asks("test.write", map[string]any{"url": r.URL, "name": name})
	}
	var ruled protocol.DecideResult
	var id string
	require.True(t, eventually(t.Context(), patience, func() bool {
		id = write("w")
		return o.jig("approve", id, "1.1", "--as", "ana", "--tenant", o.tenant).code != 0
	}), "the document is read within a second")
	o.says(1, &ruled, "approve", id, "1.1", "--as", "ana")
	require.Contains(t, ruled.Decisions[0].Reason, "only signed decisions")
	o.sent(id, "approve", `{"call":"1.1","by":"ana"}`)
	require.Contains(t, o.came(id, jig.EventDecisionRefused, 3), "only signed decisions")
	o.says(2, nil, "approve", id, "1.1", "--as", "ben", "--key", ana)
	o.says(0, &ruled, "approve", id, "1.1", "--key", ana)
	o.ended(id, jig.CallSucceeded)
	approved := o.came(id, jig.EventToolApproved, 1)
	require.Contains(t, approved, `"by":"ana"`)
	require.NotContains(t, approved, `"claimed":true`)

	id = write("token")
	var made struct {
		Token string `json:"token"`
	}
	o.says(0, &made, "token", id, "1.1", "--action", "deny", "--key", ana)
	o.sent(id, "approve", fmt.Sprintf(`{"call":"1.1","token":%q}`, made.Token))
	require.Contains(t, o.came(id, jig.EventDecisionRefused, 1), "token")
	o.says(0, &made, "token", id, "1.1", "--action", "approve", "--key", ana)
	o.sent(id, "approve", fmt.Sprintf(`{"call":"1.1","token":%q}`, made.Token))
	o.ended(id, jig.CallSucceeded)

	id = write("delegated")
	o.says(1, nil, "delegate", id, "1.1", "--to", "ben", "--as", "ana")
	o.says(0, nil, "delegate", id, "1.1", "--to", "ben", "--key", ana)
	o.says(0, nil, "deny", id, "1.1", "--reason", "not now", "--key", ben)
	require.Contains(t, o.ended(id, jig.CallDenied).Result.Error.Message, "not now")

	id = o.asks("person.ask", map[string]any{"question": "Which one?", "options": []string{"red", "blue"}})
	o.says(1, nil, "answer", id, "1.1", "blue", "--as", "ana")
	o.says(0, nil, "answer", id, "1.1", "blue", "--key", ana)
	require.JSONEq(t, `{"answer":"blue","by":"ana"}`, string(o.ended(id, jig.CallSucceeded).Result.Data))

	require.NotZero(t, o.jig("pause", "--tool", "test.write", "--as", "ana", "--tenant", o.tenant).code, "a pause needs a signature too")
	o.says(0, nil, "pause", "--tool", "test.write", "--reason", "a check", "--key", ana)
	o.says(0, nil, "resume", "--tool", "test.write", "--key", ben)

	for _, e := range o.requireAudited(o.tenant) {
		if e.Kind != audit.AuditRefused && e.At.After(o.eventsOf(id, jig.EventSessionStarted)[0].At) {
			require.False(t, e.Claimed, "%+v", e)
			require.NotNil(t, e.Evidence, "%+v", e)
		}
	}
}

// Grants, pauses, lists, bulk decisions, statistics, the audit and the backtest, all with jig.
func TestReviewers_UseTheCommandLine(t *testing.T) {
	t.Parallel()
	o, r := joinTenantEnv(t), newReceiver(t)
	input := func(name string) map[string]any { return map[string]any{"url": r.URL, "name": name} }
	var created protocol.CallResult
	o.says(0, &created, "grant", "create", "--tool", "test.write", "--when", "input.name.startsWith('small')", "--uses", "2", "--expires", "7d", "--yes", "--as", "ana")
	require.Equal(t, jig.CallSucceeded, o.trigger("test.write", input("small-1")).Status)
	var grants struct {
		Grants []jig.Grant `json:"grants"`
	}
	o.says(0, &grants, "grant", "list")
	require.Len(t, grants.Grants, 1)
	require.Equal(t, []string{"ana"}, grants.Grants[0].By)
	require.Equal(t, 1, grants.Grants[0].Used)
	o.says(0, nil, "grant", "revoke", grants.Grants[0].ID, "--as", "ben")
	o.asks("test.write", input("small-2"))
	o.says(0, &grants, "grant", "list")
	require.Empty(t, grants.Grants)
	o.says(0, &grants, "grant", "list", "--all")
	require.Equal(t, "ben", grants.Grants[0].RevokedBy)

	o.says(0, nil, "pause", "--tool", "test.effect", "--reason", "a check", "--as", "ana")
	in := callInput("test.effect", input("held"))
	in.Tenant = o.tenant
	held := newID(o.tenant)
	_, err := o.StartCall(t.Context(), in, held)
	require.NoError(t, err)
	require.True(t, eventually(t.Context(), patience, func() bool {
		view, err := o.Status(t.Context(), o.tenant, held)
		return err == nil && len(view.Paused) == 1 && len(view.Calls) == 1
	}))
	var paused struct {
		Changed bool        `json:"changed"`
		Pauses  []jig.Pause `json:"pauses"`
	}
	o.says(0, &paused, "pause", "--list")
	require.Len(t, paused.Pauses, 1)
	requests, _ := r.count("held")
	require.Zero(t, requests)
	o.says(0, &paused, "resume", "--tool", "test.effect", "--as", "ana")
	require.True(t, paused.Changed)
	o.ended(held, jig.CallSucceeded)

	var ids []string
	for i := range 5 {
		ids = append(ids, o.asks("test.once", input(fmt.Sprintf("many-%d", i))))
	}
	o.asks("person.ask", map[string]any{"question": "Well?"})
	o.requireListed(7)
	o.requireListed(5, "--tool", "test.once")
	o.requireListed(6, "--tool", "test.*", "--kind", "approval")
	o.requireListed(1, "--kind", "question")
	o.requireListed(1, "--session", ids[0])
	o.requireListed(0, "--older", "1h")
	o.requireListed(7, "--requested-by", "tester", "--newer", "1h")
	o.says(0, nil, "deny", ids[4], "1.1", "--reason", "no", "--as", "ana")
	var bulk struct {
		Decisions []jig.Ruled `json:"decisions"`
		Accepted  int         `json:"accepted"`
	}
	o.says(0, &bulk, "approve", "--all", "--tool", "test.once", "--yes", "--as", "ana")
	require.Len(t, bulk.Decisions, 4)
	require.Equal(t, 4, bulk.Accepted)
	for i := range 4 {
		o.ended(ids[i], jig.CallSucceeded)
		requests, _ := r.count(fmt.Sprintf("many-%d", i))
		require.Equal(t, 1, requests)
	}
	o.requireListed(0, "--tool", "test.once")

	var statistics protocol.ApprovalStats
	o.says(0, &statistics, "approvals", "statistics", "--since", "1h")
	require.Equal(t, 2, statistics.Open.Count)
	require.Equal(t, 1, statistics.Decided.Outcomes[protocol.OutcomeDenied])
	require.Equal(t, 1, statistics.Decided.Outcomes[protocol.OutcomeGranted])
	require.Equal(t, 5, statistics.Decided.Outcomes[protocol.OutcomeApproved], "four calls and the grant")
	o.requireBacktest()
	o.requireAuditFiles()
}

// requireListed checks how many approvals jig lists with a filter.
func (o tenantEnv) requireListed(count int, filter ...string) {
	o.t.Helper()
	var list struct {
		Approvals []jig.Pending `json:"approvals"`
	}
	o.says(0, &list, append([]string{"approvals"}, filter...)...)
	require.Len(o.t, list.Approvals, count, "%v", filter)
}

// requireBacktest checks jig's backtest of a policy that is not in force.
func (o tenantEnv) requireBacktest() {
	o.t.Helper()
	file := filepath.Join(o.dir, "never.yaml")
	require.NoError(o.t, os.WriteFile(file, []byte(`kind: policy
name: never
rules:
  - {name: none, when: "tool.name == 'test.once'", verdict: deny, reason: never again}
`), 0o600))
	var report struct {
		Moves []struct {
			Now, New jig.Verdict
			Count    int
		}
	}
	o.says(0, &report, "policy", "backtest", file, "--since", "1h")
	for _, m := range report.Moves {
		if m.New == jig.VerdictDeny {
			require.Equal(o.t, jig.VerdictAsk, m.Now)
			require.Equal(o.t, 5, m.Count, "all calls so far are judged")
			return
		}
	}
	require.Fail(o.t, "no call would have been denied", "%+v", report)
}

// requireAuditFiles exports the tenant's audit with jig and verifies it. A changed byte must be found.
func (o tenantEnv) requireAuditFiles() {
	o.t.Helper()
	file := filepath.Join(o.dir, "audit.jsonl")
	var exported struct {
		Rows int64 `json:"rows"`
	}
	o.says(0, &exported, "audit", "export", "--out", file)
	var report struct {
		OK   bool  `json:"ok"`
		Rows int64 `json:"rows"`
	}
	o.says(0, &report, "audit", "verify", file)
	require.True(o.t, report.OK)
	require.Equal(o.t, exported.Rows, report.Rows)
	listed := o.says(0, nil, "audit", "list", "--since", "1h")
	require.Equal(o.t, int(exported.Rows), strings.Count(listed.out, "\n"))
	whole, err := os.ReadFile(file)
	require.NoError(o.t, err)
	changed := filepath.Join(o.dir, "changed.jsonl")
	at := strings.Index(string(whole), "ana") // forge another decider
	require.Positive(o.t, at)
	whole[at] = 'u'
	require.NoError(o.t, os.WriteFile(changed, whole, 0o600))
	var broken struct {
		OK     bool `json:"ok"`
		Broken *struct {
			N int64 `json:"n"`
		} `json:"broken"`
	}
	o.says(1, &broken, "audit", "verify", changed)
	require.False(o.t, broken.OK)
	require.NotNil(o.t, broken.Broken)
	require.Positive(o.t, broken.Broken.N)
}
