package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

const budgetsPage = "docs/budgets.md"

// Every document on the page is valid, and every command on it does what the page says and prints what the page shows.
func TestBudgetsPage(t *testing.T) {
	t.Parallel()
	programs := filepath.Dir(shared.cli.path(t)) + ":/usr/local/bin:/usr/bin:/bin"
	m := &manual{office: office{tenant: "frugal", desk: open(t, "PATH="+programs, "HOME="+t.TempDir(), "JIG_TENANT=frugal", "NO_COLOR=1")}}
	s := spender{m.desk, m.tenant}
	second := jig.SessionID(m.tenant, "second")
	then := []func(){
		func() { // the documents are registered
			require.True(t, eventually(t.Context(), patience, func() bool { return s.used().Currency == "EUR" }))
		},
		func() { m.says("todo.write")("") },
		func() { s.paused(second) },
		func() {
			require.True(t, eventually(t.Context(), patience, func() bool { return len(s.exhausted(second)) == 2 }))
			s.paused(second)
		},
		func() {
			s.completes(second)
			require.Equal(t, []string{"ask trial", "ask trial"}, s.exhausted(second))
		},
	}
	ran := 0
	for _, f := range fences(t, budgetsPage) {
		switch f.language {
		case "yaml", "markdown":
			name := map[bool]string{true: "planner.md", false: "spending.yaml"}[f.language == "markdown"]
			doc, problems := spec.Load(name, []byte(f.body))
			require.Empty(t, problems, f.body)
			if doc.Name == "spending" || doc.Name == "planner" {
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
