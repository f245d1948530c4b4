package model

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

// anthropicReader assembles an answer, streamed or not.
type anthropicReader struct {
	progress func(string)
	key      string

	model   string
	stop    string
	usage   anthropicUsage
	content []*anthropicBlock
	ended   bool
}

type anthropicUsage struct {
	Input       int64 `json:"input_tokens"`
	Output      int64 `json:"output_tokens"`
	CacheRead   int64 `json:"cache_read_input_tokens"`
	CacheCreate int64 `json:"cache_creation_input_tokens"`
}

// merge keeps the larger counts: the first event has the input's counts, later events have the output's.
func (u *anthropicUsage) merge(v anthropicUsage) {
	u.Input, u.Output = max(u.Input, v.Input), max(u.Output, v.Output)
	u.CacheRead, u.CacheCreate = max(u.CacheRead, v.CacheRead), max(u.CacheCreate, v.CacheCreate)
}

// anthropicBlock is a content block. raw is its initial form, for kinds that are only sent back.
type anthropicBlock struct {
	raw       json.RawMessage
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`

	text, args strings.Builder
}

type anthropicEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Model string         `json:"model"`
		Usage anthropicUsage `json:"usage"`
	} `json:"message"`
	ContentBlock json.RawMessage `json:"content_block"`
	Delta        struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		Thinking    string `json:"thinking"`
		Signature   string `json:"signature"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage anthropicUsage `json:"usage"`
}

func (r *anthropicReader) stream(res *http.Response) error {
	events := ssestream.NewDecoder(res)
	for events.Next() {
		data := bytes.TrimSpace(events.Event().Data)
		if len(data) == 0 {
			continue
		}
		var e anthropicEvent
		if err := json.Unmarshal(data, &e); err != nil {
			return jig.Errorf(jig.CodeUnavailable, "the model's provider sent a stream that cannot be read: %w", err)
		}
		if e.Type == "error" {
			return streamFailure(data, r.key)
		}
		if err := r.event(e); err != nil {
			return err
		}
		if r.ended {
			return nil
		}
	}
	if err := events.Err(); err != nil {
		return err //nolint:wrapcheck // service.failure translates it
	}
	return io.ErrUnexpectedEOF
}

func (r *anthropicReader) event(e anthropicEvent) error {
	switch e.Type {
	case "message_start":
		r.model = e.Message.Model
		r.usage.merge(e.Message.Usage)
	case "content_block_start":
		block := &anthropicBlock{raw: e.ContentBlock}
		if err := json.Unmarshal(e.ContentBlock, block); err != nil {
			return jig.Errorf(jig.CodeUnavailable, "the model's provider sent a block that cannot be read: %w", err)
		}
		r.content = append(r.content, block)
		r.say(block, block.Text)
	case "content_block_delta":
		if e.Index < 0 || e.Index >= len(r.content) {
			return jig.Errorf(jig.CodeUnavailable, "the model's provider sent a piece of a block that it did not begin")
		}
		block := r.content[e.Index]
		r.say(block, e.Delta.Text)
		block.args.WriteString(e.Delta.PartialJSON)
		block.Thinking += e.Delta.Thinking
		block.Signature += e.Delta.Signature
	case "message_delta":
		r.stop = e.Delta.StopReason
		r.usage.merge(e.Usage)
	case "message_stop":
		r.ended = true
	}
	return nil
}

func (r *anthropicReader) say(b *anthropicBlock, text string) {
	if text != "" && b.Type == "text" {
		b.text.WriteString(text)
		r.progress(text)
	}
}

// document reads an answer that was not streamed.
func (r *anthropicReader) document(res *http.Response) error {
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return err //nolint:wrapcheck // service.failure translates it
	}
	var m struct {
		Type       string            `json:"type"`
		Model      string            `json:"model"`
		StopReason string            `json:"stop_reason"`
		Usage      anthropicUsage    `json:"usage"`
		Content    []json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return jig.Errorf(jig.CodeUnavailable, "the model's provider sent an answer that cannot be read: %w", err)
	}
	if m.Type == "error" {
		return streamFailure(raw, r.key)
	}
	r.model, r.stop, r.usage, r.ended = m.Model, m.StopReason, m.Usage, true
	for _, block := range m.Content {
		if err := r.event(anthropicEvent{Type: "content_block_start", ContentBlock: block}); err != nil {
			return err
		}
	}
	return nil
}

func (r *anthropicReader) turn(names map[string]string, asked int) chat.Turn {
	t := chat.Turn{Model: r.model, Usage: chat.Usage{
		InputTokens: r.usage.Input, OutputTokens: r.usage.Output,
		CacheReadTokens: r.usage.CacheRead, CacheCreateTokens: r.usage.CacheCreate,
	}}
	var calls callList
	var text strings.Builder
	for i, b := range r.content {
		switch b.Type {
		case "text":
			text.WriteString(b.text.String())
		case "tool_use":
			calls.calls = append(calls.calls, &partialCall{index: int64(i), id: b.ID, name: b.Name})
			calls.calls[len(calls.calls)-1].args.WriteString(b.arguments())
		}
	}
	t.Text, t.Calls = text.String(), calls.list(names, asked)
	t.Stop = anthropicStop(r.stop, len(t.Calls) > 0)
	t.Opaque = r.opaque(t.Calls)
	return t
}

// arguments returns the input of a call as text: either streamed in pieces or contained in the block's initial form.
func (b *anthropicBlock) arguments() string {
	if b.args.Len() > 0 {
		return b.args.String()
	}
	return string(b.Input)
}

func anthropicStop(reason string, calls bool) chat.StopReason {
	switch reason {
	case "max_tokens", "model_context_window_exceeded":
		return chat.StopLength
	case "refusal":
		return chat.StopRefusal
	}
	if calls {
		return chat.StopCalls
	}
	return chat.StopEnd
}

// opaque returns the whole content if it contains reasoning; nil otherwise.
func (r *anthropicReader) opaque(calls []jig.ToolCall) json.RawMessage {
	reasoned, call := false, 0
	keep := anthropicOpaque{Provider: "anthropic"}
	for _, b := range r.content {
		block := any(b.raw)
		switch b.Type {
		case "text":
			if b.text.Len() == 0 {
				continue
			}
			block = map[string]any{"type": "text", "text": b.text.String()}
		case "thinking":
			reasoned = true
			block = map[string]any{"type": "thinking", "thinking": b.Thinking, "signature": b.Signature}
		case "redacted_thinking":
			reasoned = true
		case "tool_use":
			c := calls[call]
			call++
			block = map[string]any{"type": "tool_use", "id": c.ProviderID, "name": b.Name, "input": inputObject(c)}
		}
		raw, err := json.Marshal(block)
		if err != nil {
			return nil
		}
		keep.Content = append(keep.Content, raw)
	}
	if !reasoned {
		return nil
	}
	raw, err := json.Marshal(keep)
	if err != nil {
		return nil
	}
	return raw
}
