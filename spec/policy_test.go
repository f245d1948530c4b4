package spec_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/seal"
	"github.com/jig-run/jig/spec"
)

const fullPolicy = `
kind: policy
name: production
description: What may run by itself in production.
rules:
  - name: docs-write
    when: tool.name == 'file.write' && call.input.path.startsWith('docs/')
    verdict: run
    reason: pages of the documentation are reviewed anyway
  - name: large-refunds
    when: tool.name == 'billing.refund' && call.input.amount > 100.0
    verdict: ask
    reason: "a refund of ${call.input.amount} by ${principal.id}"
    expires: 2d
    approvers: {people: [ana], groups: [finance], permission: refunds.any}
    quorum: 2
    not_requester: true
    remind: 90m
    escalate:
      - {after: 4h, approvers: {groups: [leads]}}
      - {after: 1d, approvers: {people: [dora]}}
    on_expiry: cancel
  - {name: frozen, when: "now > timestamp('2026-12-24T00:00:00Z') && tool.permission != 'read'", verdict: deny}
cases:
  - name: a page of the documentation
    tool: file.write
    input: {path: docs/a.md, content: x}
    expect: run
    rules: [docs-write]
  - name: a large refund
    tool: {name: billing.refund, permission: write, risk: high, tags: [money]}
    input: {amount: 250}
    principal: {id: ana, groups: [support], permissions: [billing.refund]}
    agent: desk
    tenant: acme
    session: {task: "Refund it.", input: {order: 7}, pass: 3, writes: 2}
    now: 2026-03-01T09:30:00+01:00
    expect: ask
    quorum: 2
`

func TestPolicy_ReadsEveryKey(t *testing.T) {
	t.Parallel()
	refund, err := seal.Tool(jig.Tool{Name: "billing.refund", Permission: jig.PermissionWrite, Risk: jig.RiskHigh, Tags: []string{"money"}})
	require.NoError(t, err)
	p, err := spec.LoadPolicy("production.yaml", []byte(fullPolicy))
	require.NoError(t, err)
	require.Equal(t, spec.Policy{
		Name: "production", Description: "What may run by itself in production.",
		Rules: []spec.PolicyRule{
			{
				Name: "docs-write", When: "tool.name == 'file.write' && call.input.path.startsWith('docs/')", Verdict: jig.VerdictRun,
				Reason: "pages of the documentation are reviewed anyway",
			},
			{
				Name: "large-refunds", When: "tool.name == 'billing.refund' && call.input.amount > 100.0", Verdict: jig.VerdictAsk,
				Reason: "a refund of ${call.input.amount} by ${principal.id}", Expires: spec.Duration(48 * time.Hour),
				Approvers: &spec.Approvers{People: []string{"ana"}, Groups: []string{"finance"}, Permission: "refunds.any"},
				Quorum:    2, NotRequester: new(true), Remind: spec.Duration(90 * time.Minute), OnExpiry: jig.ExpiryCancel,
				Escalate: []spec.Escalation{
					{After: spec.Duration(4 * time.Hour), Approvers: spec.Approvers{Groups: []string{"leads"}}},
					{After: spec.Duration(24 * time.Hour), Approvers: spec.Approvers{People: []string{"dora"}}},
				},
			},
			{Name: "frozen", When: "now > timestamp('2026-12-24T00:00:00Z') && tool.permission != 'read'", Verdict: jig.VerdictDeny},
		},
		Cases: []spec.PolicyCase{
			{
				Name: "a page of the documentation", Tool: jig.Tool{Name: "file.write"}, Lookup: true,
				Input: json.RawMessage(`{"path":"docs/a.md","content":"x"}`), Principal: jig.Principal{ID: "case"}, Agent: jig.Agent{Name: "case", Registered: true},
				Tenant: "default", Session: spec.PolicySession{ID: "ses_case", Pass: 1},
				Now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), Expect: jig.VerdictRun, Rules: []string{"docs-write"},
			},
			{
				Name:      "a large refund",
				Tool:      refund,
				Input:     json.RawMessage(`{"amount":250}`),
				Principal: jig.Principal{ID: "ana", Groups: []string{"support"}, Permissions: []string{"billing.refund"}},
				Agent:     jig.Agent{Name: "desk", Registered: true}, Tenant: "acme",
				Session: spec.PolicySession{ID: "ses_case", Task: "Refund it.", Input: json.RawMessage(`{"order":7}`), Pass: 3, Writes: 2},
				Now:     time.Date(2026, 3, 1, 8, 30, 0, 0, time.UTC), Expect: jig.VerdictAsk, Quorum: 2,
			},
		},
	}, p)
}

