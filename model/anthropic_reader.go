package model

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

// anthropicReader assembles an answer, streamed or not.
type anthropicReader struct {
	progress func(string)
	key      string

	message anthropic.Message
	// texts holds the streamed texts by the index of their block. The SDK would copy a text again for each piece that it adds.
	texts map[int64]*strings.Builder
}

func (r *anthropicReader) stream(res *http.Response) error {
	events := ssestream.NewDecoder(res)
	for events.Next() {
		data := bytes.TrimSpace(events.Event().Data)
		if len(data) == 0 {
			continue
		}
		var e anthropic.MessageStreamEventUnion
		err := json.Unmarshal(data, &e)
		switch {
		case err == nil && e.Type == "error":
			return streamFailure(data, r.key)
		case err == nil && e.Type == "message_stop":
			return nil
		case err == nil:
			err = r.event(e)
		}
		if err != nil {
			return jig.Errorf(jig.CodeUnavailable, "the model's provider sent a stream that cannot be read: %w", err)
		}
	}
	if err := events.Err(); err != nil {
		return err //nolint:wrapcheck // service.failure translates it
	}
	return io.ErrUnexpectedEOF
}

func (r *anthropicReader) event(e anthropic.MessageStreamEventUnion) error {
	isText := e.Index >= 0 && e.Index < int64(len(r.message.Content)) && r.message.Content[e.Index].Type == "text"
	switch {
	case e.Type == "content_block_stop":
		return nil // the SDK would replace the arguments of a call that was cut off by {}
	case e.Type == "content_block_start" && e.ContentBlock.Type == "text":
		r.say(e.ContentBlock.Text)
	case e.Delta.Type == "text_delta" && isText:
		r.say(e.Delta.Text)
		text, ok := r.texts[e.Index]
		if !ok {
			text = &strings.Builder{}
			r.texts[e.Index] = text
		}
		text.WriteString(e.Delta.Text)
		return nil
	}
	return r.message.Accumulate(e) //nolint:wrapcheck // stream says what failed
}

func (r *anthropicReader) say(text string) {
	if text != "" {
		r.progress(text)
	}
}

// document reads an answer that was not streamed.
func (r *anthropicReader) document(res *http.Response) error {
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return err //nolint:wrapcheck // service.failure translates it
	}
	if err := json.Unmarshal(raw, &r.message); err != nil {
		return jig.Errorf(jig.CodeUnavailable, "the model's provider sent an answer that cannot be read: %w", err)
	}
	if r.message.Type == "error" {
		return streamFailure(raw, r.key)
	}
	for i := range r.message.Content {
		r.say(r.text(i))
	}
	return nil
}

// text returns the text of a block, or "" if the block is of another type.
func (r *anthropicReader) text(i int) string {
	block := &r.message.Content[i]
	if block.Type != "text" {
		return ""
	}
	if streamed := r.texts[int64(i)]; streamed != nil {
		return block.Text + streamed.String()
	}
	return block.Text
}

func (r *anthropicReader) turn(names map[string]string, asked int) chat.Turn {
	usage := r.message.Usage
	t := chat.Turn{Model: r.message.Model, Usage: chat.Usage{
		InputTokens: usage.InputTokens, OutputTokens: usage.OutputTokens,
		CacheReadTokens: usage.CacheReadInputTokens, CacheCreateTokens: usage.CacheCreationInputTokens,
	}}
	var calls callList
	var text strings.Builder
	for i := range r.message.Content {
		text.WriteString(r.text(i))
		if b := &r.message.Content[i]; b.Type == "tool_use" {
			call := &partialCall{id: b.ID, name: b.Name}
			call.args.Write(b.Input)
			calls.calls = append(calls.calls, call)
		}
	}
	t.Text, t.Calls = text.String(), calls.list(names, asked)
	t.Stop = anthropicStop(r.message.StopReason, len(t.Calls) > 0)
	t.Opaque = r.opaque(t.Calls)
	return t
}

func anthropicStop(reason anthropic.StopReason, calls bool) chat.StopReason {
	switch {
	case reason == anthropic.StopReasonMaxTokens, reason == anthropic.StopReasonModelContextWindowExceeded:
		return chat.StopLength
	case reason == anthropic.StopReasonRefusal:
		return chat.StopRefusal
	case calls:
		return chat.StopCalls
	}
	return chat.StopEnd
}

// opaque returns the whole content if it contains reasoning; nil otherwise.
func (r *anthropicReader) opaque(calls []jig.ToolCall) json.RawMessage {
	reasoned, call := false, 0
	keep := anthropicOpaque{Provider: "anthropic"}
	for i := range r.message.Content {
		b := &r.message.Content[i]
		block := any(json.RawMessage(b.RawJSON()))
		switch b.Type {
		case "text":
			if r.text(i) == "" {
				continue
			}
			block = map[string]any{"type": "text", "text": r.text(i)}
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
