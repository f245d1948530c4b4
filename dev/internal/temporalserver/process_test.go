package temporalserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/dev/internal/port"
	"github.com/jig-run/jig/dev/internal/program"
	"github.com/jig-run/jig/dev/internal/temporalserver"
)

func built(t *testing.T) string {
	t.Helper()
	path, err := program.Temporal(t.Context(), func(progress string) { t.Log(progress) })
	require.NoError(t, err)
	return path
}

// silentDatabase accepts connections and never answers. It returns its URL, and a channel that yields a value for each connection.
func silentDatabase(t *testing.T) (string, <-chan struct{}) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	accepted := make(chan struct{}, 8)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- struct{}{}
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	return fmt.Sprintf("postgres://temporal:secret@%s/postgres?sslmode=disable", listener.Addr()), accepted
}

// document returns a configuration of the program with free ports.
func document(t *testing.T, database string) map[string]any {
	t.Helper()
	d := map[string]any{"database_url": database, "log_level": "ERROR"}
	for _, service := range []string{"frontend", "history", "matching", "worker"} {
		addr, err := port.Claim(t.Context(), "127.0.0.1:0")
		require.NoError(t, err)
		d[service] = addr
	}
	return d
}

// If the parent is killed, the system closes its end of the pipe, and the program exits.
func TestProgram_ExitsWhenItsInputEnds(t *testing.T) {
	t.Parallel()
	database, connected := silentDatabase(t)
	raw, err := json.Marshal(document(t, database))
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), built(t))
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = stdin.Write(raw)
	require.NoError(t, err)
	<-connected // it is starting

	require.NoError(t, stdin.Close())
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Equal(t, 3, exit.ExitCode(), "it exits by itself")
}

// A port can be taken between the moment it was picked and the start of the program.
func TestProgram_NamesATakenPort(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	database, _ := silentDatabase(t)
	for _, service := range []string{"frontend", "ui"} {
		d := document(t, database)
		d[service] = taken.Addr().String()
		raw, err := json.Marshal(d)
		require.NoError(t, err)
		cmd := exec.CommandContext(t.Context(), built(t))
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		var stdout strings.Builder
		cmd.Stdout = &stdout
		require.NoError(t, cmd.Start())
		_, err = stdin.Write(raw)
		require.NoError(t, err)
		require.Error(t, cmd.Wait())
		require.JSONEq(t, `{"taken": "`+taken.Addr().String()+`"}`, stdout.String(), service)
	}
}

func TestStart_NamesATakenPort(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	for _, o := range []temporalserver.Options{
		{Address: taken.Addr().String()},
		{Address: "127.0.0.1:0", UIAddress: taken.Addr().String()},
	} {
		o.Program, o.DatabaseURL = "none", "postgres://temporal@127.0.0.1:1/postgres"
		_, err := temporalserver.Start(t.Context(), o)
		var e *port.TakenError
		require.ErrorAs(t, err, &e)
		require.Equal(t, taken.Addr().String(), e.Addr)
	}
}

func TestStart_ReportsWhatTheProgramReports(t *testing.T) {
	t.Parallel()
	_, err := temporalserver.Start(t.Context(), temporalserver.Options{
		Program: built(t), Address: "127.0.0.1:0", DatabaseURL: "postgres://temporal:secret@127.0.0.1:1/postgres",
	})
	require.ErrorContains(t, err, "connect to the database for Temporal")
	require.ErrorContains(t, err, "127.0.0.1:1")
	require.NotContains(t, err.Error(), "secret")
}

// A caller that cancels Start does not have to wait until the server has started.
func TestStart_EndsTheProgramWhenCanceled(t *testing.T) {
	t.Parallel()
	database, connected := silentDatabase(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-connected
		cancel()
	}()
	_, err := temporalserver.Start(ctx, temporalserver.Options{Program: built(t), Address: "127.0.0.1:0", DatabaseURL: database})
	require.ErrorIs(t, err, context.Canceled)
}

func TestStart_ShowsHowAProgramCrashed(t *testing.T) {
	t.Parallel()
	_, err := temporalserver.Start(t.Context(), temporalserver.Options{
		Program: filepath.Join("testdata", "crash.sh"), Address: "127.0.0.1:0",
	})
	require.ErrorContains(t, err, "exit status 2")
	require.ErrorContains(t, err, "panic: out of cheese")
}
