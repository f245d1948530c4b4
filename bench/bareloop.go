package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"go.temporal.io/sdk/workflow"
)

// The activities of BareLoop.
const (
	bareThink = "bench.bareThink"
	bareCall  = "bench.bareCall"
)

// BareInput is the input of an activity of BareLoop.
type BareInput struct {
	Session string `json:"session"`
	Plan    plan   `json:"plan"`
	// Call is the id of the call to make.
	Call string `json:"call,omitempty"`
}

// BareLoop is the floor of P18: an agent session in one workflow run that asks the model and calls the tools, and nothing else. Each request
// to the model is an activity, and so is each call; the calls of a pass run in parallel. The conversation is kept in the memory of the
// worker's process, so it is lost if that process ends. There is no ledger, no event, no approval and no policy.
func BareLoop(ctx workflow.Context, in LoopInput) (string, error) {
	ctx = baselineOptions(ctx)
	this := BareInput{Session: workflow.GetInfo(ctx).WorkflowExecution.ID, Plan: in.Plan}
	for {
		var calls []string
		if err := workflow.ExecuteActivity(ctx, bareThink, this).Get(ctx, &calls); err != nil {
			return "", err //nolint:wrapcheck // a workflow returns Temporal's own errors
		}
		if len(calls) == 0 {
			return "done", nil
		}
		running := make([]workflow.Future, len(calls))
		for i, call := range calls {
			running[i] = workflow.ExecuteActivity(ctx, bareCall, BareInput{Session: this.Session, Call: call})
		}
		for _, one := range running {
			if err := one.Get(ctx, nil); err != nil {
				return "", err //nolint:wrapcheck // as above
			}
		}
	}
}

// bareLoop holds the conversations of BareLoop.
type bareLoop struct {
	url  string
	http *http.Client

	mu            sync.Mutex
	conversations map[string][]wireMessage
}

func newBareLoop(modelURL string) *bareLoop {
	transport := &http.Transport{MaxIdleConnsPerHost: 100} // one for each session that P18 runs at once
	return &bareLoop{url: modelURL + "chat/completions", http: &http.Client{Transport: transport}, conversations: map[string][]wireMessage{}}
}

// think asks the model for the next turn and returns the ids of its calls. After the last turn it forgets the conversation.
func (l *bareLoop) think(ctx context.Context, in BareInput) ([]string, error) {
	messages, err := l.begun(in)
	if err != nil {
		return nil, err
	}
	turn, err := l.ask(ctx, messages)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(turn.ToolCalls) == 0 {
		delete(l.conversations, in.Session)
		return nil, nil
	}
	l.conversations[in.Session] = append(l.conversations[in.Session], turn)
	calls := make([]string, len(turn.ToolCalls))
	for i, call := range turn.ToolCalls {
		calls[i] = call.ID
	}
	return calls, nil
}

// begun returns the conversation of a session, which begins with its plan.
func (l *bareLoop) begun(in BareInput) ([]wireMessage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conversations[in.Session] == nil {
		input, err := planInput(in.Plan)
		if err != nil {
			return nil, err
		}
		l.conversations[in.Session] = []wireMessage{
			{Role: "system", Content: "Do as the input says."}, {Role: "user", Content: string(input)},
		}
	}
	return l.conversations[in.Session], nil
}

// ask makes a request to the model.
func (l *bareLoop) ask(ctx context.Context, messages []wireMessage) (turn wireMessage, err error) {
	body, err := json.Marshal(wireRequest{Model: "stand-in", Messages: messages, Tools: bareTools()})
	if err != nil {
		return turn, fmt.Errorf("write the request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader(body))
	if err != nil {
		return turn, fmt.Errorf("ask the model: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := l.http.Do(request)
	if err != nil {
		return turn, fmt.Errorf("ask the model: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // nothing can be lost
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return turn, fmt.Errorf("read the answer: %w", err)
	}
	var answer wireAnswer
	if err := json.Unmarshal(content, &answer); err != nil || len(answer.Choices) != 1 || answer.Choices[0].Message == nil {
		return turn, fmt.Errorf("the model answered %s: %s", response.Status, content)
	}
	return *answer.Choices[0].Message, nil
}

// call does nothing and adds its result to the conversation.
func (l *bareLoop) call(_ context.Context, in BareInput) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conversations[in.Session] = append(l.conversations[in.Session], wireMessage{Role: "tool", Content: `{"n":0}`, ToolCallID: in.Call})
	return nil
}

func bareTools() []wireTool {
	return []wireTool{{Type: "function", Function: wireFunction{
		Name: "noop", Description: "Does nothing.", Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
	}}}
}
