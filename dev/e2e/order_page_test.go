package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

const orderPage = "docs/order.md"

// Every document on the page is valid, and every command on it does what the page says and prints what the page shows.
func TestOrderPage_Works(t *testing.T) {
	t.Parallel()
	programs := filepath.Dir(shared.cli.path(t)) + ":/usr/local/bin:/usr/bin:/bin"
	m := &pageRunner{tenantEnv: tenantEnv{tenant: "ordered", testEnv: startEnv(t, "PATH="+programs, "HOME="+t.TempDir(), "JIG_TENANT=ordered", "NO_COLOR=1")}}
	report := jig.SessionID(m.tenant, "report")
	counts := func(status jig.CallStatus, n int) func() {
		return func() {
			t.Helper()
			require.True(t, eventually(t.Context(), patience, func() bool {
				v, err := m.Status(t.Context(), m.tenant, report)
				return err == nil && v.Counts[status] == n
			}))
		}
	}
	m.follows(orderPage, map[string]string{"editor": "editor.md"}, []func(){
		counts(jig.CallWaiting, 2), counts(jig.CallSucceeded, 1), func() {}, counts(jig.CallWaiting, 1), counts(jig.CallSucceeded, 3),
	})
}
