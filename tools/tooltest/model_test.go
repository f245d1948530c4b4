package tooltest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/model"
	"github.com/jig-run/jig/tools/tooltest"
)

// The example of the documentation compiles in a module of somebody else.
func TestFakeModel_IsOfUseToOtherModules(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/your-own-worker.md")
	require.NoError(t, err)
	_, example, found := strings.Cut(string(page), "```go\nfake := ")
	require.True(t, found)
	example, _, _ = strings.Cut(example, "```")
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.com/shop\n\ngo 1.26.0\n",
		"go.work": "go 1.26.0\n\nuse (\n\t.\n\t" + strconv.Quote(root) + "\n)\n",
		"shop_test.go": "package shop_test\n\nimport (\n\t\"testing\"\n\n\t\"github.com/jig-run/jig/tools/tooltest\"\n\t\"github.com/jig-run/jig/worker\"\n)\n\n" +
			"func TestAgent(t *testing.T) {\n\tvar settings worker.Settings\n\tfake := " + example + "}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	vet := exec.CommandContext(t.Context(), "go", "vet", "./...")
	vet.Dir, vet.Env = dir, append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"), "GOFLAGS=")
	out, err := vet.CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestFakeModel_AnswersInOrder(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"anthropic", "openai"} {
		fake := tooltest.FakeModel(t,
			tooltest.Answer{Calls: []tooltest.Asked{{Tool: "refunds.create", Input: map[string]int{"order": 1042}}, {Tool: "refunds.list"}}},
			tooltest.Answer{Text: "Done."})
		router := model.NewRouter(model.Settings{
			Anthropic: model.Provider{BaseURL: fake.AnthropicURL}, OpenAI: model.Provider{BaseURL: fake.OpenAIURL},
		})
		request := chat.Request{Model: provider + "/any", Exchanges: []chat.Exchange{{Messages: []chat.Message{{Role: chat.RoleUser, Text: "Refund it."}}}}}
		turn, err := router.Answer(t.Context(), request, nil)
		require.NoError(t, err)
		require.Len(t, turn.Calls, 2)
		require.Equal(t, "refunds.create", turn.Calls[0].Name)
		require.JSONEq(t, `{"order":1042}`, string(turn.Calls[0].Input))
		require.JSONEq(t, `{}`, string(turn.Calls[1].Input))
		request.Exchanges[0].Turn = &turn
		request.Exchanges[0].Calls = []jig.Call{{Result: &jig.ToolResult{Success: true, Summary: "refunded"}}, {Result: &jig.ToolResult{Success: true}}}
		turn, err = router.Answer(t.Context(), request, nil)
		require.NoError(t, err)
		require.Equal(t, "Done.", turn.Text)
		require.Len(t, fake.Requests(), 2)
		require.Contains(t, string(fake.Requests()[1]), "refunded")
	}
}
