package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/spec"
)

var update = flag.Bool("update", false, "write testdata/openapi.json")

// Clients are generated from the document. Read the difference before you commit it: removing or renaming something breaks them.
func TestDocument_IsUpToDate(t *testing.T) {
	t.Parallel()
	document, err := httpapi.Document()
	require.NoError(t, err)
	const file = "testdata/openapi.json"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, document, 0o600))
	}
	golden, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(golden), string(document), "run go test ./internal/httpapi -update, and read the difference")
	for range 5 {
		again, err := httpapi.Document()
		require.NoError(t, err)
		require.Equal(t, string(document), string(again), "it is the same each time")
	}
}

// Every code has its status.
func TestErrors_HaveOneStatusForEachCode(t *testing.T) {
	t.Parallel()
	want := map[jig.Code]int{
		jig.CodeToolNotFound: 404, jig.CodeNotPermitted: 403, jig.CodeMissingParam: 422, jig.CodeInvalidInput: 422, jig.CodeDenied: 403,
		jig.CodeExpired: 410, jig.CodeCanceled: 409, jig.CodeDuplicate: 409, jig.CodeTimeout: 504, jig.CodeRateLimited: 429,
		jig.CodeOutcomeUnknown: 409, jig.CodeInvalidOutput: 502, jig.CodeNotFound: 404, jig.CodeConflict: 409, jig.CodeBudgetExhausted: 402,
		jig.CodeUnavailable: 503, jig.CodeInternal: 500,
	}
	s := newSite(t)
	for _, code := range jig.Codes() {
		s.engine.start = func(client.StartOptions) (client.Started, error) {
			e := jig.Errorf(code, "it does not work").WithField("agent").WithHint("try again").WithReason("because")
			e.RetryAfter = 1500 * time.Millisecond
			return client.Started{}, e
		}
		answer, body := s.send(http.MethodPost, "/v1/sessions", `{"agent":"a"}`)
		p := problem(t, answer, body)
		require.Equal(t, want[code], p.Status, code)
		require.Equal(t, string(code), p.Code)
		if code == jig.CodeInternal {
			require.NotContains(t, body, "it does not work", "only the log says it")
			continue
		}
		require.Equal(t, []string{"it does not work", "agent", "try again", "because"}, []string{p.Detail, p.Field, p.Hint, p.Reason})
		if p.Status == 429 || p.Status == 503 {
			require.Equal(t, "2", answer.Header.Get("Retry-After"))
		}
	}
	require.Len(t, want, len(jig.Codes()))
}

