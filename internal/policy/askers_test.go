package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/tenancy"
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
