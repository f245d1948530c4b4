package e2e_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const sessionsPage = "docs/sessions.md"

// Every command on the page does what the page says and prints what the page shows.
func TestSessionsPage_Works(t *testing.T) {
	t.Parallel()
	programs := filepath.Dir(shared.cli.path(t)) + ":/usr/local/bin:/usr/bin:/bin"
	m := &pageRunner{tenantEnv: tenantEnv{tenant: "reading", testEnv: startEnv(t, "PATH="+programs, "HOME="+t.TempDir(), "JIG_TENANT=reading", "NO_COLOR=1")}}
	codes := []int{3, 1, 3, 0, 0, 0, 0, 0, 0, 1, 0, 0}
	ran := 0
	for _, f := range codeBlocks(t, sessionsPage) {
		switch f.language {
		case "yaml":
			m.file(f)
		case "markdown":
			m.put("greeter.md", f.body)
		case "text":
			m.shows(f)
		case "json":
			require.True(t, json.Valid([]byte(f.body)), f.body)
		case "sh":
			require.Less(t, ran, len(codes), "the page has commands that this test has no step for:\n%s", f.body)
			m.run(f.body, "", codes[ran])
			ran++
		default:
			require.Fail(t, "this test cannot run blocks of this language", f.language)
		}
	}
	require.Len(t, codes, ran, "the test has steps for commands that the page no longer has")
}
