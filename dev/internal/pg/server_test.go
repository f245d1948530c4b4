package pg_test

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/dev/internal/pg"
	"github.com/jig-run/jig/dev/internal/port"
)

// start starts an ephemeral server for one test.
func start(t *testing.T, opts pg.Options) *pg.Server {
	t.Helper()
	server := prepare(t, opts)
	require.NoError(t, server.Start(t.Context()))
	return server
}

// prepare creates a server. At the end of the test, the server is closed and its files are removed.
func prepare(t *testing.T, opts pg.Options) *pg.Server {
	t.Helper()
	if len(pg.Find(t.Context())) == 0 {
		t.Skip("no PostgreSQL is installed")
	}
	opts.Ephemeral = true
	if opts.Dir == "" {
		opts.Dir = filepath.Join(t.TempDir(), "pg")
	}
	server, err := pg.New(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close(context.WithoutCancel(t.Context()))) })
	return server
}

// query runs a statement as the superuser and returns the first column of its first row.
func query(t *testing.T, server *pg.Server, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL(pg.Superuser, "postgres"))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	var out string
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&out))
	return out
}

// execute runs a statement that returns nothing.
func execute(t *testing.T, server *pg.Server, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL(pg.Superuser, "postgres"))
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
}

// pid returns the process id that PostgreSQL wrote to postmaster.pid.
func pid(t *testing.T, server *pg.Server) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(server.DataDir(), "postmaster.pid"))
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(content), "\n")
	n, err := strconv.Atoi(first)
	require.NoError(t, err)
	return n
}

func TestServer_KeepsDataAcrossRestarts(t *testing.T) {
	t.Parallel()
	server := start(t, pg.Options{})
	require.Equal(t, "UTF8", query(t, server, "show server_encoding"))
	require.Equal(t, "on", query(t, server, "show fsync"))
	execute(t, server, "create table kept as select 'here' as word")

	addr := server.Addr()
	require.NoError(t, server.Stop(t.Context()))
	require.NoError(t, server.Stop(t.Context()), "stopping twice is allowed")
	_, err := pgx.Connect(t.Context(), server.URL(pg.Superuser, "postgres"))
	require.Error(t, err, "a stopped server does not answer")

	require.NoError(t, server.Start(t.Context()))
	require.NoError(t, server.Start(t.Context()), "starting twice is allowed")
	require.Equal(t, addr, server.Addr())
	require.Equal(t, "here", query(t, server, "select word from kept"))

	require.NoError(t, server.Restart(t.Context()))
	require.Equal(t, "here", query(t, server, "select word from kept"))
	require.Empty(t, server.Died())
}

func TestServer_RecoversFromAKill(t *testing.T) {
	t.Parallel()
	server := start(t, pg.Options{})
	execute(t, server, "create table kept as select 1")
	require.NoError(t, server.Kill(t.Context()))
	require.FileExists(t, filepath.Join(server.DataDir(), "postmaster.pid"))
	require.NoError(t, server.Start(t.Context()))
	require.Equal(t, "1", query(t, server, "select count(*)::text from kept"))
	require.Empty(t, server.Died())
}

// Stop with an ended context still stops the server, and does not report that it is still running.
func TestServer_StopsWithoutTimeLeft(t *testing.T) {
	t.Parallel()
	server := start(t, pg.Options{})
	execute(t, server, "create table kept as select 1")
	busy, err := pgx.Connect(t.Context(), server.URL(pg.Superuser, "postgres"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = busy.Close(context.WithoutCancel(t.Context())) })
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, server.Stop(over))
	require.Error(t, busy.Ping(t.Context()))
	require.NoError(t, server.Start(t.Context()))
	require.Equal(t, "1", query(t, server, "select count(*)::text from kept"))
	require.Empty(t, server.Died())
}

func TestServer_ReportsAnUnexpectedEnd(t *testing.T) {
	t.Parallel()
	server := start(t, pg.Options{})
	for signal, how := range map[syscall.Signal]string{syscall.SIGKILL: "signal: killed", syscall.SIGINT: "exit status 0"} {
		require.NoError(t, syscall.Kill(pid(t, server), signal))
		select {
		case err := <-server.Died():
			require.ErrorContains(t, err, "PostgreSQL ended by itself ("+how+")")
		case <-time.After(2 * time.Minute):
			require.Fail(t, "the end was not reported")
		}
		require.NoError(t, server.Start(t.Context()), "it can be started again")
	}
}

