package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/starter"
	"github.com/jig-run/jig/worker"
)

// These are the exit codes of the command line.
const (
	exitDone     = 0
	exitSettings = 2
)

func program(environ []string, stdout, stderr io.Writer, args ...string) starter.Program {
	return starter.Program{Args: args, Environ: environ, Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr, Processes: processes}
}

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	environ = append([]string{"JIG_DEV_ENV="}, environ...) // a development server in this checkout is not used
	return program(environ, stdout, stderr, append([]string{"jig"}, args...)...).Run(ctx)
}

func TestExitCodes_TellUsageFromFailure(t *testing.T) {
	t.Parallel()
	environ := []string{"TEMPORAL_CONFIG_FILE=" + filepath.Join(t.TempDir(), "none.toml"), "JIG_WORKDIR=" + t.TempDir()}
	for name, row := range map[string]struct {
		args    []string
		environ []string
		code    int
		says    string
	}{
		"no database":            {[]string{"worker"}, nil, exitSettings, "JIG_DATABASE_URL is not set"},
		"dead database":          {[]string{"worker"}, []string{"JIG_DATABASE_URL=postgres://jig_app:hidden@127.0.0.1:1/jig", "JIG_START_TIMEOUT=1ms"}, exitSettings, "127.0.0.1"},
		"dead server's database": {[]string{"server"}, []string{"JIG_SERVER_DATABASE_URL=postgres://jig_server:hidden@127.0.0.1:1/jig", "JIG_START_TIMEOUT=1ms"}, exitSettings, "127.0.0.1"},
		"bad database URL":       {[]string{"worker"}, []string{"JIG_DATABASE_URL=::"}, exitSettings, "JIG_DATABASE_URL"},
		"bad setting":            {[]string{"worker"}, []string{"JIG_LOG_LEVEL=loud"}, exitSettings, "JIG_LOG_LEVEL"},
		"migrate nothing":        {[]string{"migrate"}, nil, exitSettings, "JIG_DATABASE_OWNER_URL is not set"},
		"mark nothing":           {[]string{"mark-restored"}, nil, exitSettings, "JIG_DATABASE_URL is not set"},
		"unknown command":        {[]string{"migrat"}, nil, exitSettings, "migrat"},
		"unknown flag":           {[]string{"worker", "--nope"}, nil, exitSettings, "--nope"},
		"too much":               {[]string{"worker", "migrate"}, nil, exitSettings, "migrate"},
		"help of the whole":      {[]string{"--help"}, nil, exitDone, ""},
		"help of one":            {[]string{"worker", "--help"}, nil, exitDone, ""},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), row.args, append(environ, row.environ...), &stdout, &stderr)
		require.Equal(t, row.code, code, "%s: %s", name, stderr.String())
		require.NotContains(t, stderr.String(), "goroutine ", name)
		require.NotContains(t, stderr.String(), "hidden", "%s: the password", name)
		if row.code != exitDone {
			require.Equal(t, 1, strings.Count(stderr.String(), "error: "), "%s: %s", name, stderr.String())
			require.Contains(t, stderr.String(), row.says, name)
		}
	}
}

// The global flags count for the worker, too, and come before the environment.
func TestWorker_GlobalFlagsComeBeforeTheEnvironment(t *testing.T) {
	t.Parallel()
	var got worker.Settings
	p := program([]string{"TEMPORAL_CONFIG_FILE=" + filepath.Join(t.TempDir(), "none.toml"), "JIG_TASK_QUEUE=env", "JIG_DATABASE_URL=postgres://env"},
		io.Discard, io.Discard, "jig", "worker", "--temporal-address", "flag:1", "--namespace", "ns", "--task-queue", "flag")
	p.Processes = func(shell starter.Shell) []*cobra.Command {
		return []*cobra.Command{{Use: "worker", RunE: func(*cobra.Command, []string) (err error) {
			got, err = settingsOf(shell)
			return err
		}}}
	}
	require.Equal(t, exitDone, p.Run(t.Context()))
	require.Equal(t, "flag:1", got.Temporal.Temporal.HostPort)
	require.Equal(t, "ns", got.Temporal.Temporal.Namespace)
	require.Equal(t, "flag", got.Temporal.TaskQueue)
	require.Equal(t, "postgres://env", got.DatabaseURL)
}
