package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
)

// Values of status and source.
const (
	runSucceeded, runFailed         = "success", "error"
	runByWeb, runByAgent, runByCode = "web", "agent", "api"
)

// listRuns reads a piece of the log, and translates each event with which a call ended.
func (a *API) listRuns(ctx context.Context, in *api.RunsRequest) (api.ToolRunList, error) {
	tenant, _ := callerOf(ctx)
	id := jig.SessionID(tenant, in.Session)
	if _, err := a.standing(ctx, tenant, id); err != nil {
		return api.ToolRunList{}, err
	}
	events, err := a.options.Log.Events(ctx, tenant, id, in.After, maxEvents)
	if err != nil {
		return api.ToolRunList{}, err
	}
	list := api.ToolRunList{After: in.After}
	var ended []string
	for _, e := range events {
		if endsCall(e) {
			if len(ended) == in.Limit {
				break
			}
			ended = append(ended, e.CallID)
		}
		list.After = e.Seq
	}
	if len(ended) == 0 {
		return list, nil
	}
	session, calls, err := a.options.Log.CallsOf(ctx, tenant, id, ended)
	if err != nil {
		return api.ToolRunList{}, err
	}
	for _, id := range ended {
		at := slices.IndexFunc(calls, func(c jig.Call) bool { return c.ID == id })
		if at >= 0 && hasRun(calls[at]) { // the others were refused, or are open again
			list.Runs = append(list.Runs, toolRun(session, calls[at]))
		}
	}
	return list, nil
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
func toolRun(s jig.Session, c jig.Call) api.ToolRun {
	run := api.ToolRun{
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
