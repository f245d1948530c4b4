package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const webUIPage = "docs/web-ui.md"

// Every command on the page works, and its lists show sessions alone.
func TestWebUIPage_Works(t *testing.T) {
	t.Parallel()
	stock, err := filepath.Abs(filepath.Join("..", "..", ".cache", "bin"))
	require.NoError(t, err)
	programs := strings.Join([]string{stock, os.Getenv("PATH")}, string(os.PathListSeparator))
	d, r := startEnv(t, "PATH="+programs, "HOME="+t.TempDir()), newReceiver(t)
	m := &pageRunner{tenantEnv: tenantEnv{tenant: "default", testEnv: d}}
	id := d.compose(gatedSpec, map[string]any{"url": r.URL, "name": "w"})
	d.waiting(id)
	said := map[string]string{}
	for _, f := range codeBlocks(t, webUIPage) {
		require.Equal(t, "sh", f.language, "this test cannot run blocks of this language")
		require.True(t, eventually(t.Context(), patience, func() bool { // a list shows a session a moment after it began
			m.run(f.body, id, 0)
			return f.section != "Saved views" || strings.Contains(f.body, "JigAgent") || strings.Count(m.last.out, id) == 2
		}), "the session is not in both lists:\n%s", m.last.out)
		said[f.section] += m.last.out
	}
	require.NotContains(t, said["Saved views"], "/1.1", "the composition inside the session is listed")
	require.NotContains(t, said["Saved views"], "Sweep")
	require.Contains(t, said["The page of a session"], "waits for approval")
}
