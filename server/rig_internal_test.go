package server

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	workflowservicepb "go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/metrics"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
	"github.com/jig-run/jig/spec"
)

// rig is a server on the real store, as the server's role, and on a stand-in for Temporal and the workers.
type rig struct {
	*Server
	// worker is the same database as the role of workers.
	worker   *store.DB
	temporal *standIn
	wire     *wire
}

func newRig(t *testing.T, change ...func(*Settings)) *rig {
	t.Helper()
	storetest.Server(t) // so that the role has its rights
	r := &rig{worker: storetest.New(t), wire: tap(t, storetest.ServerURL(t))}
	r.temporal = &standIn{workflows: map[string]*workflowpb.WorkflowExecutionInfo{}, workers: newWorkers(t, r.worker), schedules: newSchedules()}
	settings := Settings{DatabaseURL: r.wire.url, StopTimeout: 10 * time.Second}
	for _, c := range change {
		c(&settings)
	}
	r.Server = &Server{settings: settings, logger: slog.New(slog.DiscardHandler), broken: make(chan error, 1), end: func() {}, unmeasured: func() {}, temporal: r.temporal}
	var err error
	r.store, err = openStore(t.Context(), settings, r.logger)
	require.NoError(t, err)
	r.metrics = metrics.NewServer(func() metrics.Pool { return metrics.Pool(r.store.PoolStats()) })
	r.listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, r.serve(t.Context()))
	t.Cleanup(func() { r.Stop(t.Context()) })
	return r
}

// key makes an API key. A zero lifetime means that it does not expire.
func (r *rig) key(t *testing.T, tenant string, lifetime time.Duration, scopes ...string) credential.Credential {
	t.Helper()
	text, id, hash := credential.KeyForm.New()
	k := credential.Credential{Tenant: tenant, ID: id, Kind: identity.KindAPIKey, Principal: "ana", Scopes: scopes}
	if lifetime != 0 {
		at := time.Now().Add(lifetime)
		k.ExpiresAt = &at
	}
	created, err := r.store.CreateCredential(t.Context(), credential.New{Credential: k, Hash: hash})
	require.NoError(t, err)
	created.Name = text // the text is needed, and nobody looks at the name
	return created
}

// waiting makes a session with a call that waits for approval, and returns the session's id.
func (r *rig) waiting(t *testing.T, tenant string) string {
	t.Helper()
	session := storetest.Session(t, r.worker, tenant)
	_, err := r.worker.BeginPass(t.Context(), tenant, session.ID, 1)
	require.NoError(t, err)
	call := jig.Call{
		Tenant: tenant, SessionID: session.ID, ID: jig.CallID(1, 1), Pass: 1, Ordinal: 1, Tool: "file.write", Version: "v1", Write: true,
		Input: []byte(`{"path":"a"}`), Digest: "d1", PolicyVersion: "p1", Verdict: jig.VerdictAsk, Status: jig.CallWaiting,
	}
	require.NoError(t, r.worker.Admit(t.Context(), ledger.Admission{Tenant: tenant, SessionID: session.ID, Pass: 1, Calls: []jig.Call{call}, Approvals: []jig.Pending{{
		Kind: jig.PendingApproval, Call: call.ID, Tool: call.Tool, Input: call.Input, Summary: "writes a", Digest: call.Digest, RequestedBy: "ana", RequestedAt: time.Now().UTC(),
	}}}))
	r.temporal.run(session.ID, tenant, protocol.PassWorkflow, nil)
	return session.ID
}

