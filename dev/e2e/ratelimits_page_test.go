package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

const rateLimitsPage = "docs/rate-limits.md"

// Every document on the page is valid, and every command on it does what the page says and prints what the page shows.
func TestRateLimitsPage(t *testing.T) {
	t.Parallel()
	programs := filepath.Dir(shared.cli.path(t)) + ":/usr/local/bin:/usr/bin:/bin"
	m := &manual{office: office{tenant: "paced", desk: open(t, "PATH="+programs, "HOME="+t.TempDir(), "JIG_TENANT=paced", "NO_COLOR=1")}}
	p := paced{m.desk, m.tenant}
	second := jig.SessionID(m.tenant, "second")
	then := []func(){
		func() { p.knows() },
		func() { p.reaches(second, func(v jig.SessionView) bool { return limited(v, "notes") == 1 }) },
		func() { m.says("waits · limit notes of rate limit apis allows 2 calls per 1h")("") },
		func() { p.reaches(second, func(v jig.SessionView) bool { return v.Status == jig.StatusCompleted }) },
	}
	ran := 0
	for _, f := range fences(t, rateLimitsPage) {
		switch f.language {
		case "yaml", "markdown":
			name := map[bool]string{true: "scribe.md", false: "apis.yaml"}[f.language == "markdown"]
			doc, problems := spec.Load(name, []byte(f.body))
			require.Empty(t, problems, f.body)
			if doc.Name == "apis" || doc.Name == "scribe" {
				require.Contains(t, f.before, "`"+name+"`")
				m.put(name, f.body)
			}
		case "text":
			m.shows(f)
		case "sh":
			require.Less(t, ran, len(then), "the page has commands that this test has no step for:\n%s", f.body)
			m.run(f.body, "", 0)
			then[ran]()
			ran++
		default:
			require.Fail(t, "this test cannot run blocks of this language", f.language)
		}
	}
	require.Len(t, then, ran, "the test has steps for commands that the page no longer has")
}