func TestServer_IgnoresAPidFileOfAnotherProgram(t *testing.T) {
	t.Parallel()
	server := start(t, pg.Options{})
	require.NoError(t, server.Kill(t.Context()))

	// The process id in the file belongs to a running program of the same user that is not PostgreSQL.
	other := exec.Command("sleep", "600")
	info, err := os.Stat(server.DataDir())
	require.NoError(t, err)
	stat, ok := info.Sys().(*syscall.Stat_t)
	require.True(t, ok)
	if os.Geteuid() == 0 {
		other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}}
	}
	require.NoError(t, other.Start())
	t.Cleanup(func() {
		_ = other.Process.Kill() //nolint:errcheck // it may have ended
		_ = other.Wait()         //nolint:errcheck // it was killed, which Wait reports
	})
	file := filepath.Join(server.DataDir(), "postmaster.pid")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(content), "\n")
	require.NoError(t, os.WriteFile(file, []byte(strconv.Itoa(other.Process.Pid)+"\n"+rest), 0o600))

	require.NoError(t, server.Start(t.Context()))
	require.Equal(t, "1", query(t, server, "select '1'"))
}

func TestOrphan_IsStopped(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pg")
	orphan := start(t, pg.Options{Dir: dir})
	old := pid(t, orphan)

	// Another server on the same folder, as after a kill -9 of the first process on systems where its children keep running.
	heir, err := pg.New(t.Context(), pg.Options{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, heir.Close(context.WithoutCancel(t.Context()))) })
	require.NoError(t, heir.Start(t.Context()))
	require.NotEqual(t, old, pid(t, heir))
	require.Equal(t, "1", query(t, heir, "select '1'"))
	select {
	case <-orphan.Died():
	case <-time.After(2 * time.Minute):
		require.Fail(t, "the orphan still runs")
	}
}

func TestPort_TakenOneIsNamed(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })

	_, err = pg.New(t.Context(), pg.Options{Dir: t.TempDir(), Port: port.Number(listener.Addr().String())})
	var taken *port.TakenError
	require.ErrorAs(t, err, &taken)
	require.ErrorContains(t, err, "PostgreSQL: "+listener.Addr().String()+" is taken")
}

func TestPort_IsTakenWhileStopped(t *testing.T) {
	t.Parallel()
	server := start(t, pg.Options{})
	require.NoError(t, server.Stop(t.Context()))
	listener, err := net.Listen("tcp", server.Addr())
	require.NoError(t, err)
	var taken *port.TakenError
	require.ErrorAs(t, server.Start(t.Context()), &taken)
	require.NoError(t, listener.Close())
	require.NoError(t, server.Start(t.Context()))
}

func TestPassword_IsNeeded(t *testing.T) {
	t.Parallel()
	server := start(t, pg.Options{})
	url := strings.Replace(server.URL(pg.Superuser, "postgres"), server.Password(pg.Superuser), "guess", 1)
	_, err := pgx.Connect(t.Context(), url)
	require.ErrorContains(t, err, "password authentication failed")
}

// What a killed process leaves is removed when the next ephemeral server starts beside it; its PostgreSQL is stopped first.
func TestEphemeralServer_RemovesWhatKilledProcessesLeft(t *testing.T) {
	if dir := os.Getenv("JIG_TEST_KILLED"); dir != "" { // the process that is killed
		server, err := pg.New(t.Context(), pg.Options{Dir: dir, Ephemeral: true})
		require.NoError(t, err)
		require.NoError(t, server.Start(t.Context()))
		_, _ = os.Stdout.WriteString("started " + server.DataDir() + "\n") // the parent notices if it fails
		select {}
	}
	t.Parallel()
	parent := t.TempDir()
	beside := prepare(t, pg.Options{Dir: filepath.Join(parent, "running")})
	killed := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	killed.Env = append(os.Environ(), "JIG_TEST_KILLED="+filepath.Join(parent, "killed"))
	out, err := killed.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, killed.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	left := strings.TrimPrefix(strings.TrimSpace(line), "started ")
	require.NoError(t, killed.Process.Kill())
	require.Error(t, killed.Wait())
	require.DirExists(t, left)

	server := start(t, pg.Options{Dir: filepath.Join(parent, "next")})
	require.NoDirExists(t, filepath.Dir(left))
	require.DirExists(t, beside.DataDir(), "another server still needs its files")
	require.Equal(t, "1GB minimal", query(t, server, "select current_setting('max_wal_size') || ' ' || current_setting('wal_level')"))
	require.NoError(t, server.Close(t.Context()))
	require.NoDirExists(t, server.DataDir())
	require.NoError(t, server.Close(t.Context()), "closing twice is allowed")
}