// furnish makes one of everything that operations name by an id, and returns the ids by what they name.
func (r *rig) furnish(t *testing.T, tenant string) map[string]string {
	t.Helper()
	ids := map[string]string{
		"session": r.waiting(t, tenant), "agent": "doc-" + strings.ToLower(rand.Text()), "version": "v-" + tenant, "grant": "grt_" + tenant,
		"schedule": "nightly-" + tenant, "workspace": "ws-" + tenant, "person": "ben-" + tenant,
	}
	require.NoError(t, r.worker.PutDocument(t.Context(), tenant, "agent", ids["agent"], ids["version"], []byte("---\nname: "+ids["agent"]+"\ndescription: Does nothing.\nmodel: anthropic/silent\n---\nDo nothing.\n")))
	r.document(t, tenant)
	var err error
	ids["artifact"], err = r.worker.PutArtifact(t.Context(), tenant, ids["session"], "text/plain", []byte("a large value"))
	require.NoError(t, err)
	require.NoError(t, r.worker.PutGrant(t.Context(), jig.Grant{
		Tenant: tenant, ID: ids["grant"], Tool: "file.write", When: "true", MaxUses: 1_000, ExpiresAt: time.Now().Add(time.Hour).UTC(), By: []string{ids["person"]},
		SessionID: ids["session"], Call: "1.1", CreatedAt: time.Now().UTC(),
	}))
	ids["tool"] = "own.act_" + strings.ToLower(rand.Text())[:12]
	made, problems := spec.Load("act.yaml", []byte("kind: composition\nname: "+ids["tool"]+"\nsteps: [{id: a, tool: todo.write, input: {items: []}}]\n"))
	require.NoError(t, problems.OrNil())
	require.NoError(t, r.worker.PutDocument(t.Context(), tenant, "composition", made.Name, made.Version, made.Body))
	ids["entity_type"] = "note_" + strings.ToLower(rand.Text())[:12]
	kind, problems := spec.Load("note.yaml", []byte("kind: entity_type\nname: "+ids["entity_type"]+"\nfields: [{name: n, type: number, task: n}]\ntasks: [{id: n, compute: \"1\"}]\n"))
	require.NoError(t, problems.OrNil())
	require.NoError(t, r.worker.PutDocument(t.Context(), tenant, string(spec.KindEntityType), kind.Name, kind.Version, kind.Body))
	for range 2 { // so that the list of entities has two pages
		created, _, err := r.worker.CreateEntity(t.Context(), entity.NewEntity{Entity: entity.Entity{Tenant: tenant, Type: kind.Name, TypeVersion: kind.Version}, Workspaces: []string{ids["workspace"]}})
		require.NoError(t, err)
		ids["entity"] = created.ID
	}
	text, err := r.worker.PutText(t.Context(), entity.Text{Tenant: tenant, EntityID: ids["entity"], Body: "A text of " + tenant})
	require.NoError(t, err)
	ids["text"] = text.ID
	ids["bundle"] = "bnd-" + strings.ToLower(rand.Text())
	r.install(t, tenant, ids["bundle"], strings.ToLower(rand.Text()))
	r.schedule(t, tenant, ids["schedule"])
	ids["key"] = r.key(t, tenant, 0, credential.ScopeRead).ID
	var hash []byte
	_, ids["embed_token"], hash = credential.EmbedForm.New()
	_, err = r.store.CreateCredential(t.Context(), credential.New{Credential: credential.Credential{
		Tenant: tenant, ID: ids["embed_token"], Kind: identity.KindEmbed, Session: ids["session"], Origin: "https://shop.example.com", Principal: "ana",
		Scopes: credential.EmbedScopes(""), MadeWith: identity.CredentialRef{Kind: identity.KindAccessToken, ID: "ana"},
	}, Hash: hash})
	require.NoError(t, err)
	return ids
}

// document gives a tenant a document of every kind, apart from the manifests of bundles.
func (r *rig) document(t *testing.T, tenant string) {
	t.Helper()
	name := "of-" + strings.ToLower(rand.Text())
	tool := "act" + strings.ToLower(rand.Text()[:12])
	texts := map[spec.Kind]string{
		spec.KindAgent:       "---\nname: " + name + "\nmodel: anthropic/silent\n---\nDo nothing.\n",
		spec.KindComposition: "name: " + tool + ".act\nsteps: [{set: {a: 1}}]\n",
		spec.KindPrompt:      "name: " + tool + ".ask\nmodel: openai/x\nprompt: How?\n",
		spec.KindTask:        "name: " + tool + ".count\ntask: count\nentity: ${input.id}\n",
		spec.KindThinTool:    "name: " + tool + ".note\ncreates: {type: note}\n",
		spec.KindSkill:       `{"kind": "skill", "name": "` + name + `", "description": "Does nothing.", "instructions": "Do nothing."}`,
		spec.KindPolicy:      "name: " + name + "\nrules: [{name: none, when: 'false', verdict: deny}]\n",
		spec.KindTenant:      "name: " + tenant + "\npeople: [{id: ana, permissions: ['*']}]\n",
		spec.KindBudget:      "name: " + name + "\nlimits: [{name: all, level: tenant, tokens: 1000000}]\n",
		spec.KindRateLimit:   "name: " + name + "\nlimits: [{name: all, tools: [todo.write], concurrency: 1000}]\n",
		spec.KindEntityType:  "name: " + tool + "\nfields: [{name: n, type: number}]\n",
	}
	for _, kind := range spec.Kinds() {
		if kind.IsManifest() {
			continue
		}
		text := texts[kind]
		require.NotEmpty(t, text, "%s: give the tenants one", kind)
		if text[0] != '-' && text[0] != '{' {
			text = "kind: " + string(kind) + "\n" + text
		}
		made, problems := spec.LoadStored(kind.Stored(), name, []byte(text))
		require.NoError(t, problems.OrNil(), kind)
		require.NoError(t, r.worker.PutDocument(t.Context(), tenant, kind.Stored(), made.Name, made.Version, made.Body))
	}
}

