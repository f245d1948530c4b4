package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/dev/stack"
	"github.com/jig-run/jig/store"
	"github.com/jig-run/jig/workflows"
)

// world is the one stack that all tests share; each test has a task queue and workers of its own.
type world struct {
	stack    *stack.Stack
	temporal sdk.Client
	// worker, cli and dev are the built programs.
	worker, cli, dev string
	env              []string
}

var shared world

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx := context.Background() //nolint:forbidigo // TestMain has no caller to take one from
	dir, err := os.MkdirTemp("", "jig-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for name, pkg := range map[string]string{
		"worker": "github.com/jig-run/jig/dev/e2e/testworker", "jig": "github.com/jig-run/jig/starter", "jig-dev": "github.com/jig-run/jig/dev",
	} {
		out, err := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, name), pkg).CombinedOutput()
		if err != nil {
			fmt.Fprintf(os.Stderr, "building %s: %v\n%s", pkg, err, out)
			return 1
		}
	}
	s, err := stack.Start(ctx, stack.Options{DataDir: dir, Ephemeral: true, NoUI: true, Migrate: store.Migrate})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		stopping, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		if err := s.Stop(stopping); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	temporal, err := sdk.Dial(sdk.Options{HostPort: s.TemporalAddress(), Namespace: s.Namespace(), Logger: quiet{}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer temporal.Close()
	shared = world{
		stack: s, temporal: temporal, worker: filepath.Join(dir, "worker"), cli: filepath.Join(dir, "jig"),
		dev: filepath.Join(dir, "jig-dev"),
		env: append(os.Environ(), s.Environment()...),
	}
	return m.Run()
}

// quiet is a Temporal logger that says nothing.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

// desk is a test's own corner: a task queue, a working directory, workers that it may kill, a client.
type desk struct {
	*client.Client
	t     *testing.T
	queue string
	dir   string
	env   []string
	log   *os.File

	mu     sync.Mutex
	worker *exec.Cmd
}

// installation is the id of the desks' installation, so that tests know the idempotency keys of calls.
const installation = "e2e"

// newDesk makes a corner without a worker.
func newDesk(t *testing.T, env ...string) *desk {
	t.Helper()
	d := &desk{t: t, queue: "e2e-" + jig.NewSessionID(), dir: t.TempDir()}
	d.Client = client.New(shared.temporal, client.Options{TaskQueue: d.queue})
	d.env = append(append([]string{}, shared.env...), "JIG_TASK_QUEUE="+d.queue, "JIG_INSTALLATION="+installation, "JIG_WORKDIR="+d.dir, "JIG_HTTP_ALLOW_LOOPBACK=true", "JIG_LOG_LEVEL=warn")
	d.env = append(d.env, env...)
	var err error
	d.log, err = os.Create(filepath.Join(t.TempDir(), "worker.log"))
	require.NoError(t, err)
	t.Cleanup(func() {
		d.kill()
		if t.Failed() {
			if out, err := os.ReadFile(d.log.Name()); err == nil && len(out) > 0 {
				t.Logf("the worker's log:\n%s", tail(string(out), 6000))
			}
		}
		_ = d.log.Close()
	})
	return d
}

// open makes a corner with a worker that is up.
func open(t *testing.T, env ...string) *desk {
	t.Helper()
	d := newDesk(t, env...)
	d.start()
	return d
}

func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + s[len(s)-n:]
}

// start starts a worker, and the one before it must be gone.
func (d *desk) start() {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.worker = exec.Command(shared.worker)
	d.worker.Env, d.worker.Dir = d.env, d.dir
	d.worker.Stdout, d.worker.Stderr = d.log, d.log
	d.worker.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(d.t, d.worker.Start())
}

// kill ends the worker as a power cut would.
func (d *desk) kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.worker != nil {
		_ = d.worker.Process.Kill() //nolint:errcheck // it may have ended
		_ = d.worker.Wait()         //nolint:errcheck // it was killed, which Wait reports
		d.worker = nil
	}
}

// agent is an agent document with a script.
func agent(tools, rules string, settings ...string) string {
	var extra strings.Builder
	for _, s := range settings {
		extra.WriteString(s + "\n")
	}
	return fmt.Sprintf("---\nname: probe\ndescription: Runs probes for a test.\nmodel: script/probe\ntools: %s\n%sscript:\n  rules:\n%s---\nDo what the script says.\n",
		tools, extra.String(), rules)
}

// run starts a session of a document and returns its id.
func (d *desk) run(document string, input any) string {
	d.t.Helper()
	raw, err := json.Marshal(input)
	require.NoError(d.t, err)
	started, err := d.Start(d.t.Context(), client.StartOptions{
		Document: document, DocumentName: "probe.md", Input: raw, Principal: jig.Principal{ID: "tester"},
	})
	require.NoError(d.t, err)
	return started.SessionID
}

// finish waits until a session has ended and returns how.
func (d *desk) finish(id string) jig.SessionView {
	d.t.Helper()
	return d.until(id, func(v jig.SessionView) bool { return v.Status.Final() })
}

// waiting waits until a session needs a person.
func (d *desk) waiting(id string) jig.SessionView {
	d.t.Helper()
	return d.until(id, func(v jig.SessionView) bool { return v.Status == jig.StatusInputRequired })
}

const patience = 90 * time.Second

// until asks the workflow for its status until it is what the test waits for.
func (d *desk) until(id string, done func(jig.SessionView) bool) jig.SessionView {
	d.t.Helper()
	var view jig.SessionView
	var last error
	ok := eventually(d.t.Context(), patience, func() bool {
		view, last = d.query(id)
		return last == nil && done(view)
	})
	require.True(d.t, ok, "session %s: still %+v, %v", id, view, last)
	return view
}

func (d *desk) query(id string) (jig.SessionView, error) {
	var view jig.SessionView
	ctx, cancel := context.WithTimeout(d.t.Context(), 15*time.Second)
	defer cancel()
	value, err := shared.temporal.QueryWorkflow(ctx, id, "", workflows.QueryStatus)
	if err != nil {
		return view, fmt.Errorf("asking: %w", err)
	}
	return view, value.Get(&view)
}

// eventually tries until it holds or time is up.
func eventually(ctx context.Context, limit time.Duration, holds func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if holds() {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
}

// log of a session's events, by type.
func (d *desk) events(id string, types ...jig.EventType) []jig.Event {
	d.t.Helper()
	var all, list []jig.Event
	require.True(d.t, eventually(d.t.Context(), patience, func() bool {
		var err error
		all, err = d.Events(d.t.Context(), jig.DefaultTenant, id, 0)
		return err == nil
	}))
	for i, e := range all {
		require.Equal(d.t, int64(i+1), e.Seq, "the log has a gap")
		if len(types) == 0 {
			list = append(list, e)
		}
		for _, want := range types {
			if e.Type == want {
				list = append(list, e)
			}
		}
	}
	return list
}

// receiver is the outside world: it counts the requests that reach it.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	names map[string]int
	keys  map[string]map[string]int
	order []string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{names: map[string]int{}, keys: map[string]map[string]int{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return // a killed worker's half request is no request
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		name := string(body)
		r.names[name]++
		if r.keys[name] == nil {
			r.keys[name] = map[string]int{}
		}
		r.keys[name][request.Header.Get("Idempotency-Key")]++
		r.order = append(r.order, name)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(r.Close)
	return r
}

// count says how many requests of a name arrived, and under how many different keys.
func (r *receiver) count(name string) (requests, keys int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[name], len(r.keys[name])
}
