package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

const ownWorkerPage = "docs/your-own-worker.md"

// Every command on the page does what the page says, from an empty folder outside of jig's checkout and without the network: a project is
// made, tested and built, its worker is started, and a call of its tool is approved. Only jig-dev gets free ports, because tests run beside it.
func TestOwnWorkerPage_Works(t *testing.T) {
	t.Parallel()
	m := &pageRunner{tenantEnv: tenantEnv{tenant: jig.DefaultTenant, testEnv: isolatedEnv(t)}}
	m.env = append(m.env, "NO_COLOR=1", "GOPROXY=off", "PATH="+strings.Join(
		[]string{filepath.Dir(shared.cli.path(t)), filepath.Dir(shared.dev.path(t)), os.Getenv("PATH")}, string(os.PathListSeparator)))
	empty, err := os.ReadDir(m.dir)
	require.NoError(t, err)
	require.Empty(t, empty)
	var servers, worker *backgroundProcess
	var building time.Duration
	began := time.Now()
	steps := []pageStep{
		{"jig init", 0, func() { m.dir = filepath.Join(m.dir, "shop") }},
		{"go test", 0, nil},
		{"jig-dev", 0, nil},
		{"go build", 0, nil},
		{"bin/worker", 0, nil},
		{"--id first", 3, nil},
		{"jig approve first", 0, func() {
			t.Logf("from `jig init` to the first approved call: %s, and %s for building and testing", time.Since(began)-building, building)
			require.Contains(t, textOf(t, filepath.Join(m.dir, "orders", "1042.refund-1.json")), `"cents":1500`)
		}},
		{"catalog add", 0, func() {
			require.True(t, eventually(t.Context(), patience, func() bool {
				return m.jig("trigger", "orders.refund", "--input", "order=1042", "--input", "cents=300000", "--input", "reason=x", "--no-wait").code == 4
			}), "the policy does not take effect")
		}},
		{"cents=500", 0, nil},
		{"cents=200000", 4, func() { require.NoFileExists(t, filepath.Join(m.dir, "orders", "1042.refund-3.json")) }},
	}
	ran := 0
	for _, f := range codeBlocks(t, ownWorkerPage) {
		if f.language == "text" {
			m.shows(f)
			continue
		}
		if f.language == "go" { // a part of a program, which is none by itself
			continue
		}
		require.Equal(t, "sh", f.language, "this test cannot run other blocks")
		require.Less(t, ran, len(steps), "the page has commands that this test has no step for:\n%s", f.body)
		step, at := steps[ran], time.Now()
		require.Contains(t, f.body, step.about, "the steps of the test must follow the page")
		switch step.about {
		case "jig-dev":
			servers = m.background(strings.TrimSpace(f.body) + " " + strings.Join(anywhere, " "))
			servers.says(t, "jig is ready")
		case "bin/worker":
			worker = m.background(f.body)
			worker.says(t, "worker ready")
		default:
			m.run(f.body, "", step.code)
		}
		if strings.HasPrefix(step.about, "go ") {
			building += time.Since(at)
		}
		if step.then != nil {
			step.then()
		}
		ran++
	}
	require.Len(t, steps, ran, "the test has steps for commands that the page no longer has")
	require.NotContains(t, worker.end(t), "level=ERROR")
	require.NotContains(t, servers.end(t), "level=ERROR", "a normal stop shows no errors")
}

// backgroundProcess is a program that runs beside the others.
type backgroundProcess struct {
	cmd *exec.Cmd
	out *os.File
}

// background starts a command line that runs until the test ends it.
func (m *pageRunner) background(line string) *backgroundProcess {
	m.t.Helper()
	out, err := os.Create(filepath.Join(m.t.TempDir(), "out.txt"))
	require.NoError(m.t, err)
	b := &backgroundProcess{cmd: exec.Command("bash", "-c", "exec "+line), out: out}
	b.cmd.Env, b.cmd.Dir, b.cmd.Stdout, b.cmd.Stderr = m.env, m.dir, out, out
	require.NoError(m.t, b.cmd.Start())
	m.t.Cleanup(func() {
		_ = b.cmd.Process.Kill() //nolint:errcheck // it may have ended
		_ = b.cmd.Wait()         //nolint:errcheck // as above
		_ = out.Close()
	})
	return b
}

// says waits until the program has printed a text.
func (b *backgroundProcess) says(t *testing.T, text string) {
	t.Helper()
	require.True(t, eventually(t.Context(), patience, func() bool {
		said, err := os.ReadFile(b.out.Name())
		return err == nil && bytes.Contains(said, []byte(text))
	}), "it does not say %q, but:\n%s", text, textOf(t, b.out.Name()))
}

// end stops the program as Ctrl-C would and returns what it prints from then on. On a busy machine, Temporal reports errors while it starts.
func (b *backgroundProcess) end(t *testing.T) string {
	t.Helper()
	before := len(textOf(t, b.out.Name()))
	require.NoError(t, b.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, b.cmd.Wait(), textOf(t, b.out.Name()))
	return textOf(t, b.out.Name())[before:]
}