// No error repeats a value of the request, wherever it is and whoever refuses it.
func TestErrors_RepeatNoValue(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-long"
	s := newSite(t)
	s.engine.start = func(o client.StartOptions) (client.Started, error) {
		return client.Started{}, jig.Errorf(jig.CodeInvalidInput, "%q is not an agent, nor is %s; %s… neither, with %s on %s",
			o.Agent, o.Task, jig.Cut(o.Task, 20), o.Input, strings.ReplaceAll(o.Model, "\x00", "\ufffd")).
			WithHint(jig.Templatef("is %s what you mean?", o.Agent))
	}
	long := secret + strings.Repeat("x", 100)
	for name, request := range map[string]struct{ path, body, key string }{
		"an unknown member":   {"/v1/sessions", `{"agent":"a","password":"` + secret + `"}`, ""},
		"a wrong type":        {"/v1/sessions", `{"agent":["` + secret + `"]}`, ""},
		"no JSON":             {"/v1/sessions", `{"agent":"` + secret + `"`, ""},
		"not an object":       {"/v1/sessions", `"` + secret + `"`, ""},
		"the engine":          {"/v1/sessions", `{"agent":"` + secret + `","task":"` + long + `"}`, ""},
		"a part of a value":   {"/v1/sessions", `{"agent":"plain","task":"` + long + `"}`, ""},
		"a number that fits":  {"/v1/sessions", `{"agent":"plain","input":{"n":4711471147114711}}`, ""},
		"a number":            {"/v1/sessions", `{"agent":4711471147114711}`, ""},
		"a key":               {"/v1/sessions", `{"agent":"a"}`, secret + "\x01"},
		"a query":             {"/v1/sessions?status=" + secret, "", ""},
		"an unknown query":    {"/v1/sessions?x=" + secret, "", ""},
		"a path":              {"/v1/sessions/" + secret + "/result", "", ""},
		"a slash in a path":   {"/v1/sessions/x%2F" + secret + "/result", "", ""},
		"an unknown path":     {"/v1/" + secret, "", ""},
		"an unclean path":     {"/v1//" + secret, "", ""},
		"a tool":              {"/v1/tools/" + secret + "/calls", `{}`, ""},
		"a wrong limit":       {"/v1/sessions?limit=" + secret, "", ""},
		"a decision":          {"/v1/approvals/x/decision", `{"call":"1.1","answer":"` + secret + `","digest":"d"}`, ""},
		"as it is stored":     {"/v1/sessions", `{"agent":"plain","model":"` + secret + `\u0000"}`, ""},
		"escaped in a string": {"/v1/sessions", `{"agent":"\u0068unter2-long\n` + secret + `"}`, ""},
	} {
		method := http.MethodGet
		headers := []string{}
		if request.body != "" {
			method = http.MethodPost
		}
		if request.key != "" {
			headers = []string{"Idempotency-Key", secret + " " + secret}
		}
		answer, body := s.send(method, request.path, request.body, headers...)
		p := problem(t, answer, body)
		require.GreaterOrEqual(t, p.Status, 400, name)
		require.Less(t, p.Status, 500, "%s: %s", name, body)
		require.NotContains(t, body, "hunter2", name)
		require.NotContains(t, body, "47114711", name)
	}
}

// Errors about a document name the places of its values, and keep what helps to mend it: positions, keys, suggestions and the words of jig.
func TestErrors_NamePlacesInADocument(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, c := range []struct{ document, want string }{
		{
			"kind: policy\nname: one\nrules:\n  - {name: a, when: 'true', verdict: hunter2secret}\n",
			`the document:4:38: rules[0].verdict: "{document[67:80]}" is not a verdict (use run, ask or deny)`,
		},
		{
			"kind: policy\nname: one\nrules:\n  - {name: a, when: 'true', verdict: deny, verdit: hunter2}\n",
			`the document:4:44: rules[0].verdit: unknown key "verdit" (did you mean "verdict"?)`,
		},
		{
			"kind: policy\nname: one\nrules:\n  - {name: a, when: 'hunter2 == 1', verdict: deny}\n",
			`the document:4:21: rules[0].when: undeclared reference to '{document[51:58]}' (line 1, column 1 of the expression)`,
		},
		{"kind: policy\nname: [hunter2, secret\n", `the document:3:1: not YAML: did not find expected '…'`},
	} {
		s.engine.start = func(client.StartOptions) (client.Started, error) {
			_, problems := spec.Load(spec.Unnamed, []byte(c.document))
			return client.Started{}, problems[:1].OrNil()
		}
		body, err := json.Marshal(map[string]any{"document": c.document})
		require.NoError(t, err)
		answer, content := s.send(http.MethodPost, "/v1/sessions", string(body))
		p := problem(t, answer, content)
		require.Equal(t, c.want, p.Detail)
		require.NotContains(t, content, "hunter2")
	}
}

