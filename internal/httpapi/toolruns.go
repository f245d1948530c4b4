package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig"
)

// ToolRun is a call that has run, in the flat form of interfaces that know no events. It is derived from the log and the ledger and never stored.
type ToolRun struct {
	ID         string          `json:"id" doc:"The ids of the session and of the call, separated by a slash"`
	Tenant     string          `json:"tenant_id"`
	Tool       string          `json:"tool_slug"`
	User       *string         `json:"user_id" doc:"The principal that the session acts for"`
	Input      json.RawMessage `json:"input"`
	Output     json.RawMessage `json:"output" doc:"The result of a successful call, always an object: any other value is in its member value, and the id of a separately stored value is in its member artifact"`
	Status     string          `json:"status" enum:"success,error"`
	Error      *string         `json:"error"`
	DurationMS int64           `json:"duration_ms" doc:"How long the last attempt took"`
	Source     string          `json:"source" enum:"web,agent,api" doc:"agent if an agent made the call, web if a person made it in a browser, otherwise api"`
	Chat       *string         `json:"chat_id" doc:"The session, if an agent made the call"`
	Session    string          `json:"session_id"`
}

// Values of status and source.
const (
	runSucceeded, runFailed         = "success", "error"
	runByWeb, runByAgent, runByCode = "web", "agent", "api"
)

type runsRequest struct {
	One
	After int64 `query:"after" minimum:"0" doc:"next_after of the previous page"`
	Limit int   `query:"limit" minimum:"1" maximum:"50" default:"20" doc:"The maximum number of runs on a page"`
}

type runsAnswer struct {
	Body struct {
		Runs  []ToolRun `json:"runs"`
		After int64     `json:"next_after" doc:"The value of after for the next request. If it is unchanged, there is nothing new yet."`
	} `nameHint:"ToolRunList"`
}

// listRuns reads a piece of the log, and translates each event with which a call ended.
func (a *API) listRuns(ctx context.Context, in *runsRequest) (*runsAnswer, error) {
	tenant, _ := callerOf(ctx)
	id := jig.SessionID(tenant, in.Session)
	if _, err := a.standing(ctx, tenant, id); err != nil {
		return nil, err
	}
	events, err := a.options.Log.Events(ctx, tenant, id, in.After, maxEvents)
	if err != nil {
		return nil, err
	}
	var answer runsAnswer
	answer.Body.Runs, answer.Body.After = []ToolRun{}, in.After
	var ended []string
	for _, e := range events {
		if endsCall(e) {
			if len(ended) == in.Limit {
				break
			}
			ended = append(ended, e.CallID)
		}
		answer.Body.After = e.Seq
	}
	if len(ended) == 0 {
		return &answer, nil
	}
	session, calls, err := a.options.Log.CallsOf(ctx, tenant, id, ended)
	if err != nil {
		return nil, err
	}
	for _, id := range ended {
		at := slices.IndexFunc(calls, func(c jig.Call) bool { return c.ID == id })
		if at >= 0 && hasRun(calls[at]) { // the others were refused, or are open again
			answer.Body.Runs = append(answer.Body.Runs, toolRun(session, calls[at]))
		}
	}
	return &answer, nil
}

// hasRun reports whether a call has started and ended.
func hasRun(c jig.Call) bool { return c.StartedAt != nil && c.Status.Final() }

// endsCall reports whether a call has ended with an event. A call in doubt that nobody will be asked about has ended, too.
func endsCall(e jig.Event) bool {
	switch e.Type { //nolint:exhaustive // no other event ends a call that has started
	case jig.EventToolCompleted, jig.EventToolFailed, jig.EventToolCancelled:
		return true
	case jig.EventToolOutcomeUnknown:
		var data struct{ Pending json.RawMessage }
		return json.Unmarshal(e.Data, &data) == nil && data.Pending == nil
	}
	return false
}

// toolRun translates a call that has started and ended.
func toolRun(s jig.Session, c jig.Call) ToolRun {
	run := ToolRun{
		ID: s.ID + "/" + c.ID, Tenant: s.Tenant, Tool: c.Tool, Input: c.Input, Status: runFailed, DurationMS: c.Duration().Milliseconds(),
		Source: runByCode, Session: s.ID,
	}
	if s.Principal.ID != "" {
		run.User = &s.Principal.ID
	}
	switch {
	case s.Agent.Name != jig.CallAgent || s.Source == jig.SourceAgent:
		run.Source, run.Chat = runByAgent, &s.ID
	case s.Source == jig.SourceWeb:
		run.Source = runByWeb
	}
	var result jig.ToolResult
	if c.Result != nil {
		result = *c.Result
	}
	if c.Status != jig.CallSucceeded {
		run.Error = new(result.Cause().Message)
		return run
	}
	run.Status = runSucceeded
	switch data := bytes.TrimSpace(result.Data); {
	case c.ResultArtifact != "":
		run.Output = member("artifact", c.ResultArtifact)
	case bytes.HasPrefix(data, []byte("{")):
		run.Output = data
	case len(data) > 0:
		run.Output = member("value", result.Data)
	}
	return run
}

// member returns an object with one member.
func member(name string, value any) json.RawMessage {
	text, err := json.Marshal(map[string]any{name: value})
	if err != nil { // cannot happen: the ledger has only valid JSON
		return nil
	}
	return text
}
