package modeltest

import "encoding/json"

type object = map[string]any

func (r Reply) anthropicStop() string {
	switch {
	case r.Refusal != "":
		return "refusal"
	case r.CutOff:
		return "max_tokens"
	case len(r.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

func (r Reply) anthropicUsage() object {
	return object{
		"input_tokens": r.Usage.Input, "output_tokens": r.Usage.Output,
		"cache_read_input_tokens": r.Usage.CacheRead, "cache_creation_input_tokens": r.Usage.CacheCreate,
	}
}

// anthropicContent returns the content blocks, and for each block the deltas of its stream.
func (r Reply) anthropicContent() (blocks []object, deltas [][]object) {
	add := func(block object, ds []object) { blocks, deltas = append(blocks, block), append(deltas, ds) }
	if r.Thinking != "" {
		add(object{"type": "thinking", "thinking": r.Thinking, "signature": "signed:" + r.Thinking}, []object{
			{"type": "thinking_delta", "thinking": r.Thinking}, {"type": "signature_delta", "signature": "signed:" + r.Thinking},
		})
	}
	if text := r.Text + r.Refusal; text != "" {
		var ds []object
		for _, p := range pieces(text, r.Piece) {
			ds = append(ds, object{"type": "text_delta", "text": p})
		}
		add(object{"type": "text", "text": text}, ds)
	}
	for _, c := range r.Calls {
		var ds []object
		for _, p := range pieces(c.Args, r.Piece) {
			ds = append(ds, object{"type": "input_json_delta", "partial_json": p})
		}
		input := any(json.RawMessage(c.Args))
		if !json.Valid([]byte(c.Args)) {
			input = object{}
		}
		add(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": input}, ds)
	}
	return blocks, deltas
}

func (r Reply) anthropicDocument(request Request) any {
	blocks, _ := r.anthropicContent()
	return object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": request.Model, "content": blocks,
		"stop_reason": r.anthropicStop(), "stop_sequence": nil, "usage": r.anthropicUsage(),
	}
}

func (r Reply) anthropicEvents(request Request) []event {
	start := r.anthropicUsage()
	start["output_tokens"] = 1
	events := []event{
		{"message_start", object{"type": "message_start", "message": object{
			"id": "msg_1", "type": "message", "role": "assistant", "model": request.Model, "content": []any{},
			"stop_reason": nil, "usage": start,
		}}},
		{"ping", object{"type": "ping"}},
	}
	blocks, deltas := r.anthropicContent()
	for i, block := range blocks {
		events = append(events, event{"content_block_start", object{"type": "content_block_start", "index": i, "content_block": begun(block)}})
		for _, d := range deltas[i] {
			events = append(events, event{"content_block_delta", object{"type": "content_block_delta", "index": i, "delta": d}})
		}
		events = append(events, event{"content_block_stop", object{"type": "content_block_stop", "index": i}})
	}
	return append(events,
		event{"message_delta", object{
			"type": "message_delta", "delta": object{"stop_reason": r.anthropicStop()}, "usage": object{"output_tokens": r.Usage.Output},
		}},
		event{"message_stop", object{"type": "message_stop"}})
}

// begun returns a block as it is at the beginning of its stream: without the parts that are streamed.
func begun(block object) object {
	out := object{}
	for k, v := range block {
		out[k] = v
	}
	switch block["type"] {
	case "text":
		out["text"] = ""
	case "thinking":
		out["thinking"], out["signature"] = "", ""
	case "tool_use":
		out["input"] = object{}
	}
	return out
}