// A policy is found, read and versioned like other documents, and every value has a position.
func TestPolicy_IsADocument(t *testing.T) {
	t.Parallel()
	asJSON, err := json.Marshal(valueOf(t, fullPolicy))
	require.NoError(t, err)
	for file, body := range map[string][]byte{"production.yaml": []byte(fullPolicy), "production.json": asJSON} {
		doc, problems := spec.Load(file, body)
		require.Empty(t, problems)
		require.Equal(t, spec.KindPolicy, doc.Kind)
		require.Equal(t, "production", doc.Name)
		require.Len(t, doc.Version, 64)
		require.Equal(t, "billing.refund", doc.Policy().Cases[1].Tool.Name)
		line, column := doc.Position("rules[1].expires")
		require.Positive(t, line)
		require.Positive(t, column)
		require.Empty(t, spec.Check([]spec.Document{doc}, spec.Catalog{Tools: []jig.Tool{}}))
		require.Empty(t, spec.Advise([]spec.Document{doc}, spec.Catalog{}))
	}
	files := fstest.MapFS{"a.yaml": {Data: []byte(fullPolicy)}, "b.json": {Data: asJSON}}
	docs, problems := spec.LoadFS(files, ".")
	require.Len(t, docs, 2)
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].Message, "the policy production is already in a.yaml")
	_, err = spec.LoadPolicy("a.yaml", []byte("kind: agent\nname: a\nrules: [{name: a, when: true, verdict: ask}]\n"))
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput})
	require.ErrorContains(t, err, "write kind: policy")
}

func TestSchema_OfPoliciesAgreesWithTheReader(t *testing.T) {
	t.Parallel()
	schema := compiled(t, spec.KindPolicy)
	rule := func(rule string) string { return "{kind: policy, name: a, rules: [" + rule + "]}" }
	testCase := func(c string) string {
		return "{kind: policy, name: a, rules: [{name: r, when: true, verdict: ask}], cases: [" + c + "]}"
	}
	for text, ok := range map[string]bool{
		fullPolicy: true,
		rule("{name: r, when: true, verdict: ask, expires: 1d}"):  true,
		rule("{name: r, when: false, verdict: deny, reason: no}"): true,
		rule(""):                                                     false,
		rule("{name: r, when: true}"):                                false,
		rule("{name: r, verdict: ask}"):                              false,
		rule("{when: true, verdict: ask}"):                           false,
		rule("{name: r, when: '', verdict: ask}"):                    false,
		rule("{name: R, when: true, verdict: ask}"):                  false,
		rule("{name: r, when: true, verdict: allow}"):                false,
		rule("{name: r, when: true, verdict: run, expires: 1d}"):     false,
		rule("{name: r, when: true, verdict: ask, expires: 3 days}"): false,
		rule("{name: r, when: true, verdict: ask, quorum: 2}"):       true,
		rule("{name: r, when: true, verdict: ask, quorum: 20, not_requester: true, remind: 1m, on_expiry: fail}"):                           true,
		rule("{name: r, when: true, verdict: ask, approvers: {people: [ana], permission: a.b}}"):                                            true,
		rule("{name: r, when: input.a == 1, verdict: ask, approvers: {groups: [a b]}, escalate: [{after: 1h, approvers: {people: [bo]}}]}"): true,
		rule("{name: r, when: true, verdict: ask, quorum: 0}"):                                                                              false,
		rule("{name: r, when: true, verdict: ask, quorum: 21}"):                                                                             false,
		rule("{name: r, when: true, verdict: deny, quorum: 2}"):                                                                             false,
		rule("{name: r, when: true, verdict: run, not_requester: false}"):                                                                   false,
		rule("{name: r, when: true, verdict: deny, remind: 1h}"):                                                                            false,
		rule("{name: r, when: true, verdict: deny, on_expiry: deny}"):                                                                       false,
		rule("{name: r, when: true, verdict: ask, on_expiry: run}"):                                                                         false,
		rule("{name: r, when: true, verdict: ask, approvers: [ana]}"):                                                                       false,
		rule("{name: r, when: true, verdict: ask, approvers: {}}"):                                                                          false,
		rule("{name: r, when: true, verdict: ask, approvers: {people: []}}"):                                                                false,
		rule("{name: r, when: true, verdict: ask, approvers: {people: ['']}}"):                                                              false,
		rule("{name: r, when: true, verdict: ask, approvers: {people: [' ana']}}"):                                                          false,
		rule("{name: r, when: true, verdict: ask, approvers: {permission: ''}}"):                                                            false,
		rule("{name: r, when: true, verdict: ask, escalate: [{after: 1h, approvers: {people: [bo]}}]}"):                                     false,
		rule("{name: r, when: true, verdict: ask, approvers: {people: [ana]}, escalate: [{after: 1h, approvers: {}}]}"):                     false,
		rule("{name: r, when: true, verdict: ask, approvers: {people: [ana]}, escalate: []}"):                                               false,
		rule("{name: r, when: true, verdict: ask, approvers: {people: [ana]}, escalate: [{approvers: {people: [bo]}}]}"):                    false,
		testCase("{name: c, tool: a.b, expect: ask, quorum: 2}"):                                                                            true,
		testCase("{name: c, tool: {name: a.b, confirm: true}, expect: ask}"):                                                                true,
		testCase("{name: c, tool: a.b, expect: deny, quorum: 2}"):                                                                           false,
		testCase("{name: c, tool: a.b, expect: ask, quorum: 0}"):                                                                            false,
		testCase("{name: c, tool: a.b, expect: ask}"):                                                                                       true,
		testCase("{name: c, tool: {name: a.b, approval: always_ask}, expect: ask, rules: [r]}"):                                             true,
		testCase("{name: c, tool: a.b, expect: ask, session: {writes: 0}, principal: {id: ana}}"):                                           true,
		testCase("{name: c, tool: a, expect: ask}"):                                                                                         false,
		testCase("{name: c, tool: 3, expect: ask}"):                                                                                         false,
		testCase("{name: c, tool: {permission: read}, expect: ask}"):                                                                        false,
		testCase("{name: c, tool: {name: a.b, risk: low}, expect: ask}"):                                                                    false,
		testCase("{name: c, tool: {name: a.b, input_schema: {}}, expect: ask}"):                                                             false,
		testCase("{name: c, tool: a.b, expect: refuse}"):                                                                                    false,
		testCase("{name: c, tool: a.b, expect: ask, input: 3}"):                                                                             false,
		testCase("{name: c, tool: a.b, expect: ask, principal: {groups: [a]}}"):                                                             false,
		testCase("{name: c, tool: a.b, expect: ask, session: {pass: 0}}"):                                                                   false,
		testCase("{tool: a.b, expect: ask}"):                                                                                                false,
		"{kind: policies, name: a, rules: [{name: r, when: true, verdict: ask}]}":                                                           false,
		"{kind: policy, name: a, rules: [{name: r, when: true, verdict: ask}], grants: []}":                                                 false,
		"{kind: policy, name: a, rules: [{name: r, when: true, verdict: ask}], on_expiry: deny}":                                            false,
	} {
		_, err := spec.LoadPolicy("a.yaml", []byte(text))
		if ok {
			require.NoError(t, err, text)
			require.NoError(t, schema.Validate(valueOf(t, text)), text)
		} else {
			require.Error(t, err, text)
			require.Error(t, schema.Validate(valueOf(t, text)), text)
		}
	}
}

