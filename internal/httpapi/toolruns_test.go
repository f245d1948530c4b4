package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
)

type runsPage struct {
	Runs  []api.ToolRun
	After int64 `json:"next_after"`
}

func (s *site) runs(query string) (page runsPage) {
	s.t.Helper()
	answer, body := s.send(http.MethodGet, "/v1/sessions/known/runs"+query, "")
	require.Equal(s.t, http.StatusOK, answer.StatusCode, body)
	require.NoError(s.t, json.Unmarshal([]byte(body), &page))
	return page
}

// happened adds an event of a call to the log, with data as the ledger writes it.
func (l *log) happened(kind jig.EventType, call, data string) {
	l.list = append(l.list, jig.Event{SessionID: "acme.known", Seq: int64(len(l.list) + 1), Type: kind, Pass: 1, CallID: call, Tool: "file.read", Data: json.RawMessage(data)})
}

// ran adds a call that took two seconds, with its two events.
func (l *log) ran(call string, result jig.ToolResult, change func(c *jig.Call)) {
	end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	start := end.Add(-2 * time.Second)
	c := jig.Call{
		Tenant: "acme", SessionID: "acme.known", ID: call, Tool: "file.read", Input: []byte(`{"path":"a"}`), Status: jig.CallSucceeded, Fence: 1,
		Result: &result, StartedAt: &start, FinishedAt: &end,
	}
	kind := jig.EventToolCompleted
	if !result.Success {
		c.Status, kind = jig.CallFailed, jig.EventToolFailed
	}
	if change != nil {
		change(&c)
	}
	if c.Status == jig.CallCanceled {
		kind = jig.EventToolCancelled
	}
	l.calls = append(l.calls, c)
	l.happened(jig.EventToolStarted, call, `{"attempt":1}`)
	if c.Status.Final() {
		l.happened(kind, call, `{"duration_ms":2000,"attempt":1,"summary":"done"}`)
	}
}

func runsSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.log.session = jig.Session{Tenant: "acme", ID: "acme.known", Agent: jig.Agent{Name: "tidy"}, Principal: jig.Principal{ID: "ana"}, Source: jig.SourceWeb}
	return s
}

// The whole shape, as clients get it.
func TestRuns_TranslateAPairOfEvents(t *testing.T) {
	t.Parallel()
	s := runsSite(t)
	s.log.ran("1.1", jig.ToolResult{Success: true, Data: json.RawMessage(`{"text":"hello"}`)}, nil)
	_, body := s.send(http.MethodGet, "/v1/sessions/known/runs", "")
	require.JSONEq(t, `{"next_after": 2, "runs": [{
		"id": "acme.known/1.1", "tenant_id": "acme", "tool_slug": "file.read", "user_id": "ana", "input": {"path": "a"}, "output": {"text": "hello"},
		"status": "success", "error": null, "duration_ms": 2000, "source": "agent", "chat_id": "acme.known", "session_id": "acme.known"
	}]}`, body)
}

func TestRuns_OutputIsAnObject(t *testing.T) {
	t.Parallel()
	s := runsSite(t)
	failure := jig.Failure(jig.Errorf(jig.CodeTimeout, "it took too long"))
	failure.Data = json.RawMessage(`{"partly":true}`)
	for n, c := range []struct {
		result        jig.ToolResult
		change        func(*jig.Call)
		output, error string
	}{
		{jig.ToolResult{Success: true, Data: json.RawMessage(`[1,2]`)}, nil, `{"value":[1,2]}`, ""},
		{jig.ToolResult{Success: true, Data: json.RawMessage(`12345678901234567890`)}, nil, `{"value":12345678901234567890}`, ""},
		{jig.ToolResult{Success: true, Summary: "done"}, nil, `null`, ""},
		{jig.ToolResult{Success: true, Data: json.RawMessage(`{"a":"the beginning"}`)}, func(c *jig.Call) { c.ResultArtifact = "art_1" }, `{"artifact":"art_1"}`, ""},
		{failure, nil, `null`, "it took too long"},
		{jig.Failure(jig.Errorf(jig.CodeCanceled, "the call was canceled")), func(c *jig.Call) { c.Status = jig.CallCanceled }, `null`, "the call was canceled"},
		{jig.ToolResult{}, func(c *jig.Call) { c.Result = nil }, `null`, "the tool failed without saying why"},
	} {
		call := fmt.Sprintf("1.%d", n+1)
		s.log.ran(call, c.result, c.change)
		page := s.runs(fmt.Sprintf("?after=%d", 2*n))
		require.Len(t, page.Runs, 1, call)
		run := page.Runs[0]
		require.Equal(t, c.output, string(run.Output), call)
		if c.error == "" {
			require.Nil(t, run.Error, call)
			require.Equal(t, "success", run.Status, call)
			continue
		}
		require.Equal(t, c.error, *run.Error, call)
		require.Equal(t, "error", run.Status, call)
	}
}

