package policy_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/spec"
)

// people returns a person whom the tests' tenant knows.
func people(id string) jig.Principal {
	return tenancy.Settings{People: []jig.Principal{
		{ID: "ana", Groups: []string{"finance"}},
		{ID: "bo", Groups: []string{"finance"}, Permissions: []string{"pay"}},
		{ID: "carl", Groups: []string{"leads"}},
		{ID: "dora", Groups: []string{"finance", "leads"}, Permissions: []string{"*"}},
	}}.Person(id)
}

// granted compiles grants.
func granted(t testing.TB, grants ...jig.Grant) []*policy.GrantRule {
	t.Helper()
	rules := make([]*policy.GrantRule, 0, len(grants))
	for _, g := range grants {
		rule, err := policy.CompileGrant(g)
		require.NoError(t, err)
		rules = append(rules, rule)
	}
	return rules
}

// standing returns a grant that covers the calls of the table.
func standing(by ...string) jig.Grant {
	return jig.Grant{Tenant: "acme", ID: "grant_1", Tool: "file.act", Meaning: "acts", When: "input.n < 5", MaxUses: 3, ExpiresAt: noon.Add(time.Hour), By: by}
}

// becomes returns what happens to a call before any person decides.
func (q request) becomes(t testing.TB, rules policy.Set, grants []*policy.GrantRule) string {
	t.Helper()
	ruling, err := rules.Rule(t.Context(), q.tool, q.call, q.session, q.now)
	require.NoError(t, err)
	switch ruling.Verdict {
	case jig.VerdictRun:
		return "runs"
	case jig.VerdictDeny:
		return "denied"
	case jig.VerdictAsk, jig.VerdictRefuse:
	}
	if ruling.Person {
		return "waits"
	}
	for _, g := range grants {
		covers, err := g.Covers(t.Context(), q.tool, q.call, q.session, q.now)
		if !covers {
			continue
		}
		require.NoError(t, err)
		consent := approval.Consent{Terms: ruling.Terms, Askers: []jig.Asker{{Principal: q.session.Principal.ID, By: jig.AskedStarted}}, RequestedAt: q.now}
		for _, by := range g.Grant().By {
			if counts, why := consent.Entitled(people(by), q.now); why == "" {
				consent.Votes = append(consent.Votes, jig.Vote{By: by, Counts: counts})
			}
		}
		if consent.Granted() {
			return "granted"
		}
	}
	return "waits"
}

// termsRules returns the rules that consent.txt names.
func termsRules(t *testing.T, names string) policy.Set {
	t.Helper()
	finance, leads := &spec.Approvers{Groups: []string{"finance"}}, &spec.Approvers{Groups: []string{"leads"}}
	known := map[string]spec.PolicyRule{
		"run": {Verdict: jig.VerdictRun}, "ask": {Verdict: jig.VerdictAsk}, "deny": {Verdict: jig.VerdictDeny},
		"fails-run": {Verdict: jig.VerdictRun, When: "input.missing == 1"}, "fails-ask": {Verdict: jig.VerdictAsk, When: "input.missing == 1"},
		"fails-deny": {Verdict: jig.VerdictDeny, When: "input.missing == 1"},
		"finance":    {Verdict: jig.VerdictAsk, Approvers: finance}, "leads": {Verdict: jig.VerdictAsk, Approvers: leads},
		"two": {Verdict: jig.VerdictAsk, Quorum: 2}, "two-finance": {Verdict: jig.VerdictAsk, Quorum: 2, Approvers: finance},
		"other": {Verdict: jig.VerdictAsk, NotRequester: new(true)},
	}
	var set []*policy.Rules
	for _, name := range strings.Split(names, "+") {
		rule, ok := known[name]
		require.Equal(t, name != "none", ok, name)
		rule.Name = name
		if rule.When == "" {
			rule.When = "true"
		}
		if ok { // each rule in its own document
			set = append(set, compiled(t, "doc-"+name, rule))
		}
	}
	return policy.NewSet(set...)
}

