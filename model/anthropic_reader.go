package model

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

// anthropicReader assembles an answer, streamed or not.
type anthropicReader struct {
	progress func(string)
	key      string

	model  string
	stop   string
	usage  anthropicUsage
	blocks []*anthropicBlock
	// at holds the latest block of each index.
	at map[int64]*anthropicBlock
}

type anthropicUsage struct {
	Input       count `json:"input_tokens"`
	Output      count `json:"output_tokens"`
	CacheRead   count `json:"cache_read_input_tokens"`
	CacheCreate count `json:"cache_creation_input_tokens"`
}

// anthropicAnswer is the whole answer, or its beginning in a stream.
type anthropicAnswer struct {
	Type       scalar            `json:"type"`
	Model      scalar            `json:"model"`
	StopReason scalar            `json:"stop_reason"`
	Usage      json.RawMessage   `json:"usage"`
	Content    []json.RawMessage `json:"content"`
	Error      json.RawMessage   `json:"error"`
}

// anthropicEvent is an event of a stream.
type anthropicEvent struct {
	Type    scalar           `json:"type"`
	Index   count            `json:"index"`
	Message *anthropicAnswer `json:"message"`
	Block   json.RawMessage  `json:"content_block"`
	Delta   struct {
		Type        scalar   `json:"type"`
		Text        wireText `json:"text"`
		Thinking    wireText `json:"thinking"`
		Signature   wireText `json:"signature"`
		PartialJSON wireText `json:"partial_json"`
		StopReason  scalar   `json:"stop_reason"`
	} `json:"delta"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// anthropicBlock is a block of the content. The pieces are filled as far as its kind has them.
type anthropicBlock struct {
	kind                      string
	id, name                  string
	text, thinking, signature pieces
	// input is the input of a call as it was sent with the block, and args what followed in pieces.
	input json.RawMessage
	args  pieces
	raw   json.RawMessage
}

func (r *anthropicReader) event(kind string, data []byte) (done bool, err error) {
	if kind == "error" {
		return true, streamFailure(data, r.key)
	}
	var e anthropicEvent
	if err := parse(data, &e); err != nil {
		return true, err
	}
	if e.Type == "error" || present(e.Error) {
		return true, streamFailure(data, r.key)
	}
	r.count(e.Usage)
	switch e.Type {
	case "message_start":
		if e.Message != nil {
			return false, r.answer(*e.Message)
		}
	case "content_block_start":
		return false, r.begin(e.Block, e.Index)
	case "content_block_delta":
		return false, r.delta(e)
	case "message_delta":
		if e.Delta.StopReason != "" {
			r.stop = string(e.Delta.StopReason)
		}
	case "message_stop":
		return true, nil
	}
	return false, nil
}

func (r *anthropicReader) end() error { return io.ErrUnexpectedEOF }

func (r *anthropicReader) document(raw []byte) error {
	var a anthropicAnswer
	if err := parse(raw, &a); err != nil {
		return err
	}
	if a.Type == "error" {
		return streamFailure(raw, r.key)
	}
	if err := r.answer(a); err != nil {
		return err
	}
	if a.Type != "message" && a.Content == nil {
		return unreadable(errors.New("it has no content"))
	}
	return nil
}

func (r *anthropicReader) answer(a anthropicAnswer) error {
	if present(a.Error) {
		return errorMember(a.Error, r.key)
	}
	r.model, r.stop = string(a.Model), string(a.StopReason)
	r.count(a.Usage)
	for _, block := range a.Content {
		if err := r.begin(block, count{}); err != nil {
			return err
		}
	}
	return nil
}

// count adds the counts of an event. It ignores a count that it cannot read, because the answer matters more.
func (r *anthropicReader) count(raw json.RawMessage) {
	if present(raw) {
		_ = json.Unmarshal(raw, &r.usage) //nolint:errcheck // see above
	}
}

// begin adds a block. An index or an id that has been used already begins a new block, too.
func (r *anthropicReader) begin(raw json.RawMessage, index count) error {
	var sent struct {
		Type      scalar          `json:"type"`
		Text      wireText        `json:"text"`
		Thinking  wireText        `json:"thinking"`
		Signature wireText        `json:"signature"`
		ID        scalar          `json:"id"`
		Name      scalar          `json:"name"`
		Input     json.RawMessage `json:"input"`
	}
	if err := parse(raw, &sent); err != nil {
		return err
	}
	b := &anthropicBlock{kind: string(sent.Type), id: string(sent.ID), name: string(sent.Name), input: sent.Input, raw: raw, args: pieces{escape: true}}
	r.say(b.text.add(sent.Text))
	b.thinking.add(sent.Thinking)
	b.signature.add(sent.Signature)
	r.blocks = append(r.blocks, b)
	if index.n != nil {
		r.at[*index.n] = b
	}
	return nil
}

// delta adds a piece to the block of its index or, if that is of another kind, to the latest block.
func (r *anthropicReader) delta(e anthropicEvent) error {
	kinds := map[scalar]string{"text_delta": "text", "input_json_delta": "tool_use", "thinking_delta": "thinking", "signature_delta": "thinking"}
	want, known := kinds[e.Delta.Type]
	if !known {
		return nil
	}
	b := r.at[e.Index.or(-1)]
	if n := len(r.blocks); n > 0 && (b == nil || b.kind != want) {
		b = r.blocks[n-1]
	}
	if b == nil || b.kind != want {
		return brokenAnswer("the model's provider sent a %s without its block", string(e.Delta.Type))
	}
	r.say(b.text.add(e.Delta.Text))
	b.thinking.add(e.Delta.Thinking)
	b.signature.add(e.Delta.Signature)
	b.args.add(e.Delta.PartialJSON)
	return nil
}

func (r *anthropicReader) say(text string) {
	if text != "" {
		r.progress(text)
	}
}

func (r *anthropicReader) turn(names map[string]string, used map[string]bool) (chat.Turn, error) {
	t := chat.Turn{Model: r.model, Usage: chat.Usage{
		InputTokens: r.usage.Input.or(0), OutputTokens: r.usage.Output.or(0),
		CacheReadTokens: r.usage.CacheRead.or(0), CacheCreateTokens: r.usage.CacheCreate.or(0),
	}}
	var calls callList
	var text strings.Builder
	for _, b := range r.blocks {
		switch b.kind {
		case "text":
			text.WriteString(b.text.end())
		case "tool_use":
			if b.args.empty() {
				b.args.add(wireText(b.input))
			}
			calls.calls = append(calls.calls, &partialCall{id: b.id, name: b.name, args: b.args})
		}
	}
	t.Text, t.Calls = text.String(), calls.list(names, used)
	t.Opaque = r.opaque(t.Calls)
	return t, finish(&t, r.stop)
}

// opaque returns the whole content if it contains reasoning; nil otherwise. Reasoning that is not valid Unicode cannot be sent back.
func (r *anthropicReader) opaque(calls []jig.ToolCall) json.RawMessage {
	reasoned := false
	keep := anthropicOpaque{Provider: "anthropic"}
	for _, b := range r.blocks {
		block := any(b.raw)
		switch b.kind {
		case "text":
			if strings.TrimSpace(b.text.end()) == "" {
				continue
			}
			block = anthropicText{Text: b.text.end(), Type: "text"}
		case "thinking":
			if reasoned = true; b.thinking.lossy {
				return nil
			}
			block = map[string]any{"type": "thinking", "thinking": b.thinking.end(), "signature": b.signature.end()}
		case "redacted_thinking":
			reasoned = true
		case "tool_use":
			c := calls[0]
			calls = calls[1:]
			block = anthropicToolUse{ID: anthropicID(c.ProviderID), Input: inputObject(c), Name: wireName(c.Name), Type: "tool_use"}
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
	if err != nil || !sendable(raw) {
		return nil
	}
	return raw
}
