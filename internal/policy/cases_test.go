package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/spec"
)

const withCases = `
kind: policy
name: shop
rules:
  - {name: docs, when: "tool.name == 'file.write' && call.input.path.startsWith('docs/')", verdict: run}
  - {name: money, when: "'money' in tool.tags", verdict: ask, reason: money}
  - {name: late, when: "now > timestamp('2026-06-01T00:00:00Z') && session.writes > 2", verdict: deny}
  - {name: two, when: "tool.name == 'shop.pay'", verdict: ask, quorum: 2, approvers: {groups: [finance]}}
  - {name: one, when: "tool.name == 'shop.pay'", verdict: ask, not_requester: true, approvers: {groups: [leads]}}
  - {name: mine, when: "agent.name == 'desk' && tenant == 'acme' && principal.id == 'ana' && session.input.order == 7", verdict: deny}
cases:
  - {name: a page, tool: file.write, input: {path: docs/a.md}, expect: run, rules: [docs]}
  - {name: another file, tool: file.write, input: {path: a.md}, expect: ask}
  - {name: a contract of its own, tool: {name: shop.list, permission: read, tags: [money]}, expect: ask, rules: [money]}
  - {name: a tool of defaults, tool: {name: shop.list}, expect: ask}
  - {name: later, tool: {name: shop.list, permission: read}, now: 2026-07-01T00:00:00Z, session: {writes: 3}, expect: deny, rules: [late]}
  - {name: whose, tool: {name: shop.list, permission: read}, agent: desk, tenant: acme, principal: {id: ana}, session: {input: {order: 7}}, expect: deny}
  - {name: wrong verdict, tool: {name: shop.list, permission: read}, expect: deny}
  - {name: wrong rule, tool: {name: shop.list, permission: read}, expect: run, rules: [late, money]}
  - {name: no input, tool: file.write, expect: run}
  - {name: two pay, tool: {name: shop.pay}, expect: ask, rules: [two], quorum: 2}
  - {name: three pay, tool: {name: shop.pay}, expect: ask, quorum: 3}
  - {name: one asks, tool: file.write, input: {path: a.md}, expect: ask, quorum: 1}
  - {name: two ask, tool: file.write, input: {path: a.md}, expect: ask, quorum: 2}
  - {name: two read, tool: {name: shop.list, permission: read}, expect: ask, quorum: 2}
  - {name: unknown tool, tool: file.destroy, expect: ask}
`

// A case that describes its tool without a permission says so when it fails: the tool of that name may well be a harmless one.
func TestCases_SayThatAPermissionIsAssumed(t *testing.T) {
	t.Parallel()
	const document = "kind: policy\nname: cms\nrules: [{name: none, when: 'false', verdict: deny}]\ncases: [{name: drafts run, tool: TOOL, expect: run}]\n"
	draft := func(string) (jig.Tool, bool) {
		return jig.Tool{Name: "cms.createPage", Permission: jig.PermissionDraft}.WithDefaults(), true
	}
	for tool, problem := range map[string]string{
		"{name: cms.createPage}": "the verdict is ask, not run; the case gives cms.createPage no permission, so it counts as a tool that writes: " +
			"add permission, or write tool: cms.createPage to take the contract from the catalog",
		"{name: cms.createPage, permission: write}": "the verdict is ask, not run",
		"{name: cms.createPage, permission: draft}": "",
		"cms.createPage": "",
	} {
		results := policy.Test(t.Context(), load(t, strings.Replace(document, "TOOL", tool, 1)), draft)
		require.Equal(t, problem, results[0].Problem, tool)
	}
}

