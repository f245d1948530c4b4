package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

const budgetsPage = "docs/budgets.md"

// Every document on the page is valid, and every command on it does what the page says and prints what the page shows.
func TestBudgetsPage_Works(t *testing.T) {
	t.Parallel()
	programs := filepath.Dir(shared.cli.path(t)) + ":/usr/local/bin:/usr/bin:/bin"
	m := &pageRunner{tenantEnv: tenantEnv{tenant: "frugal", testEnv: startEnv(t, "PATH="+programs, "HOME="+t.TempDir(), "JIG_TENANT=frugal", "NO_COLOR=1")}}
	s := budgetEnv{m.testEnv, m.tenant}
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
	m.follows(budgetsPage, map[string]string{"spending": "spending.yaml", "planner": "planner.md"}, then)
}
