package model

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"github.com/jig-run/jig/internal/chat"
)

const anthropicURL = "https://api.anthropic.com/"

// anthropicVersion is the version of the Messages API.
const anthropicVersion = "2023-06-01"

// anthropicProvider uses the Messages API.
type anthropicProvider struct {
	settings Provider
	// endpoint returns how to ask a model.
	endpoint func(name string) endpoint
}

func (p *anthropicProvider) check(string) error { return needKey(p.settings, EnvAnthropicKey) }

func (p *anthropicProvider) answer(ctx context.Context, name string, request chat.Request, progress func(string)) (chat.Turn, error) {
	to := p.endpoint(name)
	header := http.Header{"Anthropic-Version": {anthropicVersion}}
	if p.settings.APIKey != "" {
		header.Set("X-Api-Key", p.settings.APIKey)
	}
	return to.ask(ctx, request, providerCall{
		base: p.settings.BaseURL, usual: anthropicURL, path: "v1/messages", header: header,
		body: newAnthropicRequest(name, request, to.stream),
		env:  EnvAnthropicKey, key: p.settings.APIKey,
		reader: &anthropicReader{progress: progress, key: p.settings.APIKey, at: map[int64]*anthropicBlock{}},
	})
}

// anthropicOpaque is stored with a turn that has reasoning. It holds the turn's whole content, because the blocks are signed and must be
// sent back unchanged and in order.
type anthropicOpaque struct {
	Provider string            `json:"provider"`
	Content  []json.RawMessage `json:"content"`
}

const defaultMaxTokens = 8192

// anthropicRequest is the body of a request to the Messages API.
type anthropicRequest struct {
	MaxTokens  int                `json:"max_tokens"`
	Messages   []anthropicMessage `json:"messages"`
	Model      string             `json:"model"`
	System     []anthropicText    `json:"system,omitempty"`
	ToolChoice *anthropicType     `json:"tool_choice,omitempty"`
	Tools      []anthropicTool    `json:"tools,omitempty"`
	Stream     bool               `json:"stream,omitempty"`
}

type anthropicMessage struct {
	Content []any  `json:"content"`
	Role    string `json:"role"`
}

// anthropicType is an object that holds nothing but its type.
type anthropicType struct {
	Type string `json:"type"`
}

type anthropicText struct {
	Text  string         `json:"text"`
	Cache *anthropicType `json:"cache_control,omitempty"`
	Type  string         `json:"type"`
}

type anthropicToolUse struct {
	ID    string          `json:"id"`
	Input json.RawMessage `json:"input"`
	Name  string          `json:"name"`
	Type  string          `json:"type"`
}

type anthropicToolResult struct {
	ToolUseID string           `json:"tool_use_id"`
	IsError   bool             `json:"is_error"`
	Cache     *anthropicType   `json:"cache_control,omitempty"`
	Content   []*anthropicText `json:"content"`
	Type      string           `json:"type"`
}

type anthropicTool struct {
	InputSchema json.RawMessage `json:"input_schema"`
	Name        string          `json:"name"`
	Cache       *anthropicType  `json:"cache_control,omitempty"`
	Description string          `json:"description,omitempty"`
}

func newAnthropicRequest(name string, r chat.Request, stream bool) anthropicRequest {
	request := anthropicRequest{
		Model: name, MaxTokens: maxTokens(r), Stream: stream,
		Messages: anthropicMessages(conversation(r.Exchanges)),
	}
	if r.System != "" {
		request.System = []anthropicText{{Text: r.System, Type: "text", Cache: ephemeral()}}
	}
	for _, t := range r.Tools {
		request.Tools = append(request.Tools, anthropicTool{Name: wireName(t.Name), Description: t.Description, InputSchema: schemaOf(t)})
	}
	if n := len(request.Tools); n > 0 {
		request.Tools[n-1].Cache = ephemeral()
		request.ToolChoice = &anthropicType{Type: "auto"}
	}
	return request
}

// ephemeral returns a mark for the prompt cache.
func ephemeral() *anthropicType { return &anthropicType{Type: "ephemeral"} }

func maxTokens(r chat.Request) int {
	if r.MaxTokens > 0 {
		return r.MaxTokens
	}
	return defaultMaxTokens
}

// anthropicMessages returns messages with alternating roles. Results and the user texts after them share one user message, results first.
func anthropicMessages(steps []step) []anthropicMessage {
	var out []anthropicMessage
	add := func(role string, blocks ...any) {
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			return
		}
		out = append(out, anthropicMessage{Role: role, Content: blocks})
	}
	for _, s := range steps {
		for _, text := range s.user {
			add("user", &anthropicText{Text: text, Type: "text"})
		}
		if s.turn == nil {
			continue
		}
		add("assistant", anthropicTurn(s)...)
		for _, r := range s.results {
			add("user", &anthropicToolResult{
				ToolUseID: anthropicID(r.id), IsError: r.failed, Content: []*anthropicText{{Text: r.text, Type: "text"}}, Type: "tool_result",
			})
		}
	}
	markCache(out)
	return out
}

// markCache marks two positions for the prompt cache: the end of the conversation, which the next request will repeat, and the end of the
// previous one, which the last request marked. Together with tools and system, these are the four marks that the API allows.
func markCache(messages []anthropicMessage) {
	marks := 2
	for i := len(messages) - 1; i >= 0 && marks > 0; i-- {
		m := messages[i]
		if m.Role != "user" || len(m.Content) == 0 {
			continue
		}
		switch last := m.Content[len(m.Content)-1].(type) {
		case *anthropicText:
			last.Cache = ephemeral()
		case *anthropicToolResult:
			last.Cache = ephemeral()
		}
		marks--
	}
}

func anthropicTurn(s step) []any {
	t := s.turn
	var opaque anthropicOpaque
	var blocks []any
	if len(t.Opaque) > 0 && json.Unmarshal(t.Opaque, &opaque) == nil && opaque.Provider == "anthropic" {
		for _, raw := range opaque.Content {
			blocks = append(blocks, raw)
		}
		return blocks
	}
	if strings.TrimSpace(t.Text) != "" {
		blocks = append(blocks, &anthropicText{Text: t.Text, Type: "text"})
	}
	for i, c := range t.Calls {
		blocks = append(blocks, &anthropicToolUse{ID: anthropicID(s.ids[i]), Input: inputObject(c), Name: wireName(c.Name), Type: "tool_use"})
	}
	return blocks
}

var notIDs = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// anthropicID replaces the characters that Anthropic does not accept in an id from another provider.
func anthropicID(id string) string { return notIDs.ReplaceAllString(id, "_") }
