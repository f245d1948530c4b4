package e2e_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/dev/internal/scratch"
	"github.com/jig-run/jig/dev/internal/stack"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
)

// sharedStack is the stack that all tests share. Each test has its own task queue and worker, or joins the common worker.
type sharedStack struct {
	stack    *stack.Stack
	temporal sdk.Client
	// worker is the path of the built test worker.
	worker       string
	cli, dev     program
	env          []string
	commonWorker *commonWorker
}

var shared sharedStack

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx := context.Background()                                              //nolint:forbidigo // TestMain has no caller to take one from
	if err := scratch.Sweep(os.TempDir(), "e2e", os.RemoveAll); err != nil { // of tests that ran out of time
		fmt.Fprintln(os.Stderr, err)
	}
	dir, err := os.MkdirTemp("", "jig-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	release, err := scratch.Hold(dir, "e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = release() }() //nolint:errcheck // a later run removes what is left
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	worker := build(ctx, dir, "worker", "github.com/jig-run/jig/dev/e2e/testworker")
	var building sync.WaitGroup
	building.Go(func() { _, _ = worker() }) //nolint:errcheck // the call below returns the same error
	defer building.Wait()
	s, err := stack.Start(ctx, stack.Options{
		DataDir: dir, Ephemeral: true, NoUI: true, Migrate: store.Migrate, GrantServer: store.GrantServer, PGSettings: throwaway(), TemporalSettings: fewPartitions(),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		stopping, cancel := context.WithTimeout(ctx, time.Minute)
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
	shared = sharedStack{
		stack: s, temporal: temporal, env: append(os.Environ(), s.Environment()...), commonWorker: &commonWorker{dir: dir},
		cli: build(ctx, dir, "jig", "github.com/jig-run/jig/cmd/jig"),
		dev: build(ctx, dir, "jig-dev", "github.com/jig-run/jig/dev"),
	}
	if shared.worker, err = worker(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.commonWorker.end()
	return m.Run()
}

// throwaway returns PostgreSQL settings for data that need not survive a crash of the machine. Committed data still survive a crash of the
// server process, which tests kill.
func throwaway() map[string]string {
	return map[string]string{"fsync": "off", "full_page_writes": "off"}
}

// fewPartitions returns Temporal settings for many task queues with little traffic.
func fewPartitions() map[string]any {
	return map[string]any{"matching.numTaskqueueReadPartitions": 1, "matching.numTaskqueueWritePartitions": 1}
}

// EnvPrograms names a folder in which jig and jig-dev have already been built.
const EnvPrograms = "JIG_TEST_PROGRAMS"

// program builds a program on its first call and returns the program's path.
type program func() (string, error)

func build(ctx context.Context, dir, name, pkg string) program {
	return sync.OnceValues(func() (string, error) {
		if built := filepath.Join(os.Getenv(EnvPrograms), name); os.Getenv(EnvPrograms) != "" {
			if _, err := os.Stat(built); err == nil {
				return built, nil
			}
		}
		path := filepath.Join(dir, name)
		// Without debugging information, linking takes half as long, and so does the checksum that a Temporal worker computes of its program.
		out, err := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", path, pkg).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
		}
		return path, nil
	})
}

func (p program) path(t *testing.T) string {
	t.Helper()
	path, err := p()
	require.NoError(t, err)
	return path
}

// quiet is a Temporal logger that logs nothing.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

// testEnv is a test's own environment: a task queue, a working directory, a worker that the test may kill, and a client.
type testEnv struct {
	*client.Client
	t     *testing.T
	queue string
	// name is unique to the environment, for the names of tenants and documents: 26 lower-case letters and digits.
	name string
	dir  string
	env  []string
	log  *os.File

	mu     sync.Mutex
	worker *exec.Cmd
	joined bool
}

// installation is the installation id of all environments, so that tests can compute the idempotency keys of calls.
const installation = "e2e"

// newTestEnv returns an environment without a worker.
func newTestEnv(t *testing.T, env ...string) *testEnv {
	t.Helper()
	d := testEnvOn(t, "", env...)
	var err error
	d.log, err = os.Create(filepath.Join(t.TempDir(), "worker.log"))
	require.NoError(t, err)
	t.Cleanup(func() {
		d.kill()
		if t.Failed() {
			d.showLog()
		}
		_ = d.log.Close()
	})
	return d
}

func testEnvOn(t *testing.T, queue string, env ...string) *testEnv {
	t.Helper()
	name := strings.ToLower(strings.TrimPrefix(jig.NewSessionID(), jig.SessionPrefix))
	d := &testEnv{t: t, name: name, queue: cmp.Or(queue, "e2e-"+name), dir: t.TempDir()}
	d.Client = client.New(shared.temporal, client.Options{TaskQueue: d.queue, WorkerTimeout: patience, RetryFor: patience})
	d.env = append(deskEnv(d.queue, d.dir), env...)
	return d
}

func deskEnv(queue, dir string) []string {
	return append(slices.Clone(shared.env), "JIG_TASK_QUEUE="+queue, "JIG_INSTALLATION="+installation, "JIG_WORKDIR="+filepath.Join(dir, ".jig", "work"), "JIG_WORKDIR_DEFAULT="+dir,
		"JIG_HTTP_ALLOW_LOOPBACK=true", "JIG_LOG_LEVEL=warn")
}

// startEnv returns an environment with its own running worker.
func startEnv(t *testing.T, env ...string) *testEnv {
	t.Helper()
	d := newTestEnv(t, env...)
	d.start()
	require.NoError(t, d.answers())
	return d
}

// answers waits until a worker answers.
func (d *testEnv) answers() error {
	_, err := d.Status(d.t.Context(), jig.DefaultTenant, "ses_nobody")
	if jig.CodeOf(err) == jig.CodeNotFound {
		return nil
	}
	return err
}

// commonWorker is the worker that several tests share.
type commonWorker struct {
	dir   string
	once  sync.Once
	queue string
	log   *os.File
	cmd   *exec.Cmd
	err   error
}

// joinEnv returns an environment that uses the common worker, which saves the second that a worker takes to start. It is for tests that neither stop
// their worker nor need their own settings or files for it.
func joinEnv(t *testing.T) *testEnv {
	t.Helper()
	c := shared.commonWorker
	c.once.Do(func() { c.err = c.start() })
	require.NoError(t, c.err)
	d := testEnvOn(t, c.queue)
	d.log, d.joined = c.log, true
	t.Cleanup(func() {
		if t.Failed() {
			d.showLog()
		}
	})
	require.NoError(t, d.answers())
	return d
}

func (c *commonWorker) start() error {
	c.queue = "e2e-common"
	workdir := filepath.Join(c.dir, "common")
	err := os.MkdirAll(workdir, 0o755)
	if err == nil {
		c.log, err = os.Create(filepath.Join(c.dir, "common.log"))
	}
	if err != nil {
		return fmt.Errorf("starting the common worker: %w", err)
	}
	c.cmd = workerCommand(append(deskEnv(c.queue, workdir), "JIG_DATABASE_MAX_CONNS=20"), workdir, c.log)
	return c.cmd.Start()
}

func (c *commonWorker) end() {
	if c.cmd != nil && c.cmd.Process != nil {
		_ = c.cmd.Process.Kill() //nolint:errcheck // it may have ended
		_ = c.cmd.Wait()         //nolint:errcheck // it was killed, which Wait reports
	}
}

func workerCommand(env []string, dir string, log *os.File) *exec.Cmd {
	cmd := exec.Command(shared.worker)
	cmd.Env, cmd.Dir = env, dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

func (d *testEnv) showLog() {
	if out, err := os.ReadFile(d.log.Name()); err == nil && len(out) > 0 {
		d.t.Logf("the worker's log:\n%s", tail(string(out), 3000))
	}
}

// tail returns the end of a log, n bytes at most. Long lines are cut, for the stack of a tool that panics would hide why a test failed.
func tail(log string, n int) string {
	const width = 400
	var cut strings.Builder
	for line := range strings.Lines(log) {
		if len(line) > width {
			line = line[:width] + "…\n"
		}
		cut.WriteString(line)
	}
	if cut.Len() <= n {
		return cut.String()
	}
	return "…" + cut.String()[cut.Len()-n:]
}

// start starts a worker. The previous one must have ended.
func (d *testEnv) start() {
	d.t.Helper()
	require.False(d.t, d.joined, "other tests share this worker: use open instead of join")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.worker = workerCommand(d.env, d.dir, d.log)
	require.NoError(d.t, d.worker.Start())
}

// kill kills the worker, like a power failure would.
func (d *testEnv) kill() {
	d.t.Helper()
	require.False(d.t, d.joined, "other tests share this worker: use open instead of join")
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.worker != nil {
		_ = d.worker.Process.Kill() //nolint:errcheck // it may have ended
		_ = d.worker.Wait()         //nolint:errcheck // it was killed, which Wait reports
		d.worker = nil
	}
}

// agent returns an agent document with a script.
func agent(tools, rules string, settings ...string) string {
	var extra strings.Builder
	for _, s := range settings {
		extra.WriteString(s + "\n")
	}
	return fmt.Sprintf("---\nname: probe\ndescription: Runs probes for a test.\nmodel: script/probe\ntools: %s\n%sscript:\n  rules:\n%s---\nDo what the script says.\n",
		tools, extra.String(), rules)
}

// run starts a session with a document and returns the session's id.
func (d *testEnv) run(document string, input any) string {
	d.t.Helper()
	raw, err := json.Marshal(input)
	require.NoError(d.t, err)
	started, err := d.Start(d.t.Context(), client.StartOptions{
		Document: document, DocumentName: "probe.md", Input: raw, Principal: jig.Principal{ID: "tester"},
	})
	require.NoError(d.t, err)
	return started.SessionID
}

// finish waits until a session has ended and returns its status.
func (d *testEnv) finish(id string) jig.SessionView {
	d.t.Helper()
	return d.until(id, func(v jig.SessionView) bool { return v.Status.Final() })
}

// waiting waits until a session needs a person.
func (d *testEnv) waiting(id string) jig.SessionView {
	d.t.Helper()
	return d.until(id, func(v jig.SessionView) bool { return v.Status == jig.StatusInputRequired })
}

// patience is how long a test waits for something that must happen. It only ends a test that hangs, so it is long. JIG_PATIENCE (a
// duration) changes it for a very slow machine.
var patience = patienceFrom(os.Getenv("JIG_PATIENCE"))

func patienceFrom(text string) time.Duration {
	if d, err := time.ParseDuration(text); err == nil {
		return d
	}
	return 5 * time.Minute
}

// until queries the workflow's status until done returns true.
func (d *testEnv) until(id string, done func(jig.SessionView) bool) jig.SessionView {
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

func (d *testEnv) query(id string) (jig.SessionView, error) {
	var view jig.SessionView
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
	defer cancel()
	value, err := shared.temporal.QueryWorkflow(ctx, id, "", protocol.QueryStatus)
	if err != nil {
		return view, fmt.Errorf("querying the status: %w", err)
	}
	return view, value.Get(&view)
}

// eventually calls holds until it returns true or the time is up.
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

// events returns a session's events of the given types, or all of them without types. It checks that the log has no gaps.
func (d *testEnv) events(id string, types ...jig.EventType) []jig.Event {
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

// receiver is an external system that counts the requests that reach it.
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
			return // a killed worker's incomplete request does not count
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

// count returns how many requests with a name arrived, and under how many different keys.
func (r *receiver) count(name string) (requests, keys int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[name], len(r.keys[name])
}
