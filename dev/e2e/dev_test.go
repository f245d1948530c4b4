package e2e_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"

	"github.com/jig-run/jig/dev/internal/port"
)

// anywhere are flags that let a development server run next to others.
var anywhere = []string{"--temporal-addr", "127.0.0.1:0", "--ui-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--pg-port", "0"}

// isolatedEnv returns an environment whose programs find no server except those that they start.
func isolatedEnv(t *testing.T) *testEnv {
	t.Helper()
	d := newTestEnv(t)
	d.env = nil
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "JIG_") {
			d.env = append(d.env, kv)
		}
	}
	return d
}

// Runs the demo as `make demo` does: it starts everything from nothing and runs the main job on this repository's own go.mod, up to its
// report.
func TestDemo_Works(t *testing.T) {
	t.Parallel()
	d := isolatedEnv(t)
	shared.cli.path(t) // the demo runs the jig next to jig-dev
	goMod, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, "go.mod"), goMod, 0o600))
	got := d.command(shared.dev.path(t), append([]string{"demo", "--yes"}, anywhere...)...)
	require.Zero(t, got.code, got.err)
	for _, said := range []string{
		"starting PostgreSQL", "starting Temporal", "\napproved 3.1 file.write (without asking, because of --yes)\n", "completed after 4 passes",
	} {
		require.Contains(t, got.err, said)
	}
	require.NoFileExists(t, filepath.Join(d.dir, ".jig", "dev.env"))
	require.Regexp(t, `The summary makes \d+ claims, and each cites modules of this review`, got.err)
	require.Regexp(t, `✓ .+ \(cites \d+ modules?\)`, got.err)
	require.NotContains(t, got.err, "✗")
	review, err := os.ReadFile(filepath.Join(d.dir, "reports", "review.md"))
	require.NoError(t, err)
	require.Regexp(t, `(?m)^\d+ claims, each citing modules of this review\.`, string(review))
	report, err := os.ReadFile(filepath.Join(d.dir, "reports", "dependency-review.md"))
	require.NoError(t, err)
	parsed, err := modfile.Parse("go.mod", goMod, nil)
	require.NoError(t, err)
	for _, module := range parsed.Require {
		if !module.Indirect {
			require.Contains(t, string(review), "\n| "+module.Mod.Path+" | "+module.Mod.Version+" | ")
			require.Regexp(t, `(?m)^\| `+strings.ReplaceAll(module.Mod.Path, ".", `\.`)+` \| `+module.Mod.Version+` \| [A-Z][A-Za-z0-9., -]+ \| low \| LICENSE`, string(report))
		}
	}
}

func TestDevServer_ReportsProblems(t *testing.T) {
	t.Parallel()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, taken.Close()) })
	d := isolatedEnv(t)

	got := d.command(shared.dev.path(t), "--ephemeral", "--temporal-addr", taken.Addr().String(), "--ui-addr", "127.0.0.1:0", "--pg-port", "0")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.err, taken.Addr().String()+" is taken")
	require.NotContains(t, got.err, "PostgreSQL", "nothing is started before the addresses are checked")

	got = d.command(shared.dev.path(t), "--log-level", "loud")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.err, "--log-level")

	d.env = append(d.env, "JIG_DATABASE_OWNER_URL=postgres://nobody:secret@127.0.0.1:1/none")
	got = d.command(shared.dev.path(t), anywhere...)
	require.Equal(t, 2, got.code)
	require.Contains(t, got.err, "127.0.0.1:1")
	require.NotContains(t, got.err, "secret")
}

// A versioned worker gets no work until its version is current.
func TestDevServer_MakesItsVersionCurrent(t *testing.T) {
	t.Parallel()
	d := isolatedEnv(t)
	d.env = append(d.env, "JIG_DEPLOYMENT=dev:1")
	args := append([]string{"--ephemeral", "--quiet"}, anywhere...)
	got := d.command(shared.dev.path(t), append(args, "--", shared.cli.path(t), "trigger", "file.list", "--input", "path=.")...)
	require.Zero(t, got.code, got.out+got.err)
	require.Contains(t, got.out, `"entries"`)
}

// When a development server is killed, its servers end with it, and the next one can use the same ports and data at once.
func TestDevServer_LeavesNoServersBehindWhenKilled(t *testing.T) {
	t.Parallel()
	d := isolatedEnv(t)
	removeLater(t, filepath.Join(d.dir, "data"))
	args := []string{"--no-worker", "--quiet", "--data-dir", filepath.Join(d.dir, "data")}
	for _, flag := range []string{"--temporal-addr", "--ui-addr", "--http-addr"} {
		addr, err := port.Claim(t.Context(), "127.0.0.1:0")
		require.NoError(t, err)
		args = append(args, flag, addr)
	}
	args = append(args, "--pg-port", "0")
	for range 2 {
		cmd := exec.Command(shared.dev.path(t), args...)
		cmd.Env, cmd.Dir = d.env, d.dir
		var said bytes.Buffer
		cmd.Stderr = &said
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		require.NoError(t, cmd.Start())
		kill := sync.OnceFunc(func() {
			_ = cmd.Process.Kill() //nolint:errcheck // it may have ended already
			_ = cmd.Wait()         //nolint:errcheck // it was killed, which Wait reports
		})
		t.Cleanup(kill)
		settings := filepath.Join(d.dir, "data", "dev.env")
		require.True(t, eventually(t.Context(), patience, func() bool {
			_, err := os.Stat(settings)
			return err == nil || cmd.ProcessState != nil
		}), "it does not start")
		require.NoError(t, os.Remove(settings))
		servers := children(t, cmd.Process.Pid)
		require.Len(t, servers, 2, "PostgreSQL and Temporal: %s", said.String())

		kill()
		require.True(t, eventually(t.Context(), patience, func() bool {
			return !slices.ContainsFunc(servers, running)
		}), "%v are still there", servers)
	}
}

// children returns the processes that a process has started.
func children(t *testing.T, parent int) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	var found []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if _, of := state(pid); of == parent {
				found = append(found, pid)
			}
		}
	}
	return found
}

// running reports whether a process exists and has not ended.
func running(pid int) bool {
	how, _ := state(pid)
	return how != "" && how != "Z" && how != "X"
}

// state returns a process's state and its parent as described in proc(5). The state is empty if there is no such process.
func state(pid int) (how string, parent int) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", 0
	}
	// The program's name is in parentheses and may contain anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return "", 0
	}
	parent, err = strconv.Atoi(fields[1])
	if err != nil {
		return "", 0
	}
	return fields[0], parent
}

// The development server runs a command with its settings and ends with the command's exit code.
func TestDevServer_RunsAroundACommand(t *testing.T) {
	t.Parallel()
	d := isolatedEnv(t)
	args := append([]string{"--ephemeral", "--no-worker", "--no-ui", "--quiet"}, anywhere...)
	got := d.command(shared.dev.path(t), append(args, "--", "sh", "-c", `test -n "$JIG_TEMPORAL_ADDRESS" && test -n "$JIG_DATABASE_URL" && exit 7`)...)
	require.Equal(t, 7, got.code, got.err)
	require.NoFileExists(t, filepath.Join(d.dir, ".jig", "dev.env"), "it may belong to a server that keeps running")
}
