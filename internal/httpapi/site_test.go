package httpapi_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/identity/openid"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
)

// sessions has another name than its interface, which has a method of that name.
type sessions = httpapi.Sessions

// engine is an engine whose answers the test sets. Operations that the test does not expect panic.
type engine struct {
	sessions
	httpapi.Calls
	httpapi.Reviews

	start   func(o client.StartOptions) (client.Started, error)
	decided []jig.Decision
	result  func(ctx context.Context) error
	status  jig.Status
	// listed are the tenants whose approvals were listed, from is the last cursor of such a list, and next the one of its answer.
	listed     []string
	from, next string
	// log answers requests for pages of events.
	log *log
	// judge takes decisions; nil if the test expects only some.
	judge *judge
}

func (e *engine) Start(_ context.Context, o client.StartOptions) (client.Started, error) {
	return e.start(o)
}

func (e *engine) Reply(ctx context.Context, tenant, id string, reply jig.Reply) (protocol.DecideResult, error) {
	return e.judge.Reply(ctx, tenant, id, reply)
}

func (e *engine) Reconcile(ctx context.Context, tenant, id string, word jig.Reconciliation) (protocol.DecideResult, error) {
	return e.judge.Reconcile(ctx, tenant, id, word)
}

func (e *engine) Decide(ctx context.Context, tenant, id string, list []jig.Decision) (protocol.DecideResult, error) {
	if e.judge != nil {
		return e.judge.Decide(ctx, tenant, id, list)
	}
	e.decided = append(e.decided, list...)
	return protocol.DecideResult{SessionID: id, Decisions: []jig.Ruled{{Call: list[0].Call, Outcome: jig.DecisionAccepted}}}, nil
}

func (e *engine) Pending(_ context.Context, tenant string, _ jig.PendingFilter, cursor string, _ int) (protocol.ApprovalList, error) {
	e.listed, e.from = append(e.listed, tenant), cursor
	return protocol.ApprovalList{Next: e.next}, nil
}

func (e *engine) Result(ctx context.Context, _, _ string) (protocol.PassResult, error) {
	return protocol.PassResult{}, e.result(ctx)
}

func (e *engine) SessionResult(_ context.Context, tenant, id string) (protocol.SessionResult, error) {
	if id != "known" {
		return protocol.SessionResult{}, jig.Errorf(jig.CodeNotFound, "there is no session %s of %s", id, tenant).WithField("session")
	}
	return protocol.SessionResult{SessionID: id, Status: e.status, Calls: protocol.Counts(nil)}, nil
}

// site is an API on a real connection.
type site struct {
	t      *testing.T
	api    *httpapi.API
	engine *engine
	keys   *credentials
	log    *log
	// tenants are the settings of all tenants, and issued what access tokens say.
	tenants *settings
	issued  *issued
	// record holds the credential events.
	record *happened
	url    string
	key    string
}

// settings are the settings of every tenant.
type settings struct {
	mu  sync.Mutex
	all tenancy.Settings
}

func (s *settings) Settings(context.Context, string) (tenancy.Settings, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all, nil
}

func (s *settings) change(do func(all *tenancy.Settings)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(&s.all)
}

// issued are access tokens with what they say.
type issued map[string]openid.Identity

func (i issued) AccessToken(_ context.Context, raw string) (openid.Identity, error) {
	who, ok := i[raw]
	if !ok {
		return who, jig.Errorf(jig.CodeNotPermitted, "no such token")
	}
	return who, nil
}

func newSite(t *testing.T, hosts ...string) *site {
	t.Helper()
	return newSiteWith(t, func(o *httpapi.Options) { o.Hosts = hosts })
}

func newSiteWith(t *testing.T, change func(o *httpapi.Options)) *site {
	t.Helper()
	s := &site{
		t: t, engine: &engine{status: jig.StatusWorking}, keys: newCredentials(), log: newLog(), tenants: &settings{}, issued: &issued{},
		record: &happened{ended: map[string]endedCredential{}},
	}
	s.engine.log = s.log
	options := httpapi.Options{
		Engine: httpapi.Engine{Sessions: s.engine, Calls: s.engine, Reviews: s.engine}, Credentials: s.keys, Providers: s.issued, Tenants: s.tenants, Log: s.log,
		CredentialLog: s.record,
		Ready:         func(context.Context) error { return nil }, Logger: slog.New(slog.DiscardHandler),
	}
	change(&options)
	options.Installation = "ins_1"
	s.api = httpapi.New(options)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.api.Run(ctx) })
	server := httptest.NewServer(s.api.Handler())
	t.Cleanup(func() {
		cancel()
		running.Wait()
		server.CloseClientConnections()
		server.Close()
	})
	s.url, s.key = server.URL, s.keys.add("acme", credential.Scopes()...)
	return s
}

// reply is an answer without its body.
type reply struct {
	StatusCode int
	Header     http.Header
}

// open makes a request and returns the answer, whose body is still to be read.
func (s *site) open(method, path, body string, headers ...string) (reply, io.Reader) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second) // no answer and no stream lasts as long
	s.t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	if s.key != "" {
		request.Header.Set("Authorization", "Bearer "+s.key)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := (&http.Client{Timeout: 90 * time.Second}).Do(request) // an answer that never ends fails the test
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	return reply{answer.StatusCode, answer.Header}, answer.Body
}

func (s *site) send(method, path, body string, headers ...string) (reply, string) {
	s.t.Helper()
	answer, content := s.open(method, path, body, headers...)
	text, err := io.ReadAll(content)
	require.NoError(s.t, err)
	return answer, string(text)
}

// described is the part of a problem that the tests look at.
type described struct {
	Type, Title, Code, Detail, Reason, Field, Hint string
	Status                                         int
	RequestID                                      string `json:"request_id"`
	Errors                                         []struct{ Location, Message string }
}

func problem(t *testing.T, answer reply, body string) described {
	t.Helper()
	require.Equal(t, "application/problem+json", answer.Header.Get("Content-Type"), body)
	var p described
	require.NoError(t, json.Unmarshal([]byte(body), &p), body)
	require.Equal(t, answer.StatusCode, p.Status)
	require.Equal(t, answer.Header.Get("X-Request-Id"), p.RequestID)
	require.Equal(t, http.StatusText(p.Status), p.Title)
	return p
}