// Most of what a request may contain is a value, and some is what everybody knows.
func TestErrors_KeepWhatTheRequestDoesNotSay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, c := range []struct {
		err  *jig.Error
		want string
	}{
		{jig.Errorf(jig.CodeConflict, "session %s has %s", "acme.probe", jig.Known("ended")), "session acme.{id} has ended"},
		{jig.Errorf(jig.CodeConflict, "%q is not %q", "hunter2", "probe"), `"…" is not "{id}"`},
		{jig.Errorf(jig.CodeInvalidInput, "%d bytes are more than %d, %s", 123456, 65536, time.Minute), "{task} bytes are more than 65536, 1m0s"},
		{jig.Errorf(jig.CodeInvalidInput, "reading: %w", jig.Errorf(jig.CodeConflict, "%s is bad", "probe").WithHint("mend it")), "reading: CONFLICT: {id} is bad; mend it"},
		{jig.Errorf(jig.CodeInvalidInput, "reading: %w", errors.New("hunter2")), "reading: …"},
		{jig.Errorf(jig.CodeInvalidInput, "%s", "one two\x0f three"), "…"},
		{&jig.Error{Code: jig.CodeConflict, Message: "hunter2 is bad"}, "…"},
		{jig.Errorf(jig.CodeConflict, "%s is %v", "writ…", jig.CallExecuting), "{agent[0:4]}… is executing"},
	} {
		s.engine.start = func(client.StartOptions) (client.Started, error) { return client.Started{}, c.err }
		answer, content := s.send(http.MethodPost, "/v1/sessions", `{"agent":"writ er","id":"probe","task":"123456"}`)
		require.Equal(t, c.want, problem(t, answer, content).Detail)
	}
}

// repeating answers every read of entities with an error that repeats parts of its filter.
type repeating struct{ documents }

func (repeating) ReadWithTool(_ context.Context, request protocol.ToolReadRequest) (json.RawMessage, error) {
	var filter struct {
		Where  []struct{ Value []any }
		Sort   []struct{ Field string }
		Fields []string
	}
	if err := json.Unmarshal(request.Input, &filter); err != nil {
		return nil, err
	}
	values := filter.Where[0].Value
	return nil, jig.Errorf(jig.CodeInvalidInput, "neither %q nor %v is an age, and there is no field %q or %q", values[0], values[1], filter.Sort[1].Field, filter.Fields[1])
}

// Values in a list and in JSON are values, also in an address.
func TestErrors_RepeatNothingOfAFilter(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, func(o *httpapi.Options) { o.Engine.Documents = repeating{} })
	answer, body := s.send(http.MethodGet, "/v1/entities?type=module&sort=age,-hunter2-sort&fields=age,hunter2-field&where="+
		url.QueryEscape(`[{"field":"age","value":["hunter2-text",4711]}]`), "")
	p := problem(t, answer, body)
	require.Equal(t, http.StatusUnprocessableEntity, p.Status)
	require.Equal(t, `neither "{where[26:38]}" nor {where[40:44]} is an age, and there is no field "{sort[5:17]}" or "{fields[4:17]}"`, p.Detail)
}