// install installs a bundle of one agent.
func (r *rig) install(t *testing.T, tenant, name, agent string) {
	t.Helper()
	of := bundle.DocumentVersion{Kind: "agent", Name: agent, Version: "v1"}
	_, err := r.worker.InstallBundle(t.Context(), jig.Invocation{Tenant: tenant, SessionID: "ses_bundle", CallID: "1.1", Principal: jig.Principal{ID: "ana"}}, bundle.Install{
		Manifest: bundle.Manifest{Name: name, Version: "1.0.0"}, Hash: "h1",
		Documents: []bundle.StoredDocument{{DocumentVersion: of, Body: []byte("of the bundle")}},
	})
	require.NoError(t, err)
}

// schedule makes a schedule, unless it exists.
func (r *rig) schedule(t *testing.T, tenant, name string) {
	t.Helper()
	_, err := client.New(r.temporal, client.Options{}).CreateSchedule(t.Context(), client.ScheduleOptions{
		Tenant: tenant, Name: name, Call: &client.CallInput{Tool: "todo.write", Principal: jig.Principal{ID: "ana"}}, When: client.Timetable{Every: client.Span(24 * time.Hour)},
	})
	if jig.CodeOf(err) != jig.CodeConflict {
		require.NoError(t, err)
	}
}

// standIn is a Temporal client that knows workflows, which agree to everything at once and do nothing, schedules, and workers that answer.
type standIn struct {
	sdk.Client

	workers   *workers
	schedules *schedules
	mu        sync.Mutex
	workflows map[string]*workflowpb.WorkflowExecutionInfo
	requests  atomic.Int64
}

// run adds a running workflow.
func (s *standIn) run(id, tenant, kind string, memo map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	encode := func(v any) *commonpb.Payload {
		p, _ := converter.GetDefaultDataConverter().ToPayload(v) //nolint:errcheck // texts can be encoded
		return p
	}
	fields := map[string]*commonpb.Payload{}
	for name, v := range memo {
		fields[name] = encode(v)
	}
	s.workflows[id] = &workflowpb.WorkflowExecutionInfo{
		Type: &commonpb.WorkflowType{Name: kind}, Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, Memo: &commonpb.Memo{Fields: fields},
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{protocol.AttrTenant: encode(tenant)}},
	}
}

func (s *standIn) workflow(id string) (*workflowpb.WorkflowExecutionInfo, error) {
	s.requests.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.workflows[id]; found != nil {
		return found, nil
	}
	return nil, serviceerror.NewNotFound("workflow not found for ID: " + id)
}

func (s *standIn) ExecuteWorkflow(_ context.Context, o sdk.StartWorkflowOptions, workflow any, args ...any) (sdk.WorkflowRun, error) {
	if found, _ := s.workflow(o.ID); found != nil { //nolint:errcheck // an unknown workflow can be started
		return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("exists", "", "")
	}
	kind, ok := workflow.(string)
	if !ok {
		return nil, serviceerror.NewInvalidArgument("the workflow has no name")
	}
	tenant := reflect.ValueOf(args[0]).FieldByName("Tenant").String()
	s.run(o.ID, tenant, kind, o.Memo)
	return nil, nil // nobody uses the run
}

func (s *standIn) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservicepb.DescribeWorkflowExecutionResponse, error) {
	found, err := s.workflow(id)
	if err != nil {
		return nil, err
	}
	return &workflowservicepb.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: found}, nil
}

func (s *standIn) GetWorkflow(context.Context, string, string) sdk.WorkflowRun { return ran{} }

func (s *standIn) SignalWithStartWorkflow(context.Context, string, string, any, sdk.StartWorkflowOptions, any, ...any) (sdk.WorkflowRun, error) {
	return ran{}, nil
}

