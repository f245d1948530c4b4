package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/spec"
)

const pay = `
kind: policy
name: pay
rules:
  - name: two
    when: input.amount > 100
    verdict: ask
    approvers: {groups: [finance], people: [dora]}
    quorum: 2
    remind: 4h
    expires: 2d
    escalate: [{after: 8h, approvers: {groups: [leads]}}, {after: 1d, approvers: {permission: pay.any}}]
  - {name: anybody, when: input.amount > 50, verdict: ask, remind: 6h, expires: 3d, on_expiry: cancel}
  - {name: large, when: input.amount > 1000, verdict: deny}
  - {name: small, when: input.amount < 200, verdict: run}
`

const abroad = `
kind: policy
name: abroad
rules:
  - {name: knows, when: input.country != 'DE', verdict: ask, approvers: {permission: abroad}, not_requester: true, remind: 1h, on_expiry: fail}
  - {name: deny, when: input.country == 'FR', verdict: deny}
  - {name: four-eyes, when: input.country == 'CH', verdict: ask, quorum: 2, on_expiry: deny}
`

// The terms of all documents' rules that ask are combined: requirements by name, the shortest times, the strictest outcome.
func TestTerms_CombineAllRulesThatAsk(t *testing.T) {
	t.Parallel()
	rules := policy.NewSet(load(t, pay), load(t, abroad))
	two := jig.Requirement{
		Rule: "pay/two", Quorum: 2, Approvers: jig.Approvers{Groups: []string{"finance"}, People: []string{"dora"}},
		Escalate: []jig.Escalation{
			{After: jig.Duration(8 * time.Hour), Approvers: jig.Approvers{Groups: []string{"leads"}}},
			{After: jig.Duration(24 * time.Hour), Approvers: jig.Approvers{Permission: "pay.any"}},
		},
	}
	knows := jig.Requirement{Rule: "abroad/knows", Quorum: 1, Approvers: jig.Approvers{Permission: "abroad"}}
	for name, c := range map[string]struct {
		input   string
		verdict jig.Verdict
		base    bool
		expires time.Duration
		terms   jig.Terms
	}{
		"no rule":                    {`{"amount": 300, "country": "DE"}`, jig.VerdictAsk, false, 48 * time.Hour, jig.Terms{Requirements: []jig.Requirement{two}, Remind: jig.Duration(4 * time.Hour), OnExpiry: "cancel"}},
		"one that asks anybody":      {`{"amount": 60, "country": "DE"}`, jig.VerdictAsk, false, 72 * time.Hour, jig.Terms{Remind: jig.Duration(6 * time.Hour), OnExpiry: "cancel"}},
		"run adds nothing":           {`{"amount": 10, "country": "DE"}`, jig.VerdictRun, false, 0, jig.Terms{}},
		"of another document":        {`{"amount": 10, "country": "IT"}`, jig.VerdictAsk, false, 0, jig.Terms{Requirements: []jig.Requirement{knows}, NotRequester: true, Remind: jig.Duration(time.Hour), OnExpiry: "fail"}},
		"a denial has no terms":      {`{"amount": 300, "country": "FR"}`, jig.VerdictDeny, false, 0, jig.Terms{}},
		"a denial that fails denies": {`{"country": "DE"}`, jig.VerdictDeny, false, 0, jig.Terms{}},
		"the terms of all": {`{"amount": 300, "country": "CH"}`, jig.VerdictAsk, false, 48 * time.Hour, jig.Terms{
			Requirements: []jig.Requirement{{Rule: "abroad/four-eyes", Quorum: 2}, knows, two}, NotRequester: true, Remind: jig.Duration(time.Hour), OnExpiry: "fail",
		}},
	} {
		tool := jig.Tool{Name: "billing.pay"}.WithDefaults()
		got, err := rules.Rule(t.Context(), tool, jig.Call{Input: []byte(c.input)}, jig.Session{}, noon)
		require.NoError(t, err)
		require.Equal(t, c.verdict, got.Verdict, name)
		require.Equal(t, c.base, got.Base, name)
		require.Equal(t, c.expires, got.Expires, name)
		require.Equal(t, c.terms, got.Terms, name)
	}
}

