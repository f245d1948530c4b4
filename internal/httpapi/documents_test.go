package httpapi_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

// documents has a name of its own, because the interface has a method of that name.
type documents = httpapi.Documents

// schedules has a name of its own for the same reason.
type schedules = httpapi.Schedules

// library has two versions of the agent tidy, and takes calls.
type library struct {
	documents
	httpapi.Calls
	httpapi.Records
	schedules

	called protocol.CallInput
	// keyed is the session that an earlier request started with an idempotency key.
	keyed     string
	simulated protocol.VerdictRequest
	// scheduled is the tool of the last schedule.
	scheduled string
	whole     []client.Schedule
	// taken is the last request to take over a schedule.
	taken client.ScheduleRequest
	// tested is the last page of a backtest.
	tested protocol.BacktestRequest
}

func (l *library) CreateSchedule(_ context.Context, o client.ScheduleOptions) (client.Schedule, error) {
	l.scheduled = o.Call.Tool
	return client.Schedule{Name: o.Name}, nil
}

func (l *library) Schedule(_ context.Context, _, name string) (client.Schedule, error) {
	return client.Schedule{Name: name, Tool: l.scheduled}, nil
}

func (l *library) WholeSchedules(context.Context, string) ([]client.Schedule, error) {
	return l.whole, nil
}

func (l *library) TakeOverSchedule(_ context.Context, r client.ScheduleRequest) (client.Schedule, error) {
	l.taken = r
	return client.Schedule{Name: r.Name}, nil
}

func (l *library) TriggerSchedule(context.Context, client.ScheduleRequest) (string, error) {
	return "ses_1", nil
}

func (l *library) Simulate(_ context.Context, request protocol.VerdictRequest) (protocol.Verdict, error) {
	l.simulated = request
	return protocol.Verdict{Reasons: []string{}, Rules: []protocol.AppliedRule{}}, nil
}

func (l *library) BacktestOnce(_ context.Context, request protocol.BacktestRequest) (protocol.BacktestPage, error) {
	l.tested = request
	return protocol.BacktestPage{Next: "call-500"}, nil
}

func (l *library) Documents(context.Context, string, string) ([]protocol.DocumentState, error) {
	return nil, nil
}

func (l *library) DocumentVersions(_ context.Context, _, kind, name, _ string) ([]protocol.DocumentState, error) {
	if kind != "agent" || name != "tidy" {
		return nil, jig.Errorf(jig.CodeNotFound, "there is no document %s", name)
	}
	return []protocol.DocumentState{{Kind: kind, Name: name, Version: "v2", Current: true}, {Kind: kind, Name: name, Version: "v1"}}, nil
}

func (l *library) DocumentAt(_ context.Context, _, _, _, version string) ([]byte, error) {
	return []byte("Tidy up.\n" + version + "\n"), nil
}

func (l *library) StartCall(_ context.Context, input protocol.CallInput, _ string) (client.Started, error) {
	l.called = input
	return client.Started{SessionID: "ses_1"}, nil
}

func (l *library) AwaitCall(context.Context, string, string) (protocol.CallResult, error) {
	return protocol.CallResult{SessionID: "ses_1", Call: "1.1", Status: jig.CallWaiting}, nil
}

func (l *library) Record(_ context.Context, _, session, call string) (protocol.CallRecord, error) {
	if session != l.keyed || call != "1.1" {
		return protocol.CallRecord{}, jig.Errorf(jig.CodeNotFound, "there is no session %s", session)
	}
	return protocol.CallRecord{}, nil
}

func librarySite(t *testing.T) (*site, *library) {
	t.Helper()
	l := &library{}
	return newSiteWith(t, func(o *httpapi.Options) {
		o.Engine.Documents, o.Engine.Calls, o.Engine.Records, o.Engine.Schedules = l, l, l, l
	}), l
}

func TestDocuments_AreReadBackByVersion(t *testing.T) {
	t.Parallel()
	s, _ := librarySite(t)
	var d struct{ Text, Version, Difference string }
	read := func(query string) string {
		answer, body := s.send(http.MethodGet, "/v1/documents/agent/tidy"+query, "")
		require.Equal(t, http.StatusOK, answer.StatusCode, body)
		require.NoError(t, json.Unmarshal([]byte(body), &d))
		return answer.Header.Get("ETag")
	}
	require.Equal(t, `"v2"`, read(""))
	require.Equal(t, "Tidy up.\nv2\n", d.Text)
	require.Equal(t, `"v1"`, read("?version=v1"))
	require.Equal(t, "Tidy up.\nv1\n", d.Text)
	read("/difference?from=v1")
	require.Equal(t, "@@ -1,2 +1,2 @@\n Tidy up.\n-v1\n+v2", d.Difference)
	read("/difference?from=v1&to=v1")
	require.Empty(t, d.Difference)
	for _, path := range []string{"/v1/documents/agent/tidy?version=v9", "/v1/documents/agent/other", "/v1/documents/agent/other/versions", "/v1/documents/agent/tidy/difference?from=v9"} {
		answer, body := s.send(http.MethodGet, path, "")
		require.Equal(t, http.StatusNotFound, problem(t, answer, body).Status, path)
	}
}