func TestRuns_NameTheirSource(t *testing.T) {
	t.Parallel()
	s := runsSite(t)
	s.log.ran("1.1", jig.ToolResult{Success: true}, nil)
	for _, c := range []struct {
		agent  string
		source jig.Source
		want   string
		chat   bool
	}{
		{"tidy", jig.SourceWeb, "agent", true},
		{jig.CallAgent, jig.SourceAgent, "agent", true},
		{jig.CallAgent, jig.SourceWeb, "web", false},
		{jig.CallAgent, jig.SourceAPI, "api", false},
		{jig.CallAgent, jig.SourceSchedule, "api", false},
	} {
		s.log.session.Agent.Name, s.log.session.Source = c.agent, c.source
		run := s.runs("").Runs[0]
		require.Equal(t, c.want, run.Source, c)
		require.Equal(t, c.chat, run.Chat != nil, c)
	}
	s.log.session.Principal.ID = ""
	require.Nil(t, s.runs("").Runs[0].User)
}

// A call is a run once it has started and ended, however it ended.
func TestRuns_LeaveOutWhatHasNotRun(t *testing.T) {
	t.Parallel()
	s := runsSite(t)
	require.Empty(t, s.runs("").Runs)
	s.log.ran("1.1", jig.ToolResult{}, func(c *jig.Call) { c.Status = jig.CallExecuting })
	s.log.ran("1.2", jig.Failure(jig.Errorf(jig.CodeDenied, "refused")), func(c *jig.Call) { c.StartedAt = nil })
	s.log.happened(jig.EventToolFailed, "1.3", `{}`) // of a call that the ledger does not have
	s.log.ran("1.4", jig.ToolResult{}, func(c *jig.Call) { c.Status = jig.CallUnknown })
	s.log.happened(jig.EventToolOutcomeUnknown, "1.4", `{"attempt":1,"pending":{"kind":"reconcile"}}`)
	page := s.runs("")
	require.Empty(t, page.Runs)
	require.EqualValues(t, len(s.log.list), page.After)

	// The session is canceled, so that nobody will be asked about the outcome.
	last := &s.log.calls[len(s.log.calls)-1]
	last.Status, last.Result = jig.CallFailed, new(jig.Failure(jig.Errorf(jig.CodeOutcomeUnknown, "nobody knows")))
	s.log.happened(jig.EventToolOutcomeUnknown, "1.4", `{"summary":"nobody knows"}`)
	runs := s.runs("").Runs
	require.Len(t, runs, 1)
	require.Equal(t, "nobody knows", *runs[0].Error)
}

// A client that stops at an empty page misses nothing: refused calls do not fill a page.
func TestRuns_APageIsEmptyOnlyAtTheEnd(t *testing.T) {
	t.Parallel()
	s := runsSite(t)
	for n := range 5 {
		s.log.ran(fmt.Sprintf("1.%d", n+1), jig.Failure(jig.Errorf(jig.CodeDenied, "refused")), func(c *jig.Call) { c.StartedAt = nil })
	}
	s.log.ran("1.6", jig.ToolResult{Success: true}, nil)
	page := s.runs("?limit=2")
	require.Len(t, page.Runs, 1)
	require.Equal(t, "acme.known/1.6", page.Runs[0].ID)
	require.EqualValues(t, len(s.log.list), page.After)
}

// Pages follow each other without gaps, also while calls overlap.
func TestRuns_ArePaged(t *testing.T) {
	t.Parallel()
	s := runsSite(t)
	want := []string{}
	for n := range 7 {
		call := fmt.Sprintf("1.%d", n+1)
		s.log.ran(call, jig.ToolResult{Success: true}, nil)
		want = append(want, "acme.known/"+call)
	}
	list := s.log.list
	list[1], list[2] = list[2], list[1] // the second call starts before the first one ends
	list[1].Seq, list[2].Seq = 2, 3
	var got []string
	page := s.runs("?limit=2")
	for len(page.Runs) > 0 {
		require.LessOrEqual(t, len(page.Runs), 2)
		for _, run := range page.Runs {
			got = append(got, run.ID)
		}
		page = s.runs(fmt.Sprintf("?limit=2&after=%d", page.After))
	}
	require.Equal(t, want, got)
	require.EqualValues(t, len(list), page.After)
	require.Equal(t, page, s.runs(fmt.Sprintf("?after=%d", page.After)), "it stays there until more happens")
	answer, body := s.send(http.MethodGet, "/v1/sessions/other/runs", "")
	require.Equal(t, http.StatusNotFound, problem(t, answer, body).Status)
}
