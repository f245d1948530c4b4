package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
)

// The messages of OpenAI's Chat Completions, as far as the stand-in and the bare loop use them.
type (
	wireRequest struct {
		Model    string        `json:"model"`
		Stream   bool          `json:"stream,omitempty"`
		Messages []wireMessage `json:"messages"`
		Tools    []wireTool    `json:"tools,omitempty"`
	}
	wireMessage struct {
		Role       string     `json:"role"`
		Content    any        `json:"content"` // a text, or parts
		ToolCalls  []wireCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
	}
	wireCall struct {
		Index    int          `json:"index"`
		ID       string       `json:"id"`
		Type     string       `json:"type"`
		Function wireFunction `json:"function"`
	}
	wireFunction struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Arguments   string          `json:"arguments,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}
	wireTool struct {
		Type     string       `json:"type"`
		Function wireFunction `json:"function"`
	}
	wireChoice struct {
		Index        int          `json:"index"`
		Message      *wireMessage `json:"message,omitempty"`
		Delta        *wireMessage `json:"delta,omitempty"`
		FinishReason *string      `json:"finish_reason"`
	}
	wireUsage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
	wireAnswer struct {
		ID      string       `json:"id"`
		Object  string       `json:"object"`
		Created int64        `json:"created"`
		Model   string       `json:"model"`
		Choices []wireChoice `json:"choices"`
		Usage   *wireUsage   `json:"usage,omitempty"`
	}
)

// standInModel is the agent's model for sessions that ask the stand-in.
const standInModel = "openai/stand-in"

// startStandIn starts a server that speaks OpenAI's Chat Completions and answers at once. Like planner, it makes the calls of the plan in the
// first user message and then ends the session. It calls the first tool that it is offered, and tells the pass from the turns with calls so far.
func startStandIn() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in wireRequest
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		turn, err := nextTurn(in)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if in.Stream {
			writeStream(w, in.Model, turn)
			return
		}
		writeWhole(w, in.Model, turn)
	}))
}

// nextTurn returns the answer to a request.
func nextTurn(in wireRequest) (wireMessage, error) {
	turn := wireMessage{Role: "assistant", Content: ""}
	p, err := planOf(in.Messages)
	if err != nil {
		return turn, err
	}
	pass := 1
	for _, m := range in.Messages {
		if len(m.ToolCalls) > 0 {
			pass++
		}
	}
	if pass > p.Passes {
		turn.Content = "done"
		return turn, nil
	}
	if len(in.Tools) == 0 {
		return turn, fmt.Errorf("pass %d of %d calls tools, but none is offered", pass, p.Passes)
	}
	turn.ToolCalls = make([]wireCall, p.Calls)
	for i := range turn.ToolCalls {
		turn.ToolCalls[i] = wireCall{
			Index: i, ID: fmt.Sprintf("call_%d_%d", pass, i+1), Type: "function",
			Function: wireFunction{Name: in.Tools[0].Function.Name, Arguments: fmt.Sprintf(`{"n":%d}`, pass*1_000_000+i)},
		}
	}
	return turn, nil
}

// planOf returns the plan in the first user message. Text may surround it.
func planOf(messages []wireMessage) (plan, error) {
	var p plan
	for _, m := range messages {
		text, ok := m.Content.(string)
		if m.Role != "user" || !ok {
			continue
		}
		if err := json.NewDecoder(strings.NewReader(text[max(0, strings.Index(text, "{")):])).Decode(&p); err != nil {
			return p, fmt.Errorf("read the plan in %q: %w", text, err)
		}
		return p, nil
	}
	return p, fmt.Errorf("no user message among %d messages has a plan", len(messages))
}

// finishOf returns the finish reason of a turn.
func finishOf(turn wireMessage) *string {
	reason := "stop"
	if len(turn.ToolCalls) > 0 {
		reason = "tool_calls"
	}
	return &reason
}

// newAnswer returns an answer without choices.
func newAnswer(object, model string) wireAnswer {
	return wireAnswer{ID: "chatcmpl-1", Object: object, Created: 1, Model: model, Choices: []wireChoice{}}
}

var someUsage = wireUsage{Prompt: 100, Completion: 10, Total: 110}

func writeWhole(w http.ResponseWriter, model string, turn wireMessage) {
	answer := newAnswer("chat.completion", model)
	answer.Choices = []wireChoice{{Message: &turn, FinishReason: finishOf(turn)}}
	answer.Usage = &someUsage
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) //nolint:errcheck // the client has gone
}

// writeStream writes the turn, its finish reason and the usage as three chunks.
func writeStream(w http.ResponseWriter, model string, turn wireMessage) {
	w.Header().Set("Content-Type", "text/event-stream")
	body, finish, usage := newAnswer("chat.completion.chunk", model), newAnswer("chat.completion.chunk", model), newAnswer("chat.completion.chunk", model)
	body.Choices = []wireChoice{{Delta: &turn}}
	finish.Choices = []wireChoice{{Delta: &wireMessage{Role: "assistant", Content: ""}, FinishReason: finishOf(turn)}}
	usage.Usage = &someUsage
	// A failed write means that the client has gone.
	for _, chunk := range []wireAnswer{body, finish, usage} {
		content, err := json.Marshal(chunk)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", content)
	}
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}
