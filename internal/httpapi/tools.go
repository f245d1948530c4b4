package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity/credential"
)

// serveTools serves the operations on tools and on the large values that their calls leave.
func (a *API) serveTools() {
	serve(a, api.ListTools, a.listTools)
	serve(a, api.GetTool, a.getTool)
	serveAs(a, api.TestTool, a.testTool)
	serveAs(a, api.StreamToolTest, a.streamToolTest)
	serveAs(a, api.GetArtifact, a.getArtifact)
}

func (a *API) listTools(ctx context.Context, _ *struct{}) (client.Catalog, error) {
	tenant, _ := callerOf(ctx)
	return a.options.Engine.Catalog(ctx, tenant)
}

func (a *API) getTool(ctx context.Context, in *api.ToolPath) (jig.Tool, error) {
	tenant, _ := callerOf(ctx)
	catalog, err := a.options.Engine.Catalog(ctx, tenant)
	if err != nil {
		return jig.Tool{}, err
	}
	at := slices.IndexFunc(catalog.Tools, func(t jig.Tool) bool { return t.Name == in.Tool })
	if at < 0 {
		return jig.Tool{}, jig.Errorf(jig.CodeToolNotFound, "there is no such tool").WithField("tool").WithHint("GET /v1/tools lists them")
	}
	return catalog.Tools[at], nil
}

// testCall makes the call of a test. It needs another scope in addition to that of its operation.
func (a *API) testCall(ctx context.Context, in *api.CallToolRequest) (*callAnswer, error) {
	if err := a.needs(ctx, credential.ScopeRun); err != nil {
		return nil, err
	}
	return a.callTool(ctx, in)
}

// testTool calls a tool and waits for the result.
func (a *API) testTool(ctx context.Context, in *api.CallToolRequest) (*callAnswer, error) {
	if preferred(in.Prefer) > 0 {
		return a.testCall(ctx, in)
	}
	in.Prefer = "wait=" + strconv.Itoa(maxPreferred)
	answer, err := a.testCall(ctx, in)
	if err != nil {
		return nil, err
	}
	answer.Applied = "" // the client preferred nothing
	return answer, nil
}

// toolTestAnswer writes a stream.
type toolTestAnswer struct {
	Replayed string `header:"Idempotent-Replayed"`
	Body     func(ctx huma.Context)
}

// streamToolTest calls a tool and sends the events of the call. All checks that can refuse the request happen before the stream begins.
func (a *API) streamToolTest(ctx context.Context, in *api.StreamToolTestRequest) (*toolTestAnswer, error) {
	if err := a.enterStream(ctx); err != nil {
		return nil, err
	}
	started, err := a.testCall(ctx, &api.CallToolRequest{CallHeaders: api.CallHeaders{Idempotent: in.Idempotent}, ToolPath: in.ToolPath, Body: in.Body})
	if err != nil {
		return nil, err
	}
	tenant, _ := callerOf(ctx)
	session := jig.SessionID(tenant, started.Body.SessionID)
	return &toolTestAnswer{Replayed: started.Replayed, Body: func(c huma.Context) { //nolint:contextcheck // it gets the request's context from huma
		a.serveStream(c, func(ctx context.Context, s *stream) {
			s.only = ofCalls
			s.unnumbered("call", started.Body)
			if a.stream(ctx, s, tenant, session, 1) {
				a.sendRun(ctx, s, tenant, session, started.Body.Call)
			}
		})
	}}, nil
}

// ofCalls reports whether an event is about a call.
func ofCalls(e jig.Event) bool { return strings.HasPrefix(string(e.Type), "tool.") }

// sendRun sends a call that has ended as a flat object, if it has run. If it cannot be read now, the client finds it in the runs of the session.
func (a *API) sendRun(ctx context.Context, s *stream, tenant, id, call string) {
	session, calls, err := a.options.Log.CallsOf(ctx, tenant, id, []string{call})
	if err == nil && len(calls) == 1 && hasRun(calls[0]) {
		s.unnumbered("run", toolRun(session, calls[0]))
	}
}

func (a *API) getArtifact(ctx context.Context, in *api.ArtifactPath) (*written, error) {
	tenant, _ := callerOf(ctx)
	select {
	case a.downloads <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err() //nolint:wrapcheck // the request has ended
	}
	content, err := a.options.Engine.Artifact(ctx, tenant, in.Artifact)
	if <-a.downloads; err != nil {
		return nil, err
	}
	return &written{Body: func(c huma.Context) {
		_, w := humago.Unwrap(c)
		h := w.Header()
		h.Set("Content-Type", api.Binary)
		h.Set("Content-Disposition", `attachment; filename="`+fileName(in.Artifact)+`"`)
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(content) //nolint:errcheck // the client is gone
	}}, nil
}

// fileName returns an id as the name of a file.
func fileName(id string) string {
	return strings.Map(func(r rune) rune {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.' {
			return '_'
		}
		return r
	}, id)
}

// Values of status and source.
const (
	runSucceeded, runFailed         = "success", "error"
	runByWeb, runByAgent, runByCode = "web", "agent", "api"
)

// listRuns reads pieces of the log until one of them has a run.
func (a *API) listRuns(ctx context.Context, in *api.RunsRequest) (list api.ToolRunList, err error) {
	tenant, _ := callerOf(ctx)
	id := jig.SessionID(tenant, in.Session)
	if _, err := a.standing(ctx, tenant, id); err != nil {
		return list, err
	}
	list.After = in.After
	for {
		after := list.After
		if list, err = a.runsAfter(ctx, tenant, id, after, in.Limit); err != nil || len(list.Runs) > 0 || list.After == after {
			return list, err
		}
	}
}

// runsAfter reads a piece of the log, and translates each event with which a call ended.
func (a *API) runsAfter(ctx context.Context, tenant, id string, after int64, limit int) (api.ToolRunList, error) {
	events, err := a.options.Log.Events(ctx, tenant, id, after, maxEvents)
	if err != nil {
		return api.ToolRunList{}, err
	}
	list := api.ToolRunList{After: after}
	var ended []string
	for _, e := range events {
		if endsCall(e) {
			if len(ended) == limit {
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
