package e2e_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
)

const proofPage = "docs/proof.md"

// proofEnv is an environment with the keys of docs/proof.md, whose tenant demands that its server vouches for starts.
type proofEnv struct {
	*testEnv
	tenant string
	// key is the id of the first server's key.
	key string
	db  *store.DB
	// blocks are the commands of the page that have not run yet.
	blocks []string
}

// run runs the next commands of the page, after some replacements, and returns what they print.
func (v *proofEnv) run(old ...string) commandResult {
	v.t.Helper()
	require.NotEmpty(v.t, v.blocks)
	script := strings.NewReplacer(append(old, "--tenant acme", "--tenant "+v.tenant)...).Replace(v.blocks[0])
	v.blocks = v.blocks[1:]
	return v.command("sh", "-ec", script)
}

func newProofEnv(t *testing.T) *proofEnv {
	t.Helper()
	v := &proofEnv{testEnv: newTestEnv(t, "PATH="+filepath.Dir(shared.cli.path(t))+":/usr/local/bin:/usr/bin:/bin")}
	v.tenant = v.name + "-proof"
	var err error
	v.db, err = store.Open(t.Context(), shared.stack.DatabaseURL(), store.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(v.db.Close)
	for _, f := range codeBlocks(t, proofPage) {
		if f.language == "sh" {
			v.blocks = append(v.blocks, f.body)
		}
	}
	root := v.run()
	require.Zero(t, root.code, root.err)
	require.Regexp(t, `^JIG_ROOT_KEY=[A-Za-z0-9+/]{43}=\n$`, root.out)
	key := v.run()
	require.Zero(t, key.code, key.err)
	require.Regexp(t, `^srv_[0-9a-f]{32}, valid until `, key.out)
	v.key, _, _ = strings.Cut(key.out, ",")
	v.env = append(v.env, strings.TrimSpace(root.out))
	v.start()
	require.NoError(t, v.answers())
	v.demand(v.tenant, "approvals: {proof: vouched}\n")
	return v
}

// demand registers a tenant's document that demands that a server vouches for starts, with more in it, and waits until it takes effect.
func (v *proofEnv) demand(tenant, more string) {
	v.t.Helper()
	v.registerIn(tenant, map[string]string{"tenant.yaml": "kind: tenant\nname: " + tenant + "\nstarts: {proof: vouched}\n" + more})
	require.True(v.t, eventually(v.t.Context(), patience, func() bool {
		_, err := v.Catalog(v.t.Context(), tenant)
		return jig.CodeOf(err) == jig.CodeNotPermitted
	}))
}

// serveWith starts a server with a key.
func (v *proofEnv) serveWith(file string) *serverProcess {
	v.t.Helper()
	env := v.env
	v.env = append(append([]string{}, env...), "JIG_SERVER_KEY="+filepath.Join(v.dir, file))
	defer func() { v.env = env }()
	return v.serve()
}

// begins starts a session through a server and returns its id.
func (c apiClient) begins(id string) string {
	c.t.Helper()
	answer, body := c.send(http.MethodPost, "/v1/sessions", map[string]any{"id": id, "document": writer(), "task": "write"})
	require.Equal(c.t, http.StatusCreated, answer.StatusCode, string(body))
	var started struct {
		SessionID string `json:"session_id"`
	}
	require.NoError(c.t, json.Unmarshal(body, &started))
	return started.SessionID
}

// refusals returns why requests about a session were refused, according to the audit.
func (v *proofEnv) refusals(session string) (reasons []string) {
	v.t.Helper()
	rows, err := v.db.AuditRows(v.t.Context(), v.tenant, 0, 1000)
	require.NoError(v.t, err)
	for _, row := range rows {
		var e audit.Entry
		require.NoError(v.t, json.Unmarshal([]byte(row.Entry), &e))
		if e.Kind == audit.AuditRefused && e.SessionID == session {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// Through the server everything works; the same requests at Temporal are refused, and the audit says so.
func TestProof_OnlyTheServerStartsAndSteersSessions(t *testing.T) {
	t.Parallel()
	v := newProofEnv(t)
	ana := apiClient{v.serveWith("server.key"), v.apiKey(v.tenant, everything()...)}
	require.Equal(t, "vouched", get[map[string]any](ana, "/v1/me")["proof"])
	id := ana.begins("first")
	asked := ana.waits(id)
	require.Equal(t, "ana", asked.RequestedBy)

	refused := v.run()
	require.NotZero(t, refused.code)
	require.Contains(t, refused.err, "accepts only requests that come through its server")
	_, err := v.Status(t.Context(), v.tenant, id)
	require.Equal(t, jig.CodeNotPermitted, jig.CodeOf(err))

	raw := jig.SessionID(v.tenant, "raw")
	run, err := shared.temporal.ExecuteWorkflow(t.Context(), sdk.StartWorkflowOptions{ID: raw, TaskQueue: v.queue}, protocol.PassWorkflow, protocol.PassInput{
		Tenant: v.tenant, Start: &protocol.StartSession{Document: writer(), Task: "mine", Principal: jig.Principal{ID: "ana", Permissions: []string{"*"}}},
	})
	require.NoError(t, err)
	require.ErrorContains(t, run.Get(t.Context(), nil), "through its server")
	require.Len(t, v.refusals(raw), 1)

	v.signal(id, protocol.SignalMessage, protocol.Message{Text: "send me the money", By: "ana"})
	require.True(t, eventually(t.Context(), patience, func() bool { return len(v.refusals(id)) == 1 }))
	v.signal(id, protocol.SignalApprove, jig.Decision{Call: asked.Call, By: "ana"})
	require.True(t, eventually(t.Context(), patience, func() bool { return len(v.refusals(id)) == 2 }))

	answer, body := ana.send(http.MethodPost, "/v1/sessions/"+id+"/messages", map[string]any{"text": "go on"})
	require.Less(t, answer.StatusCode, 300, string(body))
	answer, body = ana.send(http.MethodPost, "/v1/approvals/"+id+"/decision", map[string]any{"call": asked.Call, "answer": "approve", "digest": asked.Digest})
	require.Equal(t, http.StatusOK, answer.StatusCode, string(body))
	require.Contains(t, string(body), "accepted")
	result := get[protocol.SessionResult](ana, "/v1/sessions/"+id+"/result?wait=30")
	require.Equal(t, jig.StatusCompleted, result.Status)
	session, err := v.db.Session(t.Context(), v.tenant, id)
	require.NoError(t, err)
	require.Equal(t, jig.Principal{ID: "ana", Proof: jig.ProofVouched, Maker: jig.MakerOperator}, session.Principal)
	require.Equal(t, jig.SourceAPI, session.Source)

	// Nobody wakes it at Temporal, not even as if a run continued another one.
	for _, in := range []protocol.PassInput{{Tenant: v.tenant}, {Tenant: v.tenant, Pass: session.Pass + 1, Limits: jig.Limits{}.WithDefaults()}} {
		run, err = shared.temporal.ExecuteWorkflow(t.Context(), sdk.StartWorkflowOptions{ID: id, TaskQueue: v.queue}, protocol.PassWorkflow, in)
		require.NoError(t, err)
		require.ErrorContains(t, run.Get(t.Context(), nil), "through its server")
	}
	// A message through the server does.
	answer, body = ana.send(http.MethodPost, "/v1/sessions/"+id+"/messages", map[string]any{"text": "once more", "id": "m2"})
	require.Less(t, answer.StatusCode, 300, string(body))
	require.True(t, eventually(t.Context(), patience, func() bool {
		s, err := v.db.Session(t.Context(), v.tenant, id)
		return err == nil && s.Pass > session.Pass && s.Status == jig.StatusCompleted
	}))
}

// A server's key is replaced while sessions start, and none is lost. What a revoked key signed is refused.
func TestProof_KeysRotateUnderLoad(t *testing.T) {
	t.Parallel()
	v := newProofEnv(t)
	v.blocks = v.blocks[1:] // the refused read
	key := v.apiKey(v.tenant, everything()...)
	old := apiClient{v.serveWith("server.key"), key}
	var all sync.WaitGroup
	var mu sync.Mutex
	var started []string
	load := func(c apiClient, name string, n int) {
		for i := range n {
			id := c.begins(fmt.Sprintf("%s-%d", name, i))
			mu.Lock()
			started = append(started, id)
			mu.Unlock()
		}
	}
	const clients, each = 4, 10
	for n := range clients {
		all.Go(func() { load(old, fmt.Sprintf("old-%d", n), each) })
	}
	made := v.run()
	require.Zero(t, made.code, made.err)
	fresh := apiClient{v.serveWith("server-2.key"), key}
	for n := range clients {
		all.Go(func() { load(fresh, fmt.Sprintf("fresh-%d", n), each) })
	}
	all.Wait()
	require.Len(t, started, 2*clients*each, "no start was refused")
	for _, id := range started {
		require.True(t, eventually(t.Context(), patience, func() bool {
			s, err := v.db.Session(t.Context(), v.tenant, id)
			return err == nil && s.Principal.Proof == jig.ProofVouched
		}), id)
	}

	newer, _, _ := strings.Cut(made.out, ",")
	revoked := v.run("srv_…", v.key)
	require.Zero(t, revoked.code, revoked.err)
	require.Contains(t, revoked.out, v.key)
	require.Contains(t, revoked.out, newer)
	require.Contains(t, revoked.out, "revoked")
	require.True(t, eventually(t.Context(), patience, func() bool {
		answer, _ := old.send(http.MethodPost, "/v1/sessions", map[string]any{"id": fmt.Sprintf("late-%d", time.Now().UnixNano()), "document": writer(), "task": "write"})
		return answer.StatusCode == http.StatusForbidden
	}))
	fresh.begins("after")
}

// A start waits for a worker, and counts when one comes.
func TestProof_AStartMayWaitForAWorker(t *testing.T) {
	t.Parallel()
	v := newProofEnv(t)
	ana := apiClient{v.serveWith("server.key"), v.apiKey(v.tenant, everything()...)}
	v.kill()
	id := ana.begins("patient")
	v.start()
	ana.waits(id)
	session, err := v.db.Session(t.Context(), v.tenant, id)
	require.NoError(t, err)
	require.Equal(t, jig.ProofVouched, session.Principal.Proof)
}