// grantsOf returns the sets of grants that a column of consent.txt stands for.
func grantsOf(column string) [][]jig.Grant {
	spoiled := func(spoil func(*jig.Grant)) []jig.Grant {
		g := standing("ana", "bo", "carl", "dora")
		spoil(&g)
		return []jig.Grant{g}
	}
	switch column {
	case "none":
		return [][]jig.Grant{nil}
	case "own":
		return [][]jig.Grant{{standing("ana")}}
	case "other":
		revoked := noon.Add(-time.Hour)
		return [][]jig.Grant{
			spoiled(func(g *jig.Grant) { g.ExpiresAt = noon }), spoiled(func(g *jig.Grant) { g.RevokedAt = &revoked }),
			spoiled(func(g *jig.Grant) { g.Used = g.MaxUses }), spoiled(func(g *jig.Grant) { g.Tool = "file.other" }),
			spoiled(func(g *jig.Grant) { g.Agent = "other" }), spoiled(func(g *jig.Grant) { g.Tenant = "other" }),
			spoiled(func(g *jig.Grant) { g.Tenant = "" }), spoiled(func(g *jig.Grant) { g.When = "input.n > 5" }),
			spoiled(func(g *jig.Grant) { g.When = "input.missing" }), spoiled(func(g *jig.Grant) { g.Meaning = "acts twice" }),
			spoiled(func(g *jig.Grant) { g.Meaning = "" }), spoiled(func(g *jig.Grant) { g.By = nil }),
		}
	}
	var grants []jig.Grant
	for by := range strings.SplitSeq(column, ",") {
		grants = append(grants, standing(strings.Split(by, "+")...))
	}
	return [][]jig.Grant{grants}
}

// Tests each class of tools with each set of rules and each grant, for every contract of the class.
func TestConsent_FollowsTheRules(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/consent.txt")
	require.NoError(t, err)
	var columns []string
	tried := 0
	for line := range strings.Lines(string(raw)) {
		words := strings.Fields(line)
		switch {
		case words[0] == "#":
			continue
		case columns == nil:
			columns = words
			continue
		}
		require.Len(t, words, len(columns), line)
		rules := termsRules(t, words[1])
		for i, column := range columns[2:] {
			tried++
			for _, grants := range grantsOf(column) {
				compiled := granted(t, grants...)
				for _, tool := range everyTool() {
					if classOf(tool) != words[0] {
						continue
					}
					tool.Meaning = "acts"
					q := request{
						tool: tool, call: jig.Call{Tool: tool.Name, Input: []byte(`{"n":4}`)}, now: noon,
						session: jig.Session{Tenant: "acme", Agent: jig.Agent{Name: "desk"}, Principal: jig.Principal{ID: "rex"}},
					}
					if column == "own" {
						q.session.Principal = people("ana")
					}
					require.Equal(t, words[i+2], q.becomes(t, rules, compiled), "%s %s %s: %+v %+v", words[0], words[1], column, tool, grants)
				}
			}
		}
	}
	require.GreaterOrEqual(t, tried, 300)
}

func randomSet(t *testing.T, r *rand.Rand) policy.Set {
	t.Helper()
	var list []*policy.Rules
	for n := range r.IntN(4) {
		var rules []spec.PolicyRule
		for i := range r.IntN(3) {
			rules = append(rules, randomRule(r, i))
		}
		list = append(list, compiled(t, fmt.Sprintf("doc%d", n), rules...))
	}
	return policy.NewSet(list...)
}

func randomGrants(t *testing.T, r *rand.Rand) []*policy.GrantRule {
	t.Helper()
	var grants []jig.Grant
	for range r.IntN(4) {
		g := standing(pick(r, []string{"ana"}, []string{"ana", "bo"}, []string{"ana", "bo", "carl", "dora"}, []string{"nobody"})...)
		g.Tenant, g.Tool, g.Agent = pick(r, "acme", "default"), pick(r, "file.write", "shop.refund"), pick(r, "", "", "desk")
		g.When, g.Used, g.ExpiresAt = string(pick(r, conditions()...)), r.IntN(4), noon.Add(time.Duration(r.IntN(72))*time.Hour)
		grants = append(grants, g)
	}
	return granted(t, grants...)
}