// The pages of a backtest add up only if all of them are of the same document and the same calls.
func TestPolicies_BacktestCursorBelongsToItsRequest(t *testing.T) {
	t.Parallel()
	s, l := librarySite(t)
	test := func(document, since, cursor string) (reply, string) {
		body, err := json.Marshal(map[string]any{"document": document, "since": since, "cursor": cursor})
		require.NoError(t, err)
		return s.send(http.MethodPost, "/v1/policies:backtest", string(body))
	}
	const since, again, later = "2026-11-27T10:00:00Z", "2026-11-27T11:00:00+01:00", "2026-11-27T11:00:00Z"
	_, body := test("a", since, "")
	var first struct {
		Next string `json:"next_cursor"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &first), body)
	answer, body := test("a", again, first.Next)
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	require.Equal(t, "call-500", l.tested.Cursor)
	for _, other := range [][3]string{{"b", since, first.Next}, {"a", later, first.Next}, {"a", since, "call-500"}} {
		answer, body := test(other[0], other[1], other[2])
		require.Equal(t, "cursor", problem(t, answer, body).Field, other)
	}
}

// A change names the version that the client has seen. The call that makes the change names it, too.
func TestDocuments_ChangeOnlyWhatWasSeen(t *testing.T) {
	t.Parallel()
	const put = `{"text":"Tidy up well."}`
	for _, c := range []struct {
		method, path, body, match string
		status                    int
		tool, input               string
	}{
		{method: "PUT", path: "agent/tidy", body: put, status: 428},
		{method: "PUT", path: "agent/tidy", body: put, match: `"v1"`, status: 412},
		{method: "PUT", path: "agent/tidy", body: put, match: `W/"v2"`, status: 412},
		{method: "PUT", path: "agent/new", body: put, match: `*`, status: 412},
		{
			method: "PUT", path: "agent/tidy", body: put, match: `"v1", "v2"`, status: 202, tool: "catalog.put",
			input: `{"documents":[{"path":"tidy.md","body":"Tidy up well.","replaces":{"kind":"agent","name":"tidy","version":"v2"}}]}`,
		},
		{
			method: "PUT", path: "policy/new", body: put, status: 202, tool: "catalog.put",
			input: `{"documents":[{"path":"new.yaml","body":"Tidy up well.","replaces":{"kind":"policy","name":"new"}}]}`,
		},
		{method: "DELETE", path: "agent/tidy", status: 428},
		{method: "DELETE", path: "agent/new", status: 404},
		{
			method: "DELETE", path: "agent/tidy", match: `*`, status: 202, tool: "catalog.remove",
			input: `{"documents":[{"kind":"agent","name":"tidy","version":"v2"}]}`,
		},
		{method: "POST", path: "agent/tidy/restore", body: `{"version":"v9"}`, match: `*`, status: 404},
		{method: "POST", path: "agent/tidy/restore", body: `{"version":"v1"}`, status: 428},
		{
			method: "POST", path: "agent/tidy/restore", body: `{"version":"v1"}`, match: `"v2"`, status: 202, tool: "catalog.put",
			input: `{"documents":[{"path":"tidy.md","body":"Tidy up.\nv1\n","replaces":{"kind":"agent","name":"tidy","version":"v2"}}]}`,
		},
	} {
		s, l := librarySite(t)
		headers := []string{}
		if c.match != "" {
			headers = append(headers, "If-Match", c.match)
		}
		answer, body := s.send(c.method, "/v1/documents/"+c.path, c.body, headers...)
		require.Equal(t, c.status, answer.StatusCode, "%s %s: %s", c.method, c.path, body)
		require.Equal(t, c.tool, l.called.Tool)
		if c.tool != "" {
			require.JSONEq(t, c.input, string(l.called.Input))
			require.Equal(t, jig.Principal{ID: "ana", Claimed: true}, l.called.Principal)
		}
	}
}

// A client that lost the answer repeats its request. Meanwhile the first one may have changed the document.
func TestDocuments_ARepeatedChangeFindsItsCall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, path, body, match, version string }{
		{"PUT", "agent/tidy", `{"text":"Tidy up well."}`, `"v1"`, `"v1"`},
		{"PUT", "agent/tidy", `{"text":"Tidy up well."}`, "", ""},
		{"POST", "agent/tidy/restore", `{"version":"v1"}`, `"v1"`, `"v1"`},
		{"DELETE", "agent/tidy", "", `"v1"`, `"v1"`},
		{"DELETE", "agent/gone", "", `"v1"`, `"v1"`},
	} {
		s, l := librarySite(t)
		headers := []string{"Idempotency-Key", "again"}
		if c.match != "" {
			headers = append(headers, "If-Match", c.match)
		}
		answer, body := s.send(c.method, "/v1/documents/"+c.path, c.body, headers...)
		require.Contains(t, []int{http.StatusPreconditionFailed, http.StatusPreconditionRequired}, answer.StatusCode, body)
		l.keyed = jig.KeyedSessionID("acme", "again")
		answer, body = s.send(c.method, "/v1/documents/"+c.path, c.body, headers...)
		require.Equal(t, http.StatusAccepted, answer.StatusCode, body)
		require.Equal(t, c.version != "", bytes.Contains(l.called.Input, []byte(`"version":`+c.version)), string(l.called.Input))
	}
}

// Documents are changed with the scope author alone, whichever operation makes the call.
func TestDocuments_NeedTheScopeAuthor(t *testing.T) {
	t.Parallel()
	s, l := librarySite(t)
	run, author := s.keys.add("acme", credential.DefaultScopes()...), s.keys.add("acme", credential.ScopeRead, credential.ScopeRun, credential.ScopeAuthor)
	manage := s.keys.add("acme", credential.ScopeRead, credential.ScopeManage)
	for _, c := range []struct{ method, path, body, tool string }{
		{"POST", "/v1/documents", `{"documents":[{"path":"a.yaml","body":"x"}]}`, "catalog.put"},
		{"POST", "/api/tools", `{"documents":[{"path":"a.yaml","body":"x"}]}`, "catalog.put"},
		{"PUT", "/v1/documents/agent/new", `{"text":"x"}`, "catalog.put"},
		{"DELETE", "/v1/documents/agent/tidy", "", "catalog.remove"},
		{"POST", "/v1/documents/agent/tidy/restore", `{"version":"v1"}`, "catalog.put"},
		{"POST", "/v1/tools/catalog.put/calls", `{"input":{}}`, "catalog.put"},
		{"POST", "/api/tools/catalog.remove/test", `{"input":{}}`, "catalog.remove"},
		{"POST", "/v1/calls", `{"name":"bundle.install"}`, "bundle.install"},
		{"POST", "/v1/calls", `{"name":"bundle.remove"}`, "bundle.remove"},
		{"POST", "/v1/people:disable", `{"person":"ben"}`, "tenants.set_disabled"},
		{"POST", "/v1/people:enable", `{"person":"ben"}`, "tenants.set_disabled"},
		{"POST", "/v1/tools/tenants.set_disabled/calls", `{"input":{}}`, "tenants.set_disabled"},
	} {
		headers := []string{}
		if c.path == "/v1/documents/agent/tidy" || c.path == "/v1/documents/agent/tidy/restore" {
			headers = []string{"If-Match", "*"}
		}
		l.called, s.key = protocol.CallInput{}, run
		answer, body := s.send(c.method, c.path, c.body, headers...)
		require.Equal(t, "scope", problem(t, answer, body).Reason, c)
		require.Contains(t, body, "author")
		require.Empty(t, l.called.Tool)
		s.key = author
		answer, body = s.send(c.method, c.path, c.body, headers...)
		require.Equal(t, http.StatusAccepted, answer.StatusCode, body)
		require.Equal(t, c.tool, l.called.Tool)
	}
	for _, tool := range toolname.Authoring() {
		s.key, l.scheduled = run, ""
		body := `{"name":"nightly","every":"24h","tool":"` + tool + `"}`
		answer, text := s.send(http.MethodPost, "/v1/schedules", body)
		require.Equal(t, "scope", problem(t, answer, text).Reason)
		require.Empty(t, l.scheduled)
		s.key = author
		answer, text = s.send(http.MethodPost, "/v1/schedules", body)
		require.Equal(t, http.StatusCreated, answer.StatusCode, text)
		require.Equal(t, tool, l.scheduled)
	}
	for who, keys := range map[string][]string{"": {run, author, manage}, "ana": {run, author, manage}, "ben": {author, manage}} {
		for _, s.key = range []string{run, author, manage} {
			l.simulated = protocol.VerdictRequest{}
			answer, body := s.send(http.MethodPost, "/v1/policies:simulate", `{"tool":"file.write","by":"`+who+`"}`)
			if !slices.Contains(keys, s.key) {
				require.Equal(t, "scope", problem(t, answer, body).Reason)
				require.Empty(t, l.simulated)
				continue
			}
			require.Equal(t, http.StatusOK, answer.StatusCode, body)
			require.Equal(t, cmp.Or(who, "ana"), l.simulated.By)
		}
	}
}