func TestRequests_AreLimited(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	answer, body := s.send(http.MethodPost, "/v1/sessions", `{"agent":"`+strings.Repeat("a", httpapi.MaxBody)+`"}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, problem(t, answer, body).Status)
	answer, body = s.send(http.MethodPost, "/v1/sessions", "agent=a", "Content-Type", "application/x-www-form-urlencoded")
	require.Equal(t, http.StatusUnsupportedMediaType, problem(t, answer, body).Status)
	answer, body = s.send(http.MethodDelete, "/v1/sessions", "")
	require.Equal(t, http.StatusMethodNotAllowed, problem(t, answer, body).Status)
	require.Equal(t, []string{"GET", "POST"}, answer.Header.Values("Allow"))
	answer, body = s.send(http.MethodGet, "/v2/sessions", "")
	require.Equal(t, http.StatusNotFound, problem(t, answer, body).Status)
	for _, header := range []string{"X-Content-Type-Options", "Content-Security-Policy", "Cache-Control"} {
		require.NotEmpty(t, answer.Header.Get(header))
	}
}

func TestHost_IsChecked(t *testing.T) {
	t.Parallel()
	s := newSite(t, "jig.example.com")
	answer, body := s.send(http.MethodGet, "/v1/me", "")
	require.Equal(t, http.StatusMisdirectedRequest, problem(t, answer, body).Status)
	answer, _ = s.send(http.MethodGet, "/healthz", "")
	require.Equal(t, http.StatusOK, answer.StatusCode, "probes come to any address")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/me", nil)
	require.NoError(t, err)
	request.Host = "Jig.Example.com"
	request.Header.Set("Authorization", "Bearer "+s.key)
	good, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, good.Body.Close())
	require.Equal(t, http.StatusOK, good.StatusCode)
}

func TestStart_ActsForTheKey(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var got client.StartOptions
	s.engine.start = func(o client.StartOptions) (client.Started, error) {
		got = o
		return client.Started{SessionID: "acme.one", ClientID: "one"}, nil
	}
	answer, body := s.send(http.MethodPost, "/v1/sessions", `{"id":"one","agent":"a","input":{"n":1},"task":"t","model":"script/a"}`)
	require.Equal(t, http.StatusCreated, answer.StatusCode, body)
	require.Equal(t, "/v1/sessions/acme.one", answer.Header.Get("Location"))
	require.JSONEq(t, `{"session_id":"acme.one","client_id":"one","status":"working"}`, body)
	require.Equal(t, client.StartOptions{
		Tenant: "acme", ID: "one", Agent: "a", Task: "t", Input: json.RawMessage(`{"n":1}`), Model: "script/a", Source: jig.SourceAPI, Check: true,
		Principal: jig.Principal{ID: "ana", Claimed: true},
	}, got)
	for _, member := range []string{"tenant", "principal", "by", "source"} {
		answer, body := s.send(http.MethodPost, "/v1/sessions", `{"agent":"a","`+member+`":"somebody"}`)
		require.Equal(t, http.StatusUnprocessableEntity, answer.StatusCode, body)
	}
}

func TestStart_KnowsRepeatedRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.log.status = jig.StatusCompleted
	s.engine.start = func(o client.StartOptions) (client.Started, error) {
		if o.Agent == "other" {
			return client.Started{}, jig.Errorf(jig.CodeConflict, "the id was used").WithField("id")
		}
		return client.Started{SessionID: "known", Existing: true}, nil
	}
	answer, body := s.send(http.MethodPost, "/v1/sessions", `{"agent":"a"}`, "Idempotency-Key", "k1")
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	require.Equal(t, "true", answer.Header.Get("Idempotent-Replayed"))
	require.Contains(t, body, `"status":"completed"`)
	answer, body = s.send(http.MethodPost, "/v1/sessions", `{"agent":"other"}`, "Idempotency-Key", "k1")
	require.Equal(t, "Idempotency-Key", problem(t, answer, body).Field)
	require.Equal(t, http.StatusUnprocessableEntity, answer.StatusCode)
	answer, _ = s.send(http.MethodPost, "/v1/sessions", `{"agent":"other","id":"one"}`)
	require.Equal(t, http.StatusConflict, answer.StatusCode)
}

func TestDecide_ByTheKeysPrincipal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	answer, body := s.send(http.MethodPost, "/v1/approvals/known/decision", `{"call":"1.1/page","answer":"deny","digest":"d","reason":"no"}`)
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	require.JSONEq(t, `{"call":"1.1/page","outcome":"accepted"}`, body)
	require.Equal(t, []jig.Decision{{Call: "1.1/page", By: "ana", Answer: jig.AnswerDeny, Digest: "d", Reason: "no"}}, s.engine.decided)
	for _, bad := range []string{`{"call":"1.1","answer":"approve"}`, `{"call":"1.1","answer":"approve","digest":""}`, `{"call":"1.1","answer":"delegate","digest":"d"}`, `{"call":"1.1","answer":"approve","digest":"d","by":"ben"}`} {
		answer, body := s.send(http.MethodPost, "/v1/approvals/known/decision", bad)
		require.Equal(t, http.StatusUnprocessableEntity, answer.StatusCode, body)
	}
	s.key = s.keys.add("acme", credential.DefaultScopes()...)
	answer, body = s.send(http.MethodPost, "/v1/approvals/known/decision", `{"call":"1.1","answer":"approve","digest":"d"}`)
	require.Equal(t, "scope", problem(t, answer, body).Reason)
	require.Len(t, s.engine.decided, 1)
}

// A request that waits ends with 202 when its time is over, when its token expires and when the server stops. When its key is revoked, it gets nothing more.
func TestResult_WaitsAsLongAsItMay(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *site){
		"time is over": func(*site) {}, "the token expires": func(*site) {}, "the server stops": func(s *site) { s.api.Drain() }, "the key is revoked": func(s *site) { s.keys.removeAll() },
	} {
		s := newSite(t)
		s.engine.result = func(ctx context.Context) error {
			end(s)
			<-ctx.Done()
			return ctx.Err()
		}
		if name == "the token expires" {
			s.gives("reader", "finance")
			s.signIn("248", time.Second, "finance-team")
		}
		wait := map[bool]string{true: "1", false: "60"}[name == "time is over"]
		answer, body := s.send(http.MethodGet, "/v1/sessions/known/result?wait="+wait, "")
		if name == "the key is revoked" {
			require.Equal(t, "unauthenticated", problem(t, answer, body).Reason)
			require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
			require.NotEmpty(t, answer.Header.Get("WWW-Authenticate"))
			continue
		}
		require.Equal(t, http.StatusAccepted, answer.StatusCode, "%s: %s", name, body)
	}
}

// Pages of events that wait are not answered either when the key is revoked.
func TestEvents_WaitAsLongAsTheKeyCounts(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/v1/events?wait=30&after=1", "/v1/sessions/known/events?wait=20&after=1"} {
		s := newSite(t)
		s.log.add(jig.EventSessionStarted)
		s.log.asked = s.keys.removeAll
		answer, body := s.send(http.MethodGet, path, "")
		require.Equal(t, "unauthenticated", problem(t, answer, body).Reason, path)
	}
}

func TestProbes_Answer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json"} {
		answer, body := s.send(http.MethodGet, path, "", "Authorization", "")
		require.Equal(t, http.StatusOK, answer.StatusCode, body)
	}
	answer, body := s.send(http.MethodGet, "/llms.txt", "", "Authorization", "")
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	require.Contains(t, body, "docs/api.md")
	s.api.Drain()
	answer, body = s.send(http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, problem(t, answer, body).Status)
	answer, _ = s.send(http.MethodGet, "/healthz", "")
	require.Equal(t, http.StatusOK, answer.StatusCode)
}

// However many ask, the database and Temporal are asked once a second.
func TestProbes_AskOnceASecond(t *testing.T) {
	t.Parallel()
	var asked, seconds atomic.Int64
	s := newSiteWith(t, func(o *httpapi.Options) {
		o.Now = func() time.Time { return stopped().Add(time.Duration(seconds.Load()) * time.Second) }
		o.Ready = func(context.Context) error {
			if asked.Add(1) == 2 {
				return jig.Errorf(jig.CodeUnavailable, "the database does not answer")
			}
			return nil
		}
	})
	for second, status := range []int{http.StatusOK, http.StatusServiceUnavailable, http.StatusOK} {
		seconds.Store(int64(second))
		var all sync.WaitGroup
		answers := make([]int, 20)
		for i := range answers {
			all.Go(func() {
				w := httptest.NewRecorder()
				s.api.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
				answers[i] = w.Code
			})
		}
		all.Wait()
		require.Equal(t, slices.Repeat([]int{status}, len(answers)), answers)
		require.EqualValues(t, second+1, asked.Load())
	}
}

func (e *engine) Artifact(_ context.Context, _, id string) ([]byte, error) {
	if id != "art_1" {
		return nil, jig.Errorf(jig.CodeNotFound, "there is no artifact %s", id)
	}
	return []byte("<script>alert(1)</script>"), nil
}

// No browser shows an artifact as a page of the server, whatever it contains.
func TestArtifact_IsADownload(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	answer, body := s.send(http.MethodGet, "/v1/artifacts/art_1", "")
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Equal(t, "<script>alert(1)</script>", body)
	require.Equal(t, "application/octet-stream", answer.Header.Get("Content-Type"))
	require.Equal(t, `attachment; filename="art_1"`, answer.Header.Get("Content-Disposition"))
	require.Equal(t, "nosniff", answer.Header.Get("X-Content-Type-Options"))
	answer, body = s.send(http.MethodGet, "/v1/artifacts/art_2", "")
	require.Equal(t, http.StatusNotFound, problem(t, answer, body).Status)
}

// Every operation is declared with its scope, and those that change something with where the change is recorded.
func TestOperations_AreDeclaredInFull(t *testing.T) {
	t.Parallel()
	document, err := httpapi.Document()
	require.NoError(t, err)
	var described struct {
		Paths map[string]map[string]struct {
			ID     string `json:"operationId"` //nolint:tagliatelle // OpenAPI's own name
			Scope  string `json:"x-scope"`     //nolint:tagliatelle // names of extensions begin with x-
			Record string `json:"x-record"`    //nolint:tagliatelle // names of extensions begin with x-
			// Security is empty if everybody may use the operation.
			Security []any
		}
	}
	require.NoError(t, json.Unmarshal(document, &described))
	reads := []string{"review-approvals", "backtest-policy", "check-policy", "simulate-call", "reload-catalog"} // their questions are too long for an address
	for path, methods := range described.Paths {
		for method, op := range methods {
			open := slices.Contains([]string{"begin-login", "finish-login", "logout", "get-protected-resource"}, op.ID)
			require.Equal(t, open, len(op.Security) == 0, op.ID)
			if op.ID == "get-me" || open {
				require.Empty(t, op.Scope, "everybody may ask who they are, and log in and out")
				continue
			}
			require.Contains(t, credential.Scopes(), op.Scope, op.ID)
			read := method == "get" || slices.Contains(reads, op.ID)
			require.Equal(t, read, op.Record == "", "%s %s", method, path)
			if op.ID == "list-credential-events" {
				require.Equal(t, credential.ScopeManage, op.Scope, "not everybody may read who did what from where")
				continue
			}
			require.Equal(t, read, op.Scope == credential.ScopeRead, "%s changes something, or does not", op.ID)
		}
	}
}

// Values are hidden whatever bytes they consist of. Hiding one that is not UTF-8 took forever, and all memory.
func TestErrors_RepeatNoBrokenText(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, value := range []string{"%ff", "%80", "%e2%80", "%f0%9f%99", "%ff%ff%ff%ff%ff%ff%ff%ff%ff%ff%ff%ff%ff%e2%80%a6"} {
		answer, body := s.send(http.MethodGet, "/v1/sessions?status="+strings.Repeat(value, 40), "")
		p := problem(t, answer, body)
		require.Equal(t, http.StatusUnprocessableEntity, p.Status)
		require.Equal(t, "the request does not have the form that the operation needs", p.Detail)
		require.NotContains(t, body, "\ufffd")
	}
	answer, body := s.send(http.MethodGet, "/v1/sessions?status="+strings.Repeat("%ff", 40), "", "Authorization", "Bearer none")
	require.Equal(t, http.StatusUnauthorized, problem(t, answer, body).Status)
}

// A request with very many mistakes gets an answer of ordinary length.
func TestErrors_AreFew(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var b strings.Builder
	b.WriteString(`{"agent":"a"`)
	for i := range 20_000 {
		fmt.Fprintf(&b, `,"unknown%d":"value-%d"`, i, i)
	}
	answer, body := s.send(http.MethodPost, "/v1/sessions", b.String()+"}")
	p := problem(t, answer, body)
	require.Equal(t, http.StatusUnprocessableEntity, p.Status)
	require.Len(t, p.Errors, 50)
	require.NotContains(t, body, "value-")
}