// No combination of documents and grants lets a tool run without a decision if the tool is destructive, always asks or is unknown, or if the
// call is denied. A grant never applies if its tool, agent, tenant, time or condition does not match.
func TestGrant_CannotAllowForbiddenCalls(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range uint64(2_000) {
		r := rand.New(rand.NewPCG(seed, 2))
		rules, grants, q := randomSet(t, r), randomGrants(t, r), randomRequest(r)
		q.call.Tool, q.tool.Meaning = q.tool.Name, pick(r, "acts", "acts", "acts", "acts", "acts", "acts", "acts twice")
		outcome := q.becomes(t, rules, grants)
		seen[outcome]++
		x := rules.Explain(t.Context(), q.tool, q.call, q.session, q.now)
		says := fmt.Sprintf("seed %d: %+v\n%+v", seed, q, x)
		if classOf(q.tool) == "fixed" {
			require.NotContains(t, []string{"runs", "granted"}, outcome, says)
			seen["fixed"]++
		}
		denies := slices.ContainsFunc(x.Rules, func(s policy.AppliedRule) bool { return s.Verdict == jig.VerdictDeny })
		require.Equal(t, denies, outcome == "denied", says)
		require.Equal(t, outcome, q.becomes(t, policy.NewSet(shuffle(r, rules)...), grants), says)
		for _, g := range grants {
			covers, err := g.Covers(t.Context(), q.tool, q.call, q.session, q.now)
			require.False(t, covers && err != nil, says)
			if one := g.Grant(); covers {
				require.True(t, one.Live(q.now) && one.Tool == q.tool.Name && one.Meaning == q.tool.Meaning && one.Tenant == q.session.Tenant, says)
				require.True(t, one.Agent == "" || one.Agent == q.session.Agent.Name, says)
				require.NotEqual(t, "fixed", classOf(q.tool), says)
			}
		}
	}
	for _, outcome := range []string{"runs", "waits", "denied", "fixed"} {
		require.Greater(t, seen[outcome], 100, outcome)
	}
	require.Greater(t, seen["granted"], 20)
}

func shuffle(r *rand.Rand, rules policy.Set) []*policy.Rules {
	list := slices.Clone(rules)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// Adding a document never makes terms milder: no requirement is lost, no time gets longer, and no outcome gets less strict. A call that a rule
// asks about never runs because of the added document.
func TestTerms_OnlyGrow(t *testing.T) {
	t.Parallel()
	grown := 0
	for seed := range uint64(2_000) {
		r := rand.New(rand.NewPCG(seed, 3))
		rules, q := randomSet(t, r), randomRequest(r)
		var added []spec.PolicyRule
		for i := range 1 + r.IntN(2) {
			added = append(added, randomRule(r, i))
		}
		before, err := rules.Rule(t.Context(), q.tool, q.call, q.session, q.now)
		require.NoError(t, err)
		after, err := policy.NewSet(append(slices.Clone(rules), compiled(t, pick(r, "a", "z"), added...))...).Rule(t.Context(), q.tool, q.call, q.session, q.now)
		require.NoError(t, err)
		says := fmt.Sprintf("seed %d: %+v\n%+v\n%+v", seed, q, before, after)
		for _, ruling := range []policy.Ruling{before, after} {
			require.True(t, ruling.Verdict == jig.VerdictAsk || ruling.Terms.Plain() && ruling.Expires == 0 && !ruling.Base, says)
			require.True(t, !ruling.Base || ruling.Terms.Plain(), says)
			require.True(t, slices.IsSortedFunc(ruling.Terms.Requirements, func(a, b jig.Requirement) int { return strings.Compare(a.Rule, b.Rule) }), says)
		}
		if before.Verdict != jig.VerdictAsk {
			continue
		}
		if !before.Base {
			require.NotEqual(t, jig.VerdictRun, after.Verdict, says)
		}
		if after.Verdict != jig.VerdictAsk {
			continue
		}
		for _, one := range before.Terms.Requirements {
			require.Contains(t, after.Terms.Requirements, one, says)
		}
		require.True(t, after.Terms.NotRequester || !before.Terms.NotRequester, says)
		require.GreaterOrEqual(t, after.Terms.OnExpiry.Strictness(), before.Terms.OnExpiry.Strictness(), says)
		require.True(t, before.Expires == 0 || after.Expires > 0 && after.Expires <= before.Expires, says)
		require.True(t, before.Terms.Remind == 0 || after.Terms.Remind > 0 && after.Terms.Remind <= before.Terms.Remind, says)
		require.True(t, before.Base || !after.Base, says)
		if len(after.Terms.Requirements) > len(before.Terms.Requirements) {
			grown++
		}
	}
	require.Greater(t, grown, 50)
}
