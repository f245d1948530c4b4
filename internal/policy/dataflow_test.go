package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/spec"
)

// untraced is a call in a session that has read untrusted data, with an argument that cannot be traced.
func untraced() jig.Call {
	return jig.Call{ID: "2.1", Tool: "mail.send", Input: []byte(`{"to":"mallory@evil.example"}`), Flow: &jig.DataFlow{
		ReadPrivate: true, ReadUntrusted: true, UntrustedArguments: []string{"/to"}, UnknownDestinations: []string{"/to"},
		Notes: []string{`/to ("mallory@evil.example") comes from the result of 1.1 (http.get)`},
	}}
}

func rulesOf(t *testing.T, document string) *policy.Rules {
	t.Helper()
	p, err := spec.LoadPolicy("p.yaml", []byte(document))
	require.NoError(t, err)
	rules, err := policy.Compile(p, "v1")
	require.NoError(t, err)
	return rules
}

const runsAll = "kind: policy\nname: all\nrules: [{name: all, when: 'true', verdict: run}]\n"

func TestUntracedArguments_AskAPerson(t *testing.T) {
	t.Parallel()
	sends := jig.Tool{Name: "mail.send", Permission: jig.PermissionWrite, Risk: jig.RiskSafe, Approval: jig.ApprovalAuto}.WithDefaults()
	fetches := jig.Tool{Name: "http.get", Permission: jig.PermissionRead, Labels: &jig.Labels{Sends: true}}.WithDefaults()
	reads := jig.Tool{Name: "crm.find", Permission: jig.PermissionRead, Labels: &jig.Labels{}}.WithDefaults()
	all := rulesOf(t, runsAll)
	for name, test := range map[string]struct {
		tool   jig.Tool
		rules  *policy.Rules
		change func(*jig.Call)
		want   jig.Verdict
	}{
		"a rule that lets everything run does not lift it": {tool: sends, rules: all, want: jig.VerdictAsk},
		"a read that sends":              {tool: fetches, want: jig.VerdictAsk},
		"a read that sends, with a rule": {tool: fetches, rules: all, want: jig.VerdictAsk},
		"a read that does not send":      {tool: reads, want: jig.VerdictRun},
		"all arguments are traced":       {tool: sends, rules: all, want: jig.VerdictRun, change: func(c *jig.Call) { c.Flow.UntrustedArguments = nil }},
		"nothing untrusted was read": {tool: sends, rules: all, want: jig.VerdictRun, change: func(c *jig.Call) {
			c.Flow = &jig.DataFlow{ReadPrivate: true}
		}},
		"a session that has read nothing": {tool: sends, rules: all, want: jig.VerdictRun, change: func(c *jig.Call) { c.Flow = nil }},
		"a rule for untraced arguments": {tool: sends, want: jig.VerdictRun, rules: rulesOf(t, `{kind: policy, name: p, rules: [
			{name: r, when: "tool.name == 'mail.send' && call.unknown_destinations == ['/to']", verdict: run, untraced: true}]}`)},
		"a rule for untraced arguments that does not hold": {tool: sends, want: jig.VerdictAsk, rules: rulesOf(t, `{kind: policy, name: p, rules: [
			{name: all, when: "true", verdict: run}, {name: r, when: "!session.read_private", verdict: run, untraced: true}]}`)},
		"a rule for untraced arguments that fails": {tool: sends, want: jig.VerdictAsk, rules: rulesOf(t, `{kind: policy, name: p, rules: [
			{name: all, when: "true", verdict: run}, {name: r, when: "input.missing == 1", verdict: run, untraced: true}]}`)},
		"another rule asks": {tool: sends, want: jig.VerdictAsk, rules: rulesOf(t, `{kind: policy, name: p, rules: [
			{name: r, when: "true", verdict: run, untraced: true}, {name: a, when: "size(call.untrusted_arguments) > 0", verdict: ask}]}`)},
		"a rule denies": {tool: sends, want: jig.VerdictDeny, rules: rulesOf(t, `{kind: policy, name: p, rules: [
			{name: d, when: "session.read_private && session.read_untrusted && tool.permission == 'write'", verdict: deny}]}`)},
	} {
		call := untraced()
		if test.change != nil {
			test.change(&call)
		}
		got := test.rules.Rule(t.Context(), test.tool, call, jig.Session{}, time.Time{})
		require.Equal(t, test.want, got.Verdict, name)
	}
}

// The reasons name the argument and the result that it came from, and neither a grant nor a confirmation takes the place of a person.
func TestUntracedArguments_AreNamedInTheReasons(t *testing.T) {
	t.Parallel()
	tool := jig.Tool{Name: "mail.send", Permission: jig.PermissionWrite}.WithDefaults()
	got := rulesOf(t, runsAll).Rule(t.Context(), tool, untraced(), jig.Session{}, time.Time{})
	require.Equal(t, []string{
		"mail.send changes data (permission write)",
		"policy all, rule all: it says run (says run, overruled)",
		"the session has read untrusted data, and the argument /to of mail.send cannot be traced to what was typed or to trusted results",
		`/to ("mallory@evil.example") comes from the result of 1.1 (http.get)`,
		"policy all, rule all would let it run with untraced: true",
	}, got.Reasons)
	require.True(t, got.Person, "no grant covers the call")
	require.False(t, got.Base, "a confirmation in a message is not enough")
	many := untraced()
	many.Flow.UntrustedArguments = []string{"/a", "/b", "/c", "/d", "/e", "/f", "/g"}
	got = policy.Set(nil).Explain(t.Context(), tool, many, jig.Session{}, time.Time{}).Ruling
	require.Contains(t, got.Reasons[1], "the arguments /a, /b, /c, /d, /e and 2 more of mail.send cannot be traced")
}