// An ask rule that cannot be evaluated keeps its approvers, quorum, escalation and times, which are combined with those of other rules as
// usual.
func TestTerms_OfAFailingRuleAreKept(t *testing.T) {
	t.Parallel()
	const two = `
kind: policy
name: pay
rules:
  - name: two
    when: input.amount > 100
    verdict: ask
    approvers: {groups: [finance]}
    quorum: 2
    not_requester: true
    remind: 4h
    expires: 2d
    on_expiry: cancel
    escalate: [{after: 8h, approvers: {groups: [leads]}}]
`
	const one = `
kind: policy
name: abroad
rules:
  - {name: one, when: input.country == 'CH', verdict: ask, approvers: {people: [dora]}, expires: 1h, on_expiry: fail}
`
	tool := jig.Tool{Name: "billing.pay"}.WithDefaults()
	rule := func(input string, documents ...*policy.Rules) policy.Ruling {
		got, err := policy.NewSet(documents...).Rule(t.Context(), tool, jig.Call{Input: []byte(input)}, jig.Session{}, noon)
		require.NoError(t, err)
		return got
	}
	holds, fails := rule(`{"amount":200}`, load(t, two)), rule(`{"amount":"200"}`, load(t, two))
	require.Equal(t, jig.VerdictAsk, fails.Verdict)
	require.Equal(t, holds.Terms, fails.Terms)
	require.Equal(t, 2, fails.Terms.Requirements[0].Quorum)
	require.True(t, fails.Terms.NotRequester)
	require.Equal(t, 48*time.Hour, fails.Expires)
	require.True(t, fails.Person)

	both := rule(`{"amount":200,"country":"CH"}`, load(t, two), load(t, one))
	require.Equal(t, both.Terms, rule(`{"country":"CH"}`, load(t, two), load(t, one)).Terms, "the other one holds")
	require.Equal(t, both.Terms, rule(`{}`, load(t, two), load(t, one)).Terms, "both fail")
	require.Equal(t, time.Hour, rule(`{}`, load(t, two), load(t, one)).Expires)
}

// A ruling says whether its verdict is the base verdict or comes from rules.
func TestRuling_BaseSaysThatNoRuleAsked(t *testing.T) {
	t.Parallel()
	write, erase := jig.Tool{Name: "a.b"}.WithDefaults(), jig.Tool{Name: "a.b", Permission: jig.PermissionDestructive}.WithDefaults()
	read := jig.Tool{Name: "a.b", Permission: jig.PermissionRead}.WithDefaults()
	for name, c := range map[string]struct {
		tool jig.Tool
		rule spec.PolicyRule
		want bool
	}{
		"no rule applies":   {write, spec.PolicyRule{When: "false", Verdict: jig.VerdictAsk}, true},
		"nothing to ask":    {read, spec.PolicyRule{When: "false", Verdict: jig.VerdictAsk}, false},
		"run cannot lift":   {erase, spec.PolicyRule{When: "true", Verdict: jig.VerdictRun}, true},
		"lifted":            {write, spec.PolicyRule{When: "true", Verdict: jig.VerdictRun}, false},
		"asked as it would": {write, spec.PolicyRule{When: "true", Verdict: jig.VerdictAsk}, false},
		"a run that fails":  {write, spec.PolicyRule{When: "input.x", Verdict: jig.VerdictRun}, true},
		"an ask that fails": {write, spec.PolicyRule{When: "input.x", Verdict: jig.VerdictAsk}, false},
		"denied":            {write, spec.PolicyRule{When: "true", Verdict: jig.VerdictDeny}, false},
	} {
		c.rule.Name = "one"
		require.Equal(t, c.want, compile(t, c.rule).Rule(t.Context(), c.tool, jig.Call{}, jig.Session{}, noon).Base, name)
	}
}

// A call that must not be denied asks instead, on the terms of the rules that ask.
func TestPolicyTools_AskInsteadOfDeny(t *testing.T) {
	t.Parallel()
	rules := load(t, pay)
	tool := jig.Tool{Name: "billing.pay"}.WithDefaults()
	x := rules.Explain(t.Context(), tool, jig.Call{Input: []byte(`{"amount": 2000}`)}, jig.Session{}, noon)
	require.Equal(t, jig.VerdictDeny, x.Verdict)
	require.True(t, x.Terms.Plain())
	asked := x.Asked()
	require.Equal(t, jig.VerdictAsk, asked.Verdict)
	require.False(t, asked.Base)
	require.Equal(t, 48*time.Hour, asked.Expires)
	require.Equal(t, "pay/two", asked.Terms.Requirements[0].Rule)
	require.Equal(t, x.Reasons, asked.Reasons)
	require.Equal(t, jig.VerdictDeny, x.Verdict)

	x = rules.Explain(t.Context(), tool, jig.Call{Input: []byte(`{"amount": 10}`)}, jig.Session{}, noon)
	require.Equal(t, x.Ruling, x.Asked())
}
