package model

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

// openaiReader assembles an answer, streamed or not. The SDK's accumulator works only for OpenAI: it combines calls by their index, which
// other servers leave out or repeat (see [callList]), and it loses arguments that are an object.
type openaiReader struct {
	progress func(string)
	key      string

	model         string
	finish        string
	text, refusal strings.Builder
	calls         callList
	usage         openaiUsage
}

type openaiUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Details    struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// openaiChunk is a piece of a stream or, with Message instead of Delta, the whole answer.
type openaiChunk struct {
	Model   string          `json:"model"`
	Error   json.RawMessage `json:"error"`
	Usage   *openaiUsage    `json:"usage"`
	Choices []struct {
		Index        int            `json:"index"`
		FinishReason string         `json:"finish_reason"`
		Delta        *openaiMessage `json:"delta"`
		Message      *openaiMessage `json:"message"`
	} `json:"choices"`
}

type openaiMessage struct {
	Content   string `json:"content"`
	Refusal   string `json:"refusal"`
	ToolCalls []struct {
		Index    *int64 `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func (r *openaiReader) stream(res *http.Response) error {
	events := ssestream.NewDecoder(res)
	for events.Next() {
		data := bytes.TrimSpace(events.Event().Data)
		if len(data) == 0 {
			continue
		}
		if bytes.Equal(data, []byte("[DONE]")) {
			return r.whole()
		}
		if err := r.chunk(data); err != nil {
			return err
		}
	}
	if err := events.Err(); err != nil {
		return err //nolint:wrapcheck // service.failure translates it
	}
	return r.whole() // some servers do not send [DONE]
}

// whole returns an error if the answer ended without a finish reason.
func (r *openaiReader) whole() error {
	if r.finish == "" {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (r *openaiReader) document(res *http.Response) error {
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return err //nolint:wrapcheck // service.failure translates it
	}
	if err := r.chunk(raw); err != nil {
		return err
	}
	return r.whole()
}

func (r *openaiReader) chunk(data []byte) error {
	var c openaiChunk
	if err := json.Unmarshal(data, &c); err != nil {
		return jig.Errorf(jig.CodeUnavailable, "the model's provider sent an answer that cannot be read: %w", err)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return streamFailure(data, r.key)
	}
	if c.Model != "" {
		r.model = c.Model
	}
	if c.Usage != nil {
		r.usage = *c.Usage
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		r.message(choice.Delta, false)
		r.message(choice.Message, true)
		if choice.FinishReason != "" {
			r.finish = choice.FinishReason
		}
	}
	return nil
}

func (r *openaiReader) message(m *openaiMessage, whole bool) {
	if m == nil {
		return
	}
	for _, text := range []string{m.Content, m.Refusal} {
		if text != "" {
			r.progress(text)
		}
	}
	r.text.WriteString(m.Content)
	r.refusal.WriteString(m.Refusal)
	for i, call := range m.ToolCalls {
		d := callDelta{id: call.ID, name: call.Function.Name, args: argumentText(call.Function.Arguments)}
		if whole {
			d.index = int64(len(r.calls.calls) + i)
		} else if call.Index != nil {
			d.index = *call.Index
		}
		r.calls.add(d)
	}
}

// argumentText returns the arguments of a call as text. Some servers send them as an object instead of a string.
func argumentText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

func (r *openaiReader) turn(names map[string]string, asked int) chat.Turn {
	t := chat.Turn{
		Text: r.text.String(), Model: r.model, Calls: r.calls.list(names, asked),
		Usage: chat.Usage{
			InputTokens:     max(0, r.usage.Prompt-r.usage.Details.Cached),
			OutputTokens:    r.usage.Completion,
			CacheReadTokens: r.usage.Details.Cached,
		},
	}
	switch {
	case r.refusal.Len() > 0:
		t.Text, t.Stop = t.Text+r.refusal.String(), chat.StopRefusal
	case r.finish == "content_filter":
		t.Stop = chat.StopRefusal
	case r.finish == "length":
		t.Stop = chat.StopLength
	case len(t.Calls) > 0:
		t.Stop = chat.StopCalls
	default:
		t.Stop = chat.StopEnd
	}
	return t
}