func TestCases_CompareVerdicts(t *testing.T) {
	t.Parallel()
	known := func(name string) (jig.Tool, bool) {
		return jig.Tool{Name: "file.write", Permission: jig.PermissionWrite}.WithDefaults(), name == "file.write"
	}
	results := policy.Test(t.Context(), load(t, withCases), known)
	pay := jig.Terms{NotRequester: true, Requirements: []jig.Requirement{
		{Rule: "shop/one", Quorum: 1, Approvers: jig.Approvers{Groups: []string{"leads"}}},
		{Rule: "shop/two", Quorum: 2, Approvers: jig.Approvers{Groups: []string{"finance"}}},
	}}
	require.Len(t, results, 15)
	for i, want := range []protocol.CaseResult{
		{Name: "a page", Expect: "run", Got: "run", Rules: []string{"docs"}, OK: true, Unless: "the session has read untrusted data"},
		{Name: "another file", Expect: "ask", Got: "ask", Rules: []string{}, OK: true},
		{Name: "a contract of its own", Expect: "ask", Got: "ask", Rules: []string{"money"}, OK: true},
		{Name: "a tool of defaults", Expect: "ask", Got: "ask", Rules: []string{}, OK: true},
		{Name: "later", Expect: "deny", Got: "deny", Rules: []string{"late"}, OK: true},
		{Name: "whose", Expect: "deny", Got: "deny", Rules: []string{"mine"}, OK: true},
		{Name: "wrong verdict", Expect: "deny", Got: "run", Rules: []string{}, Problem: "the verdict is run, not deny"},
		{Name: "wrong rule", Expect: "run", Got: "run", Rules: []string{}, Problem: "the rule late did not apply; the rule money did not apply"},
		{Name: "no input", Expect: "run", Got: "ask", Rules: []string{"docs"}, Failed: []string{"docs"}, Problem: "the verdict is ask, not run"},
		{Name: "two pay", Expect: "ask", Got: "ask", Rules: []string{"one", "two"}, OK: true, Terms: pay},
		{Name: "three pay", Expect: "ask", Got: "ask", Rules: []string{"one", "two"}, Problem: "the largest quorum is 2, not 3", Terms: pay},
		{Name: "one asks", Expect: "ask", Got: "ask", Rules: []string{}, OK: true},
		{Name: "two ask", Expect: "ask", Got: "ask", Rules: []string{}, Problem: "the largest quorum is 1, not 2"},
		{Name: "two read", Expect: "ask", Got: "run", Rules: []string{}, Problem: "the verdict is run, not ask"},
		{Name: "unknown tool", Expect: "ask", Rules: []string{}, Problem: "the tool file.destroy is not known; write its contract: {name: file.destroy, permission: …}"},
	} {
		require.Equal(t, want.Got == "", len(results[i].Reasons) == 0, want.Name)
		results[i].Reasons = nil
		require.Equal(t, want, results[i])
	}
	for _, result := range policy.Test(t.Context(), load(t, withCases), nil)[:2] {
		require.False(t, result.OK)
		require.Contains(t, result.Problem, "file.write is not known")
	}
	raw, err := json.Marshal(results[0])
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"a page","expect":"run","got":"run","rules":["docs"],"ok":true,"unless":"the session has read untrusted data"}`, string(raw))
}

func TestCheckDocument_RunsTheCases(t *testing.T) {
	t.Parallel()
	check := func(body string) error {
		doc, problems := spec.Load("doc.yaml", []byte(body))
		require.NoError(t, problems.OrNil())
		return policy.CheckDocument(t.Context(), doc, nil)
	}
	const tested = "kind: policy\nname: p\nrules: [{name: all, when: true, verdict: ask, quorum: 2}]\n" +
		"cases: [{name: two, tool: {name: a.b}, expect: ask, quorum: 2}]\n"
	require.NoError(t, check(tested))
	require.ErrorContains(t, check(strings.Replace(tested, "quorum: 2}]\ncases", "quorum: 3}]\ncases", 1)), `"two" does not hold`)
	require.NoError(t, check("kind: tenant\nname: acme\n"), "it is not a policy")
}

// The input of a case is judged as a call's would be: in canonical form, or not at all.
func TestCases_PathsAreCanonical(t *testing.T) {
	t.Parallel()
	const document = "kind: policy\nname: paths\nrules:\n" +
		"  - {name: free, when: \"tool.name == 'file.write' && call.input.path.startsWith('free/')\", verdict: run}\n" +
		"  - {name: payroll, when: \"tool.name == 'file.write' && call.input.path.startsWith('payroll/')\", verdict: deny}\n" +
		"cases: [{name: c, tool: {name: file.write, permission: write}, input: {path: PATH, content: x}, expect: deny}]\n"
	marked := func(string) (jig.Tool, bool) {
		return jig.Tool{
			Name: "file.write", Permission: jig.PermissionWrite,
			InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","x-path":true}}}`),
		}.WithDefaults(), true
	}
	results := policy.Test(t.Context(), load(t, strings.Replace(document, "PATH", "./payroll//b.txt", 1)), marked)
	require.Empty(t, results[0].Problem)
	results = policy.Test(t.Context(), load(t, strings.Replace(document, "PATH", "free/../payroll/b.txt", 1)), marked)
	require.Contains(t, results[0].Problem, "the input would be refused")
}