// The reasons name the change of the policy that would let the call run, if there is one.
func TestUntracedArguments_WayOut(t *testing.T) {
	t.Parallel()
	writes := jig.Tool{Name: "mail.send", Permission: jig.PermissionWrite}
	for name, test := range map[string]struct {
		tool  jig.Tool
		rules *policy.Rules
		want  string
	}{
		"no rule":           {writes, nil, "a rule with verdict: run and untraced: true would let it run"},
		"a rule that runs":  {writes, rulesOf(t, runsAll), "policy all, rule all would let it run with untraced: true"},
		"a rule that asks":  {writes, rulesOf(t, "kind: policy\nname: p\nrules: [{name: r, when: 'true', verdict: ask}]\n"), ""},
		"it always asks":    {jig.Tool{Name: "mail.send", Permission: jig.PermissionDestructive}, rulesOf(t, runsAll), ""},
		"a rule that fails": {writes, rulesOf(t, "kind: policy\nname: p\nrules: [{name: r, when: 'input.x == 1', verdict: run}]\n"), "a rule with verdict: run and untraced: true would let it run"},
	} {
		got := test.rules.Rule(t.Context(), test.tool.WithDefaults(), untraced(), jig.Session{}, time.Time{})
		require.Equal(t, jig.VerdictAsk, got.Verdict, name)
		if test.want == "" {
			require.NotContains(t, strings.Join(got.Reasons, "\n"), "untraced: true", name)
		} else {
			require.Equal(t, test.want, got.Reasons[len(got.Reasons)-1], name)
		}
	}
}

// A rule has not seen the arguments that a cut list lacks, so it cannot let the call run.
func TestUntracedArguments_NoRuleLiftsACutList(t *testing.T) {
	t.Parallel()
	tool := jig.Tool{Name: "mail.send", Permission: jig.PermissionWrite}.WithDefaults()
	for _, when := range []string{"true", "call.untrusted_arguments.all(p, p.startsWith('/to'))", "call.untrusted_arguments.exists(p, p == '/to')"} {
		rules := rulesOf(t, `{kind: policy, name: p, rules: [{name: r, when: "`+when+`", verdict: run, untraced: true}]}`)
		call := untraced()
		require.Equal(t, jig.VerdictRun, rules.Rule(t.Context(), tool, call, jig.Session{}, time.Time{}).Verdict, when)
		call.Flow.Cut = true
		got := rules.Rule(t.Context(), tool, call, jig.Session{}, time.Time{})
		require.Equal(t, jig.VerdictAsk, got.Verdict, when)
		require.Equal(t, "it has more such arguments than rules can look at, so no rule lets it run", got.Reasons[len(got.Reasons)-1])
		require.True(t, got.Person, "no grant covers the call")
	}
}

func TestCases_SayWhenACallWouldAsk(t *testing.T) {
	t.Parallel()
	rules := rulesOf(t, `
kind: policy
name: p
rules:
  - {name: runs, when: tool.name == 'mail.send', verdict: run}
  - {name: quotes, when: tool.name == 'tickets.comment', verdict: run, untraced: true}
cases:
  - {name: writes, tool: {name: mail.send}, expect: run}
  - {name: sends, tool: {name: web.get, permission: read, labels: {sends: true}}, expect: run}
  - {name: reads, tool: {name: mail.read, permission: read}, expect: run}
  - {name: lifted, tool: {name: tickets.comment}, expect: run}
  - {name: has read, tool: {name: mail.send}, session: {read_untrusted: true}, expect: run}
  - {name: asks, tool: {name: mail.drop}, expect: ask}
`)
	for i, want := range []string{"the session has read untrusted data", "the session has read untrusted data", "", "", "", ""} {
		got := policy.Test(t.Context(), rules, nil)[i]
		require.True(t, got.OK, got.Problem)
		require.Equal(t, want, got.Unless, got.Name)
	}
}

func TestCases_DescribeUntracedArguments(t *testing.T) {
	t.Parallel()
	rules := rulesOf(t, `
kind: policy
name: mail
rules:
  - {name: mail, when: tool.name == 'mail.send', verdict: run}
cases:
  - {name: a plain session, tool: {name: mail.send}, expect: run}
  - {name: traced, tool: {name: mail.send}, session: {read_untrusted: true}, expect: run}
  - name: untraced
    tool: {name: mail.send, labels: {sends: true}}
    session: {read_private: true, read_untrusted: true}
    untrusted_arguments: [/to, /body]
    unknown_destinations: [/to]
    expect: ask
`)
	for _, result := range policy.Test(t.Context(), rules, nil) {
		require.True(t, result.OK, result.Problem)
	}
}