func (s *standIn) SignalWorkflow(_ context.Context, id, _, _ string, _ any) error {
	_, err := s.workflow(id)
	return err
}

func (s *standIn) CancelWorkflowWithOptions(_ context.Context, o sdk.CancelWorkflowOptions) error {
	_, err := s.workflow(o.WorkflowID)
	return err
}

func (s *standIn) UpdateWorkflow(_ context.Context, o sdk.UpdateWorkflowOptions) (sdk.WorkflowUpdateHandle, error) {
	if _, err := s.workflow(o.WorkflowID); err != nil {
		return nil, err
	}
	return answered{o}, nil
}

func (s *standIn) ExecuteActivity(_ context.Context, _ sdk.StartActivityOptions, activity any, args ...any) (sdk.ActivityHandle, error) {
	s.requests.Add(1)
	name, ok := activity.(string)
	if !ok {
		return nil, serviceerror.NewInvalidArgument("the activity has no name")
	}
	return s.workers.do(name, args), nil
}

func (s *standIn) ScheduleClient() sdk.ScheduleClient {
	s.requests.Add(1)
	return s.schedules
}

func (s *standIn) CheckHealth(context.Context, *sdk.CheckHealthRequest) (*sdk.CheckHealthResponse, error) {
	return &sdk.CheckHealthResponse{}, nil
}

func (s *standIn) Close() {}

// ran is a workflow that has ended without a result.
type ran struct{ sdk.WorkflowRun }

func (ran) Get(context.Context, any) error { return nil }

// answered is an update that every decision in it passed.
type answered struct{ o sdk.UpdateWorkflowOptions }

func (a answered) WorkflowID() string                   { return a.o.WorkflowID }
func (a answered) RunID() string                        { return "" }
func (a answered) UpdateID() string                     { return a.o.UpdateID }
func (a answered) Get(_ context.Context, ptr any) error { return copied(a.answer(), ptr) }

func (a answered) answer() any {
	if a.o.UpdateName == protocol.UpdateWait {
		return protocol.CallResult{SessionID: a.o.WorkflowID, Call: jig.CallID(1, 1), Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true}}
	}
	result := protocol.DecideResult{SessionID: a.o.WorkflowID, Decisions: []jig.Ruled{}}
	accept := func(call string) {
		result.Decisions = append(result.Decisions, jig.Ruled{Call: call, Outcome: jig.DecisionAccepted})
	}
	for _, arg := range a.o.Args {
		switch said := arg.(type) {
		case protocol.Decisions:
			for _, d := range said.Decisions {
				accept(d.Call)
			}
		case protocol.Answered:
			accept(said.Call)
		case protocol.Reconciled:
			accept(said.Call)
		}
	}
	return result
}

func copied(from, to any) error {
	if to == nil {
		return nil
	}
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// wire passes connections on to PostgreSQL and counts the statements that are executed.
type wire struct {
	url      string
	executed atomic.Int64
}

// tap returns a wire to the database of a URL.
func tap(t *testing.T, databaseURL string) *wire {
	t.Helper()
	u, err := url.Parse(databaseURL)
	require.NoError(t, err)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	to := u.Host
	u.Host = listener.Addr().String()
	query := u.Query()
	query.Set("sslmode", "disable")
	u.RawQuery = query.Encode()
	w := &wire{url: u.String()}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go w.pass(conn, to)
		}
	}()
	return w
}

// pass copies both directions of a connection until one of them ends.
func (w *wire) pass(front net.Conn, to string) {
	defer func() { _ = front.Close() }()
	back, err := new(net.Dialer).Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = back.Close() }()
	go func() {
		_, _ = io.Copy(front, back) //nolint:errcheck // the connection ends then
		_ = front.Close()
	}()
	in, out := bufio.NewReader(front), bufio.NewWriter(back)
	for kind := 0; ; kind = 1 { // the first message has no type
		header := make([]byte, kind+4)
		if _, err := io.ReadFull(in, header); err != nil {
			return
		}
		if kind == 1 && (header[0] == 'E' || header[0] == 'Q') {
			w.executed.Add(1)
		}
		_, _ = out.Write(header) //nolint:errcheck // flushing returns the error
		if _, err := io.CopyN(out, in, int64(binary.BigEndian.Uint32(header[kind:]))-4); err != nil {
			return
		}
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
	}
}