// Rules made in code must meet the same conditions as those in documents.
func TestCheckTerms_AreThoseOfDocuments(t *testing.T) {
	t.Parallel()
	finance := &spec.Approvers{Groups: []string{"finance"}}
	two := &spec.Approvers{People: []string{"ana", "bo", "bo"}}
	after := func(d time.Duration, a spec.Approvers) []spec.Escalation {
		return []spec.Escalation{{After: spec.Duration(d), Approvers: a}}
	}
	for field, rule := range map[string]spec.PolicyRule{
		"": {
			Verdict: jig.VerdictAsk, Approvers: two, Quorum: 3, Expires: spec.Duration(time.Hour), Remind: spec.Duration(time.Minute),
			NotRequester: new(true), OnExpiry: jig.ExpiryFail, Escalate: after(time.Minute, spec.Approvers{People: []string{"dora"}}),
		},
		"approvers":             {Verdict: jig.VerdictAsk, Approvers: &spec.Approvers{}},
		"quorum":                {Verdict: jig.VerdictAsk, Approvers: two, Quorum: 3},
		"not_requester":         {Verdict: jig.VerdictDeny, NotRequester: new(true)},
		"expires":               {Verdict: jig.VerdictAsk, Expires: -1},
		"remind":                {Verdict: jig.VerdictAsk, Remind: -1},
		"on_expiry":             {Verdict: jig.VerdictAsk, OnExpiry: "run"},
		"escalate":              {Verdict: jig.VerdictAsk, Escalate: after(time.Hour, *finance)},
		"escalate[0].after":     {Verdict: jig.VerdictAsk, Approvers: two, Expires: 1, Escalate: after(time.Hour, *finance)},
		"escalate[0].approvers": {Verdict: jig.VerdictAsk, Approvers: two, Escalate: after(time.Hour, spec.Approvers{})},
	} {
		err := rule.CheckTerms()
		if field == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput}, field)
		require.Equal(t, field, jig.AsError(err).Field)
		require.NotEmpty(t, jig.AsError(err).Hint)
	}
	for key, rule := range map[string]spec.PolicyRule{
		"approvers": {Approvers: finance}, "quorum": {Quorum: 1}, "expires": {Expires: 1}, "remind": {Remind: 1}, "escalate": {Escalate: after(1, *finance)},
		"on_expiry": {OnExpiry: jig.ExpiryDeny}, "proof": {Proof: jig.ProofKey},
	} {
		rule.Verdict = jig.VerdictDeny
		require.Equal(t, key, jig.AsError(rule.CheckTerms()).Field)
	}
	for _, quorum := range []int{-1, spec.MaxQuorum + 1} {
		require.Equal(t, "quorum", jig.AsError(spec.PolicyRule{Verdict: jig.VerdictAsk, Quorum: quorum}.CheckTerms()).Field)
	}
}

