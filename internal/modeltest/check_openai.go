package modeltest

import (
	"encoding/json"
	"fmt"
	"strings"
)

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
