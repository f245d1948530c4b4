package model_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/modeltest"
)

var update = flag.Bool("update", false, "write the golden files")

func user(text string) []chat.Message {
	return []chat.Message{{Role: chat.RoleUser, Text: text, By: "ana"}}
}

// transcript has every kind of exchange: parallel calls with each kind of result, messages in between, malformed and unanswered calls, an
// empty turn, and a turn without calls.
func transcript() []chat.Exchange {
	return []chat.Exchange{
		{Pass: 1, Messages: append(user("Review it."), user("And be quick.")...), Turn: &chat.Turn{
			Text: "I look.",
			Calls: []jig.ToolCall{
				{ProviderID: "a", Name: "data.searchRecords", Input: json.RawMessage(`{"q":"x"}`)},
				{ProviderID: "b", Name: "file.read", Input: json.RawMessage(`{"path":"y"}`)},
				{ProviderID: "c", Name: "file.read", Malformed: `{"path`},
			},
		}, Calls: []jig.Call{
			{ID: "1.1", ProviderID: "a", Result: &jig.ToolResult{Success: true, Data: json.RawMessage(`{"found":[1,2]}`), Summary: "2 records"}},
			{ID: "1.2", ProviderID: "b", Result: &jig.ToolResult{Success: true, Markdown: "# y\n\ntext", Data: json.RawMessage(`{}`)}},
			{ID: "1.3", ProviderID: "c", Result: &jig.ToolResult{Error: &jig.Error{
				Code: jig.CodeInvalidInput, Message: "not JSON", Field: "/path", Hint: "write JSON", Reason: "syntax",
				Violations: []jig.Violation{{Pointer: "/path", Message: "is missing"}},
			}}},
		}},
		{Pass: 2, Messages: user("Skip the archived ones."), Turn: &chat.Turn{}},
		{Pass: 3, Turn: &chat.Turn{Calls: []jig.ToolCall{
			{ProviderID: "call:4", Name: "old.tool__gone", Input: json.RawMessage(`[1]`)},
			{ProviderID: "e", Name: "file.read"},
		}}, Calls: []jig.Call{{ID: "3.1", ProviderID: "call:4", Result: &jig.ToolResult{Error: &jig.Error{Code: jig.CodeDenied, Message: "denied"}}}}},
		{Pass: 4, Turn: &chat.Turn{Text: "Done."}},
		{Pass: 5, Messages: user("Thanks, once more.")},
	}
}

func TestRequests_AreGolden(t *testing.T) {
	t.Parallel()
	cases := map[string][]chat.Exchange{
		"full":     transcript(),
		"first":    {{Pass: 1, Messages: user("Review it.")}},
		"empty":    {{Pass: 1}},
		"headless": {{Pass: 7, Turn: &chat.Turn{Text: "Where was I?"}}, {Pass: 8, Turn: &chat.Turn{Text: "Here."}}, {Pass: 9, Messages: user("Go on.")}},
	}
	for name, exchanges := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothWires(t, func(t *testing.T, provider string) {
				t.Helper()
				s := modeltest.New(t, modeltest.Text("ok"))
				_, err := router(s).Answer(t.Context(), request(provider, exchanges...), nil)
				require.NoError(t, err)
				var pretty bytes.Buffer
				require.NoError(t, json.Indent(&pretty, s.Requests()[0].Body, "", "  "))
				pretty.WriteString("\n")
				golden(t, provider+"_"+name+".json", pretty.Bytes())
			})
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update")
	require.Equal(t, string(want), string(got))
}

// A provider's prompt cache is used only if a request begins exactly like the previous one.
func TestRequests_PrefixIsStable(t *testing.T) {
	t.Parallel()
	bothWires(t, func(t *testing.T, provider string) {
		t.Helper()
		s := modeltest.New(t, modeltest.Text("ok"), modeltest.Text("ok"))
		r := router(s)
		all := transcript()
		for _, n := range []int{3, 5} {
			_, err := r.Answer(t.Context(), request(provider, all[:n]...), nil)
			require.NoError(t, err)
		}
		short, long := s.Requests()[0].Turns, s.Requests()[1].Turns
		require.Equal(t, short, long[:len(short)])
		require.Equal(t, s.Requests()[0].Tools, s.Requests()[1].Tools)
	})
}

// Reasoning is sent back unchanged, with its signature, before the calls that followed it.
func TestRequests_SendReasoningBack(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		s := modeltest.New(t, modeltest.Reply{
			Thinking: "Let me see.", Text: "I look.", Plain: plain,
			Calls: []modeltest.Call{{Name: "file__read", Args: `{"path":"y"}`}, {Name: "file__read", Args: `{"pa`}},
		}, modeltest.Text("ok"))
		r := router(s)
		turn, err := r.Answer(t.Context(), request("anthropic"), nil)
		require.NoError(t, err)
		require.Equal(t, "I look.", turn.Text)
		require.NotEmpty(t, turn.Opaque)
		first := chat.Exchange{Messages: user("hello"), Turn: &turn, Calls: []jig.Call{
			{ProviderID: turn.Calls[0].ProviderID, Result: &jig.ToolResult{Success: true, Summary: "fine"}},
			{ProviderID: turn.Calls[1].ProviderID, Result: &jig.ToolResult{Error: &jig.Error{Code: jig.CodeInvalidInput, Message: "no"}}},
		}}
		_, err = r.Answer(t.Context(), request("anthropic", first), nil)
		require.NoError(t, err)
		require.Contains(t, string(s.Requests()[1].Body), `"signature":"signed:Let me see."`)
		require.Equal(t, "fine", s.Requests()[1].Turns[2].Text)
	}
}