// policyOf returns a policy with n rules, each with its number in place of %d.
func policyOf(n int, rule string) string {
	var b strings.Builder
	b.WriteString("kind: policy\nname: a\nrules:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: r%d, verdict: ask, %s}\n", i, strings.ReplaceAll(rule, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

func TestPolicy_Bounds(t *testing.T) {
	t.Parallel()
	p, err := spec.LoadPolicy("a.yaml", []byte(policyOf(spec.MaxPolicyRules, "when: \"tool.name == 'a.b' && call.input.n == %d\", reason: '${call.id}'")))
	require.NoError(t, err)
	require.Len(t, p.Rules, spec.MaxPolicyRules)
	_, err = spec.LoadPolicy("a.yaml", []byte(policyOf(spec.MaxPolicyRules+1, "when: true")))
	require.ErrorContains(t, err, "use 1 to 500 entries")
}

// hostilePolicies are documents that must be refused because of what they cost.
func hostilePolicies() map[string]struct {
	body string
	code spec.ProblemCode
} {
	type c = struct {
		body string
		code spec.ProblemCode
	}
	loops := strings.Repeat("[1].exists(x, ", 9) + "true" + strings.Repeat(")", 9)
	return map[string]c{
		"20,000 rules":                {policyOf(20_000, "when: true"), spec.ProblemTooLarge},
		"4,000 rules":                 {policyOf(4_000, "when: true"), spec.ProblemTooMany},
		"500 rules of loops":          {policyOf(500, "when: '"+loops+"'"), spec.ProblemTooMany},
		"60 long rules":               {policyOf(60, "when: 'true"+strings.Repeat("||true", 600)+"'"), spec.ProblemTooMany},
		"15 long wrong rules":         {policyOf(15, "when: '1"+strings.Repeat("+1", 2_000)+" == x'"), spec.ProblemBadCEL},
		"500 wrong rules":             {policyOf(500, "when: user"), spec.ProblemBadCEL},
		"a reason of 9,000 parts":     {policyOf(1, "when: true, reason: '"+strings.Repeat("${1}", 9_000)+"'"), spec.ProblemOutOfRange},
		"reasons of many parts":       {policyOf(20, "when: true, reason: '"+strings.Repeat("${1}", 1_000)+"'"), spec.ProblemTooMany},
		"rules by alias":              {"kind: policy\nname: a\nrules:\n  - &r {name: a, when: true, verdict: ask}\n" + strings.Repeat("  - *r\n", 10_000), spec.ProblemTooMany},
		"names that are nearly right": {policyOf(500, "when: tool.nam == 'x'"), spec.ProblemBadCEL},
		"20,000 cases":                {policyOf(1, "when: true") + "cases: [" + strings.Repeat("{},", 19_900) + "]\n", spec.ProblemTooMany},
	}
}

// Not parallel, because the allocations of other tests would count.
func TestPolicy_IsCheapForHostileDocuments(t *testing.T) { //nolint:paralleltest // see above
	for name, c := range hostilePolicies() { //nolint:paralleltest // see above
		t.Run(name, func(t *testing.T) {
			var problems spec.Problems
			cheap(t, func() { _, problems = spec.Load("hostile.yaml", []byte(c.body)) })
			codes := map[spec.ProblemCode]bool{}
			for _, p := range problems {
				codes[p.Code] = true
			}
			require.True(t, codes[c.code], "%v", problems.Error())
		})
	}
}

func BenchmarkHostilePolicies(b *testing.B) {
	for name, c := range hostilePolicies() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, problems := spec.Load("hostile.yaml", []byte(c.body))
				require.NotEmpty(b, problems)
			}
		})
	}
}
