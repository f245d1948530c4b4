package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/modeltest"
)

const modelsPage = "docs/models.md"

// Every command on the page works as the page says.
func TestModelsPage_Works(t *testing.T) {
	t.Parallel()
	server := modeltest.New(t, modeltest.Text("Dear Ana,\nthe release is out."))
	programs := filepath.Dir(shared.cli.path(t)) + ":/usr/local/bin:/usr/bin:/bin"
	m := &pageRunner{tenantEnv: tenantEnv{tenant: "letters", testEnv: startEnv(t, "PATH="+programs, "HOME="+t.TempDir(), "JIG_TENANT=letters", "NO_COLOR=1",
		"OPENAI_API_KEY=key", "OPENAI_BASE_URL="+server.OpenAIURL())}}
	then := []func(){
		func() { m.says("Dear Ana,\nthe release is out.\n", "✓ session completed")("") },
		func() {
			m.says(`"type":"session.completed"`)("")
			require.NotContains(t, m.last.out, `"attempt"`)
		},
	}
	ran := 0
	for _, f := range codeBlocks(t, modelsPage) {
		switch f.language {
		case "markdown":
			require.Contains(t, f.before, "`writer.md`")
			m.put("writer.md", f.body)
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
