package tooltest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/model"
	"github.com/jig-run/jig/tools/tooltest"
)

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
