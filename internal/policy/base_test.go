package policy_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/canonical"
	"github.com/jig-run/jig/internal/policy"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestBaseRule_MatchesTheTruthTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		permission jig.Permission
		risk       jig.Risk
		approval   jig.ApprovalPolicy
		want       jig.Verdict
		reasons    []string
	}{
		{jig.PermissionRead, jig.RiskSafe, jig.ApprovalAuto, jig.VerdictRun, []string{"file.act only reads (permission read)"}},
		{jig.PermissionDraft, jig.RiskModerate, jig.ApprovalAuto, jig.VerdictRun, []string{"file.act only drafts (permission draft)"}},
		{jig.PermissionWrite, jig.RiskSafe, jig.ApprovalAuto, jig.VerdictAsk, []string{"file.act changes data (permission write)"}},
		{jig.PermissionDestructive, jig.RiskSafe, jig.ApprovalAuto, jig.VerdictAsk, []string{"file.act can destroy data (permission destructive)"}},
		{jig.PermissionRead, jig.RiskHigh, jig.ApprovalAuto, jig.VerdictAsk, []string{"a wrong call of file.act can do much harm (risk high)"}},
		{jig.PermissionRead, jig.RiskSafe, jig.ApprovalAlwaysAsk, jig.VerdictAsk, []string{"file.act always asks (approval always_ask)"}},
		{jig.PermissionWrite, jig.RiskHigh, jig.ApprovalAlwaysAsk, jig.VerdictAsk, []string{
			"file.act changes data (permission write)", "a wrong call of file.act can do much harm (risk high)", "file.act always asks (approval always_ask)",
		}},
		{"", "", "", jig.VerdictAsk, []string{
			"file.act has a permission that is not known: none", "file.act has a risk that is not known: none",
			"file.act has an approval setting that is not known: none",
		}},
		{"raed", jig.RiskSafe, jig.ApprovalAuto, jig.VerdictAsk, []string{"file.act has a permission that is not known: raed"}},
	} {
		tool := jig.Tool{Name: "file.act", Permission: c.permission, Risk: c.risk, Approval: c.approval}
		got := policy.BaseRuling(tool)
		require.Equal(t, policy.Ruling{Verdict: c.want, Reasons: c.reasons, PolicyVersion: policy.BaseVersion, Base: c.want == jig.VerdictAsk}, got)
	}
}

// BaseVersion is the hash of the truth table over every known value and one unknown value.
func TestBaseVersion_IsTheHashOfTheTruthTable(t *testing.T) {
	t.Parallel()
	table := map[string]jig.Verdict{}
	for _, permission := range []jig.Permission{jig.PermissionRead, jig.PermissionDraft, jig.PermissionWrite, jig.PermissionDestructive, "?"} {
		for _, risk := range []jig.Risk{jig.RiskSafe, jig.RiskModerate, jig.RiskHigh, "?"} {
			for _, approval := range []jig.ApprovalPolicy{jig.ApprovalAuto, jig.ApprovalAlwaysAsk, "?"} {
				ruling := policy.BaseRuling(jig.Tool{Permission: permission, Risk: risk, Approval: approval})
				table[fmt.Sprintf("%s %s %s", permission, risk, approval)] = ruling.Verdict
			}
		}
	}
	flow := &jig.DataFlow{ReadUntrusted: true, UntrustedArguments: []string{"/to"}}
	for _, permission := range []jig.Permission{jig.PermissionRead, jig.PermissionDraft, jig.PermissionWrite, jig.PermissionDestructive, "?"} {
		for kind, labels := range map[string]*jig.Labels{"": nil, "sends": {Sends: true}} {
			tool := jig.Tool{Permission: permission, Risk: jig.RiskSafe, Approval: jig.ApprovalAuto, Labels: labels}
			ruling, err := policy.Set(nil).Rule(t.Context(), tool, jig.Call{Flow: flow}, jig.Session{}, time.Time{})
			require.NoError(t, err)
			table[strings.TrimSpace(fmt.Sprintf("%s %s", permission, kind))+", untrusted arguments"] = ruling.Verdict
		}
	}
	const golden = "testdata/base.json"
	got, err := json.MarshalIndent(table, "", "  ")
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(golden, append(got, '\n'), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got))
	version, err := canonical.Hash(table)
	require.NoError(t, err)
	require.Equal(t, policy.BaseVersion, version, "the base rules changed: set BaseVersion")
}

// A destructive tool never runs without a person, and a tool runs only if it is known to do no more than read or draft. The rest of the tool,
// the call and the session make no difference.
func TestVerdict_HarmfulCallsDoNotRun(t *testing.T) {
	t.Parallel()
	permissions := []jig.Permission{jig.PermissionRead, jig.PermissionDraft, jig.PermissionWrite, jig.PermissionDestructive}
	holds := func(tool jig.Tool, call jig.Call, session jig.Session, pick uint8) bool {
		if int(pick) < 200 {
			tool.Permission = permissions[int(pick)%len(permissions)]
		}
		if pick%3 == 0 {
			tool.Risk, tool.Approval = jig.RiskSafe, jig.ApprovalAuto
		}
		session.Principal.Permissions = append(session.Principal.Permissions, "*")
		ruling := policy.BaseRuling(tool)
		harmless := tool.Permission == jig.PermissionRead || tool.Permission == jig.PermissionDraft
		return (harmless || ruling.Verdict == jig.VerdictAsk) && len(ruling.Reasons) > 0 && ruling.PolicyVersion != ""
	}
	// Only the contract decides, so the other generated values are arbitrary.
	require.NoError(t, quick.Check(func(name, permission, risk, approval string, idempotent bool, pick uint8, principal, status string) bool {
		tool := jig.Tool{
			Name: name, Permission: jig.Permission(permission), Risk: jig.Risk(risk), Approval: jig.ApprovalPolicy(approval), Idempotent: idempotent,
		}
		return holds(tool, jig.Call{Tool: name, Status: jig.CallStatus(status)}, jig.Session{Principal: jig.Principal{ID: principal}}, pick)
	}, &quick.Config{MaxCount: 5000}))
}
