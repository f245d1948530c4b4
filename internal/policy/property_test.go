package policy_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/spec"
)

// conditions hold for some calls, do not hold for others, and fail for a few.
func conditions() []spec.Expression {
	return []spec.Expression{
		"true", "false", "tool.permission == 'write'", "tool.risk != 'high'", "tool.approval == 'auto'", "tool.name.startsWith('file.')",
		"'money' in tool.tags", "call.input.n > 3", "call.input.missing == 1", "has(call.input.n) && call.input.n % 2 == 0", "call.input.n == 'x'",
		"principal.groups.exists(g, g == 'ops')", "'*' in principal.permissions", "session.writes > 2", "now.getHours() < 12", "tenant == 'acme'",
		"agent.name == 'desk' || call.input.missing == 1", "10 / call.input.n > 2", "size(session.task) > 3 ? true : call.input.flag",
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func randomRule(r *rand.Rand, n int) spec.PolicyRule {
	rule := spec.PolicyRule{
		Name: fmt.Sprintf("rule%d", n), When: pick(r, conditions()...), Verdict: pick(r, jig.VerdictRun, jig.VerdictRun, jig.VerdictAsk, jig.VerdictDeny),
		Reason: pick(r, "", "because", "because of ${call.input.n}"),
	}
	if rule.Verdict == jig.VerdictAsk {
		rule.Expires = spec.Duration(pick(r, 0, time.Hour, 48*time.Hour))
		randomTerms(r, &rule)
	}
	return rule
}

// randomTerms gives some rules terms for their approvals.
func randomTerms(r *rand.Rand, rule *spec.PolicyRule) {
	rule.Approvers = pick(r, nil, nil, &spec.Approvers{Groups: []string{"finance"}}, &spec.Approvers{People: []string{"ana", "bo"}, Permission: "pay"})
	rule.Quorum = pick(r, 0, 0, 1, 2)
	rule.NotRequester = pick(r, nil, nil, new(true), new(false))
	rule.Remind = spec.Duration(pick(r, 0, 0, time.Minute, time.Hour))
	rule.OnExpiry = pick(r, "", "", jig.ExpiryDeny, jig.ExpiryCancel, jig.ExpiryFail)
	if rule.Approvers != nil && r.IntN(2) == 0 {
		rule.Escalate = []spec.Escalation{{After: spec.Duration(time.Minute), Approvers: spec.Approvers{Groups: []string{"leads"}}}}
	}
}

// request is a call with everything that a ruling depends on.
type request struct {
	tool    jig.Tool
	call    jig.Call
	session jig.Session
	now     time.Time
}

func randomRequest(r *rand.Rand) request {
	return request{
		tool: jig.Tool{
			Name:       pick(r, "file.write", "shop.refund"),
			Permission: pick(r, jig.PermissionRead, jig.PermissionDraft, jig.PermissionWrite, jig.PermissionWrite, jig.PermissionWrite, jig.PermissionDestructive, "any"),
			Risk:       pick(r, jig.RiskSafe, jig.RiskModerate, jig.RiskHigh, jig.RiskHigh, "none"),
			Approval:   pick(r, jig.ApprovalAuto, jig.ApprovalAuto, jig.ApprovalAuto, jig.ApprovalAuto, jig.ApprovalAlwaysAsk, "never"),
			Tags:       pick(r, nil, []string{"money"}),
		},
		call: jig.Call{ID: "1.1", Pass: 1, Input: pick(r, nil, []byte(`{}`), []byte(`{"n":4}`), []byte(`{"n":0,"flag":true}`), []byte(`{"n"`))},
		session: jig.Session{
			Tenant: pick(r, "acme", "default"), Agent: jig.Agent{Name: pick(r, "desk", "other")}, Writes: r.IntN(5), Task: pick(r, "", "Refund it."),
			Principal: jig.Principal{ID: "ana", Groups: pick(r, nil, []string{"ops"}), Permissions: pick(r, nil, []string{"*"})},
		},
		now: noon.Add(time.Duration(r.IntN(48)) * time.Hour),
	}
}

func (q request) ask(t *testing.T, rules []spec.PolicyRule) policy.Ruling {
	t.Helper()
	return compile(t, rules...).Rule(t.Context(), q.tool, q.call, q.session, q.now)
}

// hears reports whether the only rule of a document applies to the call, and whether it fails.
func (q request) hears(t *testing.T, one *policy.Rules) (speaks, failed bool) {
	t.Helper()
	x := one.Explain(t.Context(), q.tool, q.call, q.session, q.now)
	return len(x.Rules) == 1, len(x.Rules) == 1 && x.Rules[0].Failed
}

var strictness = map[jig.Verdict]int{jig.VerdictRun: 1, jig.VerdictAsk: 2, jig.VerdictDeny: 3}

// If a tool is destructive, always asks, or is unknown, no document lets it run without asking. A call does not run if a rule denies it or
// asks about it, or if such a rule fails. Adding a rule that asks or denies never makes a verdict less strict. The order of rules has no meaning. Only a
// run rule can lift an ask.
func TestPolicy_CannotAllowForbiddenCalls(t *testing.T) {
	t.Parallel()
	verdicts, lifted := map[jig.Verdict]int{}, 0
	alone := map[spec.Expression]*policy.Rules{} // each condition in its own document
	for _, when := range conditions() {
		alone[when] = compile(t, spec.PolicyRule{Name: "alone", When: when, Verdict: jig.VerdictDeny})
	}
	for seed := range uint64(1_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var rules []spec.PolicyRule
		for n := range r.IntN(5) {
			rules = append(rules, randomRule(r, n))
		}
		q := randomRequest(r)
		got := q.ask(t, rules)
		says := fmt.Sprintf("seed %d: %+v\n%+v\n%+v", seed, rules, q.tool, got)
		verdicts[got.Verdict]++
		require.Contains(t, strictness, got.Verdict, says)
		require.NotEmpty(t, got.Reasons, says)

		strictest, ran := 0, false
		for _, rule := range rules {
			speaks, failed := q.hears(t, alone[rule.When])
			if speaks && (!failed || rule.Verdict != jig.VerdictRun) {
				strictest, ran = max(strictest, strictness[rule.Verdict]), ran || rule.Verdict == jig.VerdictRun
			}
			require.Equal(t, speaks, strings.Contains(fmt.Sprint(got.Reasons), "rule "+rule.Name+":"), says)
		}
		base := policy.BaseRuling(q.tool)
		require.GreaterOrEqual(t, strictness[got.Verdict], strictest, says)
		if classOf(q.tool) == "fixed" {
			require.NotEqual(t, jig.VerdictRun, got.Verdict, says)
		}
		if got.Verdict == jig.VerdictRun && base.Verdict == jig.VerdictAsk {
			require.True(t, ran, says)
			lifted++
		}
		require.True(t, got.Expires == 0 || got.Verdict == jig.VerdictAsk, says)

		shuffled := slices.Clone(rules)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		require.Equal(t, got, q.ask(t, shuffled), says)

		more := randomRule(r, len(rules))
		if more.Verdict == jig.VerdictRun {
			more.Verdict = pick(r, jig.VerdictAsk, jig.VerdictDeny)
		}
		stricter := q.ask(t, append(slices.Clone(rules), more))
		require.GreaterOrEqual(t, strictness[stricter.Verdict], strictness[got.Verdict], "%s\n%+v", says, more)
	}
	for verdict := range strictness {
		require.Greater(t, verdicts[verdict], 50, verdict)
	}
	require.Greater(t, lifted, 20)
}

// FuzzPolicy loads arbitrary text as a policy. A policy that loads without problems must compile, its cases can be tested, and it does not let
// forbidden calls run.
func FuzzPolicy(f *testing.F) {
	f.Add(refunds, `{"amount":20}`)
	f.Add("kind: policy\nname: a\nrules: [{name: a, when: true, verdict: run}]\ncases: [{name: a, tool: a.b, expect: ask}]\n", `{}`)
	f.Add(`{"kind": "policy", "name": "a", "rules": [{"name": "a", "when": "call.input.x.all(y, y > 1)", "verdict": "ask", "expires": "1h"}]}`, `{"x":[1]}`)
	f.Add("kind: policy\nrules: [&a {name: a, when: '', verdict: run, reason: '${', expires: 1}, *a]\n", `[`)
	f.Fuzz(func(t *testing.T, text, input string) {
		doc, problems := spec.Load("policy.yaml", []byte(text))
		if doc.Policy() == nil || problems.OrNil() != nil {
			return
		}
		rules, err := policy.Compile(*doc.Policy(), doc.Version)
		require.NoError(t, err)
		results := policy.Test(t.Context(), rules, nil)
		require.Len(t, results, len(doc.Policy().Cases))
		_, err = json.Marshal(results)
		require.NoError(t, err)
		for _, tool := range everyTool() {
			if classOf(tool) == "fixed" {
				got := rules.Rule(t.Context(), tool, jig.Call{Input: []byte(input)}, jig.Session{}, noon)
				require.NotEqual(t, jig.VerdictRun, got.Verdict)
				return
			}
		}
	})
}
