package model

import (
	"encoding/json"
	"strings"

	"github.com/jig-run/jig/internal/chat"
)

// openaiRequest is the body of a request to Chat Completions.
type openaiRequest struct {
	Messages []openaiSaid `json:"messages"`
	Model    string       `json:"model"`
	// MaxCompletionTokens is for OpenAI's own service, which has replaced max_tokens; other servers know only MaxTokens.
	MaxCompletionTokens int                  `json:"max_completion_tokens,omitempty"`
	MaxTokens           int                  `json:"max_tokens,omitempty"`
	StreamOptions       *openaiStreamOptions `json:"stream_options,omitempty"`
	ToolChoice          string               `json:"tool_choice,omitempty"`
	Tools               []openaiTool         `json:"tools,omitempty"`
	Stream              bool                 `json:"stream,omitempty"`
}

type openaiStreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// openaiSaid is a message of the conversation.
type openaiSaid struct {
	Content    string       `json:"content,omitempty"`
	ToolCalls  []openaiCall `json:"tool_calls,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
	Role       string       `json:"role"`
}

type openaiCall struct {
	ID       string             `json:"id"`
	Function openaiCallFunction `json:"function"`
	Type     string             `json:"type"`
}

type openaiCallFunction struct {
	Arguments string `json:"arguments"`
	Name      string `json:"name"`
}

type openaiTool struct {
	Function openaiFunction `json:"function"`
	Type     string         `json:"type"`
}

type openaiFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// newOpenAIRequest returns a request. own says that it goes to OpenAI's own service.
func newOpenAIRequest(name string, r chat.Request, own, stream bool) openaiRequest {
	request := openaiRequest{Model: name, Messages: openaiMessages(r.System, conversation(r.Exchanges)), Stream: stream}
	if own {
		request.MaxCompletionTokens = maxTokens(r)
	} else {
		request.MaxTokens = maxTokens(r)
	}
	if stream {
		request.StreamOptions = &openaiStreamOptions{IncludeUsage: true}
	}
	for _, t := range r.Tools {
		request.Tools = append(request.Tools, openaiTool{
			Function: openaiFunction{Name: wireName(t.Name), Description: t.Description, Parameters: schemaOf(t)}, Type: "function",
		})
	}
	if len(request.Tools) > 0 {
		request.ToolChoice = "auto"
	}
	return request
}

func openaiMessages(system string, steps []said) []openaiSaid {
	var out []openaiSaid
	if system != "" {
		out = append(out, openaiSaid{Role: "system", Content: system})
	}
	var pending []string
	flush := func() {
		if len(pending) > 0 {
			out = append(out, openaiSaid{Role: "user", Content: strings.Join(pending, "\n\n")})
			pending = nil
		}
	}
	for _, s := range steps {
		pending = append(pending, s.user...)
		if s.turn == nil {
			continue
		}
		flush()
		out = append(out, openaiTurn(s))
		for _, r := range s.results {
			out = append(out, openaiSaid{Role: "tool", Content: r.text, ToolCallID: r.id})
		}
	}
	flush()
	return out
}

func openaiTurn(s said) openaiSaid {
	m := openaiSaid{Role: "assistant", Content: s.turn.Text}
	for i, c := range s.turn.Calls {
		m.ToolCalls = append(m.ToolCalls, openaiCall{
			ID: s.ids[i], Function: openaiCallFunction{Name: wireName(c.Name), Arguments: string(inputObject(c))}, Type: "function",
		})
	}
	return m
}
