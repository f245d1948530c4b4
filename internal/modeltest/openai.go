package modeltest

import (
	"encoding/json"
	"fmt"
	"strings"
)

func (r Reply) openaiFinish() string {
	switch {
	case r.CutOff:
		return "length"
	case len(r.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (r Reply) openaiUsage() object {
	prompt := r.Usage.Input + r.Usage.CacheRead
	return object{
		"prompt_tokens": prompt, "completion_tokens": r.Usage.Output, "total_tokens": prompt + r.Usage.Output,
		"prompt_tokens_details": object{"cached_tokens": r.Usage.CacheRead},
	}
}

func (r Reply) openaiCall(i int, args string, first bool) object {
	index := i
	if r.ZeroIndex {
		index = 0
	}
	out := object{"index": index, "function": object{"arguments": args}}
	if first {
		out["type"] = "function"
		out["function"] = object{"name": r.Calls[i].Name, "arguments": args}
	}
	// Ollama sends a call in one piece. Servers that send several pieces give the id with the first, or with every piece if the index does
	// not distinguish the calls.
	if id := r.Calls[i].ID; id != "" && (first || r.ZeroIndex) {
		out["id"] = id
	}
	return out
}

func (r Reply) openaiDocument(request Request) any {
	message := object{"role": "assistant", "content": r.Text}
	if r.Refusal != "" {
		message["refusal"] = r.Refusal
	}
	var calls []object
	for i, c := range r.Calls {
		call := r.openaiCall(i, c.Args, true)
		delete(call, "index")
		calls = append(calls, call)
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return object{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": request.Model, "usage": r.openaiUsage(),
		"choices": []object{{"index": 0, "message": message, "finish_reason": r.openaiFinish()}},
	}
}

func (r Reply) openaiEvents(request Request) []event {
	var events []event
	chunk := func(choices []object, usage any) {
		events = append(events, event{"", object{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": request.Model, "choices": choices, "usage": usage,
		}})
	}
	delta := func(d object) { chunk([]object{{"index": 0, "delta": d, "finish_reason": nil}}, nil) }
	delta(object{"role": "assistant", "content": ""})
	if r.Text != "" {
		for _, p := range pieces(r.Text, r.Piece) {
			delta(object{"content": p})
		}
	}
	if r.Refusal != "" {
		for _, p := range pieces(r.Refusal, r.Piece) {
			delta(object{"refusal": p})
		}
	}
	for i, c := range r.Calls {
		for n, p := range pieces(c.Args, r.Piece) {
			delta(object{"tool_calls": []object{r.openaiCall(i, p, n == 0)}})
		}
	}
	chunk([]object{{"index": 0, "delta": object{}, "finish_reason": r.openaiFinish()}}, nil)
	chunk([]object{}, r.openaiUsage())
	return append(events, event{"", "[DONE]"})
}

type openaiRequest struct {
	Model               string `json:"model"`
	Stream              bool   `json:"stream"`
	MaxTokens           int    `json:"max_tokens"`
	MaxCompletionTokens int    `json:"max_completion_tokens"`
	StreamOptions       object `json:"stream_options"`
	ToolChoice          any    `json:"tool_choice"`
	Tools               []struct {
		Type     string `json:"type"`
		Function struct {
			Name       string `json:"name"`
			Parameters object `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	Messages []openaiMessage `json:"messages"`
}

type openaiMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// readOpenAI parses a request and returns an error if the real service would refuse it.
func readOpenAI(r *Request) error {
	var in openaiRequest
	if err := json.Unmarshal(r.Body, &in); err != nil {
		return fmt.Errorf("the body is not a request: %w", err)
	}
	if in.Model == "" || len(in.Messages) == 0 {
		return fmt.Errorf("model and messages are required")
	}
	if in.StreamOptions != nil && !in.Stream {
		return fmt.Errorf("stream_options is only allowed when stream is enabled")
	}
	if in.ToolChoice != nil && len(in.Tools) == 0 {
		return fmt.Errorf("tool_choice is only allowed when tools are specified")
	}
	r.Model, r.Stream = in.Model, in.Stream
	for i, t := range in.Tools {
		if t.Type != "function" || !nameForm.MatchString(t.Function.Name) || t.Function.Parameters["type"] != "object" {
			return fmt.Errorf("tools.%d: not a function: %q", i, t.Function.Name)
		}
		r.Tools = append(r.Tools, t.Function.Name)
	}
	if err := unique(r.Tools); err != nil {
		return err
	}
	var open []string
	known := ids{}
	for i, m := range in.Messages {
		var err error
		if open, err = r.openaiMessage(m, open); err != nil {
			return fmt.Errorf("messages.%d: %w", i, err)
		}
		if m.Role == "assistant" {
			err = known.add(open)
		}
		if err != nil {
			return fmt.Errorf("messages.%d: %w", i, err)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
	}
	return nil
}

func (r *Request) openaiMessage(m openaiMessage, open []string) ([]string, error) {
	text, err := blocksText(m.Content)
	if err != nil {
		return nil, err
	}
	if m.Role == "tool" {
		at := indexOf(open, m.ToolCallID)
		if at < 0 {
			return nil, fmt.Errorf("tool_call_id %q answers no tool_calls", m.ToolCallID)
		}
		r.Turns = append(r.Turns, Turn{Role: "tool", CallID: m.ToolCallID, Text: text})
		return append(open[:at:at], open[at+1:]...), nil
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
	}
	switch m.Role {
	case "system", "developer":
		r.System += text
		return nil, nil
	case "user":
		if len(m.Content) == 0 {
			return nil, fmt.Errorf("content is required")
		}
		r.Turns = append(r.Turns, Turn{Role: "user", Text: text})
		return nil, nil
	case "assistant":
		turn := Turn{Role: "assistant", Text: text}
		if text == "" && len(m.ToolCalls) == 0 {
			return nil, fmt.Errorf("an assistant's message needs content or tool_calls")
		}
		var ids []string
		for _, c := range m.ToolCalls {
			if c.ID == "" || c.Type != "function" || !nameForm.MatchString(c.Function.Name) || readable([]byte(c.Function.Arguments)) != nil {
				return nil, fmt.Errorf("not a tool call: %q %q", c.ID, c.Function.Name)
			}
			ids = append(ids, c.ID)
			turn.Calls = append(turn.Calls, Call{ID: c.ID, Name: c.Function.Name, Args: c.Function.Arguments})
		}
		r.Turns = append(r.Turns, turn)
		return ids, unique(ids)
	}
	return nil, fmt.Errorf("unknown role %q", m.Role)
}
