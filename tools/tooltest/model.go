package tooltest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jig-run/jig/internal/modeltest"
)

// Model is a server that stands in for Anthropic and OpenAI. It refuses requests that they would refuse, and closes when its test ends. A
// worker asks it if its settings, or the environment variables ANTHROPIC_BASE_URL and OPENAI_BASE_URL, have its addresses.
type Model struct {
	// AnthropicURL and OpenAIURL are the base URLs for the two providers.
	AnthropicURL, OpenAIURL string

	server *modeltest.Server
}

// Answer is an answer of a [Model]: a text, calls, or both.
type Answer struct {
	Text  string
	Calls []Asked
}

// Asked is a call that an answer asks for. Input is encoded as JSON; nil is {}.
type Asked struct {
	Tool  string
	Input any
}

// FakeModel starts a model that gives the answers in this order, one for each request. A further request fails the test.
func FakeModel(tb testing.TB, answers ...Answer) *Model {
	tb.Helper()
	steps := make([]modeltest.Reply, len(answers))
	for i, a := range answers {
		steps[i].Text = a.Text
		for _, c := range a.Calls {
			input, err := json.Marshal(c.Input)
			if err != nil {
				tb.Fatalf("%s: encode the input: %v", c.Tool, err)
			}
			steps[i].Calls = append(steps[i].Calls, modeltest.Call{Name: strings.ReplaceAll(c.Tool, ".", "__"), Args: string(input)})
		}
	}
	server := modeltest.New(tb, steps...)
	return &Model{AnthropicURL: server.URL, OpenAIURL: server.OpenAIURL(), server: server}
}

// Requests returns the bodies of the requests so far, as the providers would receive them.
func (m *Model) Requests() []json.RawMessage {
	var list []json.RawMessage
	for _, r := range m.server.Requests() {
		list = append(list, r.Body)
	}
	return list
}
