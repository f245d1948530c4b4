package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/spec"
)

func TestByDefault_AskersDoNotDecide(t *testing.T) {
	t.Parallel()
	one := tenancy.Settings{People: []jig.Principal{{ID: "ana"}}}
	two := tenancy.Settings{People: []jig.Principal{{ID: "ana"}, {ID: "ben"}}}
	for name, row := range map[string]struct {
		settings tenancy.Settings
		verdict  jig.Verdict
		terms    jig.Terms
		tool     jig.Tool
		asker    string
		want     jig.Terms
	}{
		"several people":          {two, jig.VerdictAsk, jig.Terms{}, jig.Tool{}, "ana", jig.Terms{NotRequester: true, ByDefault: true}},
		"nobody is listed":        {tenancy.Settings{}, jig.VerdictAsk, jig.Terms{}, jig.Tool{}, "ana", jig.Terms{}},
		"one person asks":         {one, jig.VerdictAsk, jig.Terms{}, jig.Tool{}, "ana", jig.Terms{}},
		"a program asks":          {one, jig.VerdictAsk, jig.Terms{}, jig.Tool{}, "ci", jig.Terms{NotRequester: true, ByDefault: true}},
		"a rule demands it":       {one, jig.VerdictAsk, jig.Terms{NotRequester: true}, jig.Tool{}, "ana", jig.Terms{NotRequester: true}},
		"a rule lifts it":         {two, jig.VerdictAsk, jig.Terms{RequesterMay: "p/r"}, jig.Tool{}, "ana", jig.Terms{RequesterMay: "p/r"}},
		"there was nothing to do": {one, jig.VerdictAsk, jig.Terms{RequesterMay: "p/r"}, jig.Tool{}, "ana", jig.Terms{}},
		"a question":              {two, jig.VerdictAsk, jig.Terms{}, jig.Tool{Implementation: jig.ImplementationPerson}, "ana", jig.Terms{}},
		"it runs":                 {two, jig.VerdictRun, jig.Terms{}, jig.Tool{}, "ana", jig.Terms{}},
	} {
		got := policy.Ruling{Verdict: row.verdict, Terms: row.terms}.ByDefault(row.settings, row.tool, []jig.Asker{{Principal: row.asker}})
		require.Equal(t, row.want, got.Terms, name)
	}
}

// One rule that keeps those from deciding who asked outweighs all that let them, whatever the order of rules and documents.
func TestByDefault_TheStricterRuleWins(t *testing.T) {
	t.Parallel()
	two := tenancy.Settings{People: []jig.Principal{{ID: "ana"}, {ID: "ben"}}}
	lifts := spec.PolicyRule{Name: "lifts", When: "true", Verdict: jig.VerdictAsk, NotRequester: new(false)}
	keeps := spec.PolicyRule{Name: "keeps", When: "true", Verdict: jig.VerdictAsk, NotRequester: new(true)}
	silent := spec.PolicyRule{Name: "silent", When: "true", Verdict: jig.VerdictAsk, Quorum: 2}
	broken := spec.PolicyRule{Name: "broken", When: "input.missing == 1", Verdict: jig.VerdictAsk, NotRequester: new(false)}
	brokenKeeps := spec.PolicyRule{Name: "broken-keeps", When: "input.missing == 1", Verdict: jig.VerdictAsk, NotRequester: new(true)}
	other := spec.PolicyRule{Name: "other", When: "false", Verdict: jig.VerdictAsk, NotRequester: new(true)}
	for name, row := range map[string]struct {
		rules []spec.PolicyRule
		lifts bool
	}{
		"one lifts it":                         {[]spec.PolicyRule{lifts}, true},
		"another says nothing":                 {[]spec.PolicyRule{lifts, silent}, true},
		"another keeps it":                     {[]spec.PolicyRule{lifts, keeps}, false},
		"two lift it and one keeps it":         {[]spec.PolicyRule{lifts, silent, keeps, lifts}, false},
		"one that cannot be evaluated lifts":   {[]spec.PolicyRule{broken}, false},
		"one that cannot be evaluated keeps":   {[]spec.PolicyRule{lifts, brokenKeeps}, false},
		"one that does not concern the call":   {[]spec.PolicyRule{lifts, other}, true},
		"one that lifts it without being able": {[]spec.PolicyRule{lifts, broken}, true},
	} {
		for _, reversed := range []bool{false, true} {
			var documents []*policy.Rules
			for i, rule := range row.rules {
				letter := 'a' + i
				if reversed {
					letter = 'z' - i
				}
				documents = append(documents, compiled(t, string(rune(letter)), rule))
			}
			ruling, err := policy.NewSet(documents...).Rule(t.Context(), jig.Tool{Name: "shop.refund"}.WithDefaults(), jig.Call{Input: []byte(`{}`)}, jig.Session{}, noon)
			require.NoError(t, err)
			terms := ruling.ByDefault(two, jig.Tool{}, []jig.Asker{{Principal: "ana"}}).Terms
			require.Equal(t, row.lifts, !terms.NotRequester, "%s, reversed %v", name, reversed)
			require.Equal(t, row.lifts, terms.RequesterMay != "", name)
		}
	}
}
