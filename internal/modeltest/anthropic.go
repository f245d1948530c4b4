package modeltest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

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

var (
	nameForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	idForm   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
)

type anthropicRequest struct {
	Model     string          `json:"model"`
	MaxTokens int             `json:"max_tokens"`
	Stream    bool            `json:"stream"`
	System    json.RawMessage `json:"system"`
	Tools     []struct {
		Name         string `json:"name"`
		InputSchema  object `json:"input_schema"`
		CacheControl object `json:"cache_control"`
	} `json:"tools"`
	Messages []struct {
		Role    string           `json:"role"`
		Content []anthropicBlock `json:"content"`
	} `json:"messages"`
}

type anthropicBlock struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	IsError      bool            `json:"is_error"`
	Content      json.RawMessage `json:"content"`
	Thinking     string          `json:"thinking"`
	Signature    string          `json:"signature"`
	CacheControl object          `json:"cache_control"`
}

// readAnthropic parses a request and returns an error if the real service would refuse it.
func readAnthropic(r *Request) error {
	var in anthropicRequest
	if err := json.Unmarshal(r.Body, &in); err != nil {
		return fmt.Errorf("the body is not a request: %w", err)
	}
	if r.Header.Get("Anthropic-Version") == "" {
		return fmt.Errorf("anthropic-version: header is required")
	}
	if in.Model == "" || in.MaxTokens < 1 || len(in.Messages) == 0 {
		return fmt.Errorf("model, max_tokens and messages are required")
	}
	r.Model, r.Stream = in.Model, in.Stream
	var err error
	if r.System, err = blocksText(in.System); err != nil {
		return fmt.Errorf("system: %w", err)
	}
	marks := strings.Count(string(in.System), `"cache_control"`)
	for i, t := range in.Tools {
		if !nameForm.MatchString(t.Name) {
			return fmt.Errorf("tools.%d.name: should match pattern %s", i, nameForm)
		}
		if t.InputSchema["type"] != "object" {
			return fmt.Errorf("tools.%d.input_schema.type: should be object", i)
		}
		if t.CacheControl != nil {
			marks++
		}
		r.Tools = append(r.Tools, t.Name)
	}
	if err := unique(r.Tools); err != nil {
		return err
	}
	var open []string
	known := ids{}
	for i, m := range in.Messages {
		if want := [2]string{"user", "assistant"}[i%2]; m.Role != want {
			return fmt.Errorf("messages.%d: roles must alternate and begin with user, got %s", i, m.Role)
		}
		if len(m.Content) == 0 {
			return fmt.Errorf("messages.%d: content must not be empty", i)
		}
		if open, err = r.anthropicMessage(m.Role, m.Content, open, &marks); err != nil {
			return fmt.Errorf("messages.%d: %w", i, err)
		}
		if err := known.add(open); err != nil {
			return fmt.Errorf("messages.%d: %w", i, err)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("tool_use ids were found without tool_result blocks: %s", strings.Join(open, ", "))
	}
	if marks > 4 {
		return fmt.Errorf("a maximum of 4 blocks with cache_control may be provided, found %d", marks)
	}
	return nil
}

// anthropicMessage checks a message against the calls that were open before it, and returns the calls that are open after it.
func (r *Request) anthropicMessage(role string, blocks []anthropicBlock, open []string, marks *int) ([]string, error) {
	var next []string
	turn := Turn{Role: role}
	results := true
	for j, b := range blocks {
		if b.CacheControl != nil {
			*marks++
		}
		switch {
		case b.Type == "text":
			if strings.TrimSpace(b.Text) == "" {
				return nil, fmt.Errorf("content.%d: text content blocks must contain non-whitespace text", j)
			}
			results = false
			turn.Text += b.Text
		case b.Type == "tool_use" && role == "assistant":
			if !idForm.MatchString(b.ID) || !nameForm.MatchString(b.Name) || !strings.HasPrefix(strings.TrimSpace(string(b.Input)), "{") {
				return nil, fmt.Errorf("content.%d: not a tool_use: %s %s %s", j, b.ID, b.Name, b.Input)
			}
			next = append(next, b.ID)
			turn.Calls = append(turn.Calls, Call{ID: b.ID, Name: b.Name, Args: string(b.Input)})
		case (b.Type == "thinking" || b.Type == "redacted_thinking") && role == "assistant":
			if b.Type == "thinking" && b.Signature != "signed:"+b.Thinking {
				return nil, fmt.Errorf("content.%d: invalid signature in thinking block", j)
			}
		case b.Type == "tool_result" && role == "user":
			if !results {
				return nil, fmt.Errorf("content.%d: tool_result blocks must come first", j)
			}
			at := indexOf(open, b.ToolUseID)
			if at < 0 {
				return nil, fmt.Errorf("content.%d: unexpected tool_use_id %s", j, b.ToolUseID)
			}
			open = append(open[:at:at], open[at+1:]...)
			text, err := blocksText(b.Content)
			if err != nil {
				return nil, err
			}
			r.Turns = append(r.Turns, Turn{Role: "tool", CallID: b.ToolUseID, Text: text, IsError: b.IsError})
		default:
			return nil, fmt.Errorf("content.%d: type %s is not for %s", j, b.Type, role)
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("tool_use ids were found without tool_result blocks immediately after: %s", strings.Join(open, ", "))
	}
	if turn.Text != "" || len(turn.Calls) > 0 || role == "assistant" {
		r.Turns = append(r.Turns, turn)
	}
	return next, unique(next)
}

// blocksText returns the text of a string or of a list of text blocks.
func blocksText(raw json.RawMessage) (string, error) {
	if len(raw) == 0 {
		return "", nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var blocks []anthropicBlock
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return "", fmt.Errorf("neither a text nor blocks: %w", err)
	}
	for _, b := range blocks {
		text += b.Text
	}
	return text, nil
}

func indexOf(list []string, s string) int {
	for i, v := range list {
		if v == s {
			return i
		}
	}
	return -1
}

func unique(list []string) error {
	for i, s := range list {
		if indexOf(list[:i], s) >= 0 {
			return fmt.Errorf("%s appears twice", s)
		}
	}
	return nil
}
