package model

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

const openaiURL = "https://api.openai.com/v1/"

// openaiProvider uses Chat Completions.
type openaiProvider struct {
	settings Provider
	// endpoint returns how to ask a model.
	endpoint func(name string) endpoint
}

func (p *openaiProvider) check(string) error { return needKey(p.settings, EnvOpenAIKey) }

func (p *openaiProvider) answer(ctx context.Context, name string, request chat.Request, progress func(string)) (chat.Turn, error) {
	to, header := p.endpoint(name), http.Header{}
	if p.settings.APIKey != "" {
		header.Set("Authorization", "Bearer "+p.settings.APIKey)
	}
	return to.ask(ctx, request, providerCall{
		base: p.settings.BaseURL, usual: openaiURL, path: "chat/completions", header: header,
		body: newOpenAIRequest(name, request, p.own(), to.stream),
		env:  EnvOpenAIKey, key: p.settings.APIKey, reader: &openaiReader{progress: progress, key: p.settings.APIKey},
	})
}

// own reports whether the service is OpenAI's own, which has replaced max_tokens. Other servers know only max_tokens.
func (p *openaiProvider) own() bool {
	return p.settings.BaseURL == "" || strings.Contains(p.settings.BaseURL, "://api.openai.com")
}

// openaiRequest is the body of a request to Chat Completions.
type openaiRequest struct {
	Messages []openaiRequestMessage `json:"messages"`
	Model    string                 `json:"model"`
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
type openaiRequestMessage struct {
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

func openaiMessages(system string, steps []step) []openaiRequestMessage {
	var out []openaiRequestMessage
	if system != "" {
		out = append(out, openaiRequestMessage{Role: "system", Content: system})
	}
	var pending []string
	flush := func() {
		if len(pending) > 0 {
			out = append(out, openaiRequestMessage{Role: "user", Content: strings.Join(pending, "\n\n")})
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
			out = append(out, openaiRequestMessage{Role: "tool", Content: r.text, ToolCallID: r.id})
		}
	}
	flush()
	return out
}

func openaiTurn(s step) openaiRequestMessage {
	m := openaiRequestMessage{Role: "assistant", Content: s.turn.Text}
	for i, c := range s.turn.Calls {
		m.ToolCalls = append(m.ToolCalls, openaiCall{
			ID: s.ids[i], Function: openaiCallFunction{Name: wireName(c.Name), Arguments: string(inputObject(c))}, Type: "function",
		})
	}
	return m
}

// openaiReader assembles an answer, streamed or not.
type openaiReader struct {
	progress func(string)
	key      string

	model string
	// choice is the index of the choice that is read; others are ignored. finish and native say why it ended.
	choice         *int64
	finish, native string
	text, refusal  pieces
	calls          callList
	usage          openaiUsage
}

type openaiUsage struct {
	Prompt     count `json:"prompt_tokens"`
	Completion count `json:"completion_tokens"`
	Details    struct {
		Cached count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// openaiChunk is a piece of a stream or, with Message instead of Delta, the whole answer.
type openaiChunk struct {
	Model   scalar          `json:"model"`
	Error   json.RawMessage `json:"error"`
	Usage   json.RawMessage `json:"usage"`
	Choices []openaiChoice  `json:"choices"`
}

type openaiChoice struct {
	Index   count           `json:"index"`
	Finish  scalar          `json:"finish_reason"`
	Native  scalar          `json:"native_finish_reason"`
	Error   json.RawMessage `json:"error"`
	Delta   *openaiMessage  `json:"delta"`
	Message *openaiMessage  `json:"message"`
}

type openaiMessage struct {
	Content   openaiContent `json:"content"`
	Refusal   wireText      `json:"refusal"`
	ToolCalls []struct {
		Index    count  `json:"index"`
		ID       scalar `json:"id"`
		Function struct {
			Name      scalar          `json:"name"`
			Arguments openaiArguments `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// openaiContent is a text or a list of parts. Parts that are not text, such as reasoning, are left out.
type openaiContent struct{ text, refusal wireText }

func (c *openaiContent) UnmarshalJSON(raw []byte) error {
	if raw[0] != '[' {
		return c.text.UnmarshalJSON(raw)
	}
	var parts []struct {
		Type    scalar          `json:"type"`
		Text    json.RawMessage `json:"text"`
		Refusal wireText        `json:"refusal"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err //nolint:wrapcheck // chunk says what cannot be read
	}
	for _, p := range parts {
		var text wireText
		if p.Type == "text" || p.Type == "output_text" {
			if err := json.Unmarshal(p.Text, &text); err != nil {
				return err //nolint:wrapcheck // chunk says what cannot be read
			}
		}
		c.text, c.refusal = append(c.text, text...), append(c.refusal, p.Refusal...)
	}
	return nil
}

// openaiArguments are the arguments of a call as text. Some servers send them as an object.
type openaiArguments wireText

func (a *openaiArguments) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' || string(raw) == "null" {
		return (*wireText)(a).UnmarshalJSON(raw)
	}
	*a = append(openaiArguments(nil), raw...)
	return nil
}

func (r *openaiReader) event(kind string, data []byte) (done bool, err error) {
	switch {
	case kind == "error":
		return true, streamFailure(data, r.key)
	case string(data) == "[DONE]":
		return true, r.end()
	}
	return false, r.chunk(data)
}

func (r *openaiReader) end() error {
	if r.finish == "" { // [DONE] may be missing, this may not
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (r *openaiReader) document(raw []byte) error {
	if err := r.chunk(raw); err != nil {
		return err
	}
	if r.choice == nil {
		return unreadable(errors.New("it has no choices"))
	}
	return nil
}

func (r *openaiReader) chunk(data []byte) error {
	var c openaiChunk
	if err := parse(data, &c); err != nil {
		return err
	}
	if present(c.Error) {
		return streamFailure(data, r.key)
	}
	if c.Model != "" {
		r.model = string(c.Model)
	}
	if present(c.Usage) {
		_ = json.Unmarshal(c.Usage, &r.usage) //nolint:errcheck // counts that cannot be read are not worth an answer
	}
	for _, choice := range c.Choices {
		index := choice.Index.or(0)
		if r.choice == nil {
			r.choice = &index
		}
		if index != *r.choice {
			continue
		}
		if present(choice.Error) {
			return errorMember(choice.Error, r.key)
		}
		r.message(choice.Delta, false)
		r.message(choice.Message, true)
		if choice.Finish != "" {
			r.finish = string(choice.Finish)
		}
		if failedReason(string(choice.Native)) {
			r.native = string(choice.Native)
		}
	}
	return nil
}

func (r *openaiReader) message(m *openaiMessage, whole bool) {
	if m == nil {
		return
	}
	said := r.text.add(m.Content.text) + r.refusal.add(m.Content.refusal) + r.refusal.add(m.Refusal)
	if said != "" {
		r.progress(said)
	}
	for _, call := range m.ToolCalls {
		d := callDelta{index: call.Index, id: string(call.ID), name: string(call.Function.Name), args: wireText(call.Function.Arguments)}
		if whole {
			r.calls.begin(d)
		} else {
			r.calls.add(d)
		}
	}
}

func (r *openaiReader) turn(names map[string]string, used map[string]bool) (chat.Turn, error) {
	prompt, cached := r.usage.Prompt.or(0), r.usage.Details.Cached.or(0)
	t := chat.Turn{
		Text: r.text.end(), Model: r.model, Calls: r.calls.list(names, used),
		Usage: chat.Usage{InputTokens: max(0, prompt-cached), OutputTokens: r.usage.Completion.or(0), CacheReadTokens: cached},
	}
	if refusal := r.refusal.end(); refusal != "" {
		t.Text, t.Stop = t.Text+refusal, chat.StopRefusal
		return t, nil
	}
	if r.native != "" {
		return t, brokenAnswer("the model's provider ended its answer with %q", jig.Cut(r.native, 100))
	}
	return t, finish(&t, r.finish)
}
