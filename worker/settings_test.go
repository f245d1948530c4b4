package worker_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/worker"
)

// environ returns an environment in which Temporal finds no configuration file.
func environ(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{"TEMPORAL_CONFIG_FILE=" + filepath.Join(t.TempDir(), "none.toml")}, more...)
}

func load(t *testing.T, dev map[string]string, more ...string) (worker.Settings, error) {
	t.Helper()
	return worker.ReadSettings(client.SettingsRequest{Environ: environ(t, more...), DevEnv: dev})
}

func TestSettings_HaveDefaults(t *testing.T) {
	t.Parallel()
	s, err := load(t, nil)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:7233", s.Temporal.Temporal.HostPort)
	require.Equal(t, "jig", s.Temporal.TaskQueue)
	require.Empty(t, s.Workdir, "no default folder would suit everybody")
	require.Equal(t, slog.LevelInfo, s.LogLevel)
	require.Equal(t, 20*time.Second, s.StopTimeout)
	require.Equal(t, 15*time.Minute, s.RetryFor)
	require.Equal(t, 1500, s.WorkflowCache)
	require.False(t, s.LogJSON)
	require.False(t, s.AllowLoopback)
	require.Empty(t, s.AllowHosts)
	require.Empty(t, s.DatabaseURL)
	require.Equal(t, []jig.Proof{jig.ProofKey, jig.ProofClaimed}, []jig.Proof{s.Proof, s.Starts}, "claims of signals are not trusted by default")
	require.Empty(t, s.Signals)
}

func TestSettings_ReadRootKeys(t *testing.T) {
	t.Parallel()
	one, two := strings.Repeat("A", 43)+"=", strings.Repeat("B", 42)+"A="
	s, err := load(t, nil, "JIG_DATABASE_URL=postgres://env", "JIG_ROOT_KEY="+one+", "+two)
	require.NoError(t, err)
	require.Len(t, s.RootKeys, 2)
	_, err = load(t, nil, "JIG_DATABASE_URL=postgres://env", "JIG_ROOT_KEY="+one+",")
	require.ErrorContains(t, err, "JIG_ROOT_KEY is not a public key")

	file := filepath.Join(t.TempDir(), "root.pub")
	_, err = load(t, nil, "JIG_DATABASE_URL=postgres://env", "JIG_ROOT_KEY_FILE="+file)
	require.ErrorContains(t, err, "JIG_ROOT_KEY_FILE is not a file with a public key")
	require.NoError(t, os.WriteFile(file, []byte(one+"\n"), 0o600))
	s, err = load(t, nil, "JIG_DATABASE_URL=postgres://env", "JIG_ROOT_KEY_FILE="+file)
	require.NoError(t, err)
	require.Len(t, s.RootKeys, 1)
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	_, err = load(t, nil, "JIG_DATABASE_URL=postgres://env", "JIG_ROOT_KEY_FILE="+file)
	require.ErrorContains(t, err, "JIG_ROOT_KEY_FILE", "an empty file is no reason to run without a key")
}

func TestSettings_EnvironmentBeforeDevFile(t *testing.T) {
	t.Parallel()
	dev := map[string]string{"JIG_DATABASE_URL": "postgres://dev", "JIG_TEMPORAL_ADDRESS": "dev:1", "JIG_WORKDIR": "/dev", "JIG_WORKDIR_DEFAULT": "."}
	s, err := load(t, dev,
		"JIG_DATABASE_URL=postgres://env", "JIG_HTTP_ALLOW_LOOPBACK=true", "JIG_HTTP_ALLOW_HOSTS=search.inside, 10.0.0.7:8080", "JIG_LOG_LEVEL=debug", "JIG_LOG_FORMAT=json", "JIG_STOP_TIMEOUT=1m",
		"OPENAI_BASE_URL=http://127.0.0.1:11434/v1", "ANTHROPIC_API_KEY=k",
		"JIG_APPROVALS_SIGNALS=trusted", "JIG_PERMISSIONS=entities.*.read, web.use",
	)
	require.NoError(t, err)
	require.Equal(t, "postgres://env", s.DatabaseURL)
	require.Equal(t, "dev:1", s.Temporal.Temporal.HostPort)
	require.Equal(t, []string{"/dev", "."}, []string{s.Workdir, s.DefaultWorkdir})
	own, err := load(t, dev, "JIG_WORKDIR=/own")
	require.NoError(t, err)
	require.Equal(t, []string{"/own", ""}, []string{own.Workdir, own.DefaultWorkdir}, "jig-dev's folder does not apply together with another base folder")
	require.True(t, s.AllowLoopback)
	require.Equal(t, []string{"search.inside", "10.0.0.7:8080"}, s.AllowHosts)
	require.True(t, s.LogJSON)
	require.Equal(t, slog.LevelDebug, s.LogLevel)
	require.Equal(t, time.Minute, s.StopTimeout)
	require.Equal(t, "http://127.0.0.1:11434/v1", s.OpenAI.BaseURL)
	require.Equal(t, "k", s.Anthropic.APIKey)
	require.Equal(t, tenancy.SignalsTrusted, s.Signals)
	require.Equal(t, []string{"entities.*.read", "web.use"}, s.Permissions)

	var log bytes.Buffer
	s.Logger(&log).Debug("hello")
	require.True(t, strings.HasPrefix(log.String(), "{"), log.String())
}

// A program that runs in the folder of `make dev` needs no settings of its own.
func TestSettings_OfTheDevelopmentServer(t *testing.T) { //nolint:paralleltest // it changes the working directory
	t.Chdir(t.TempDir())
	s, err := worker.LoadSettings(environ(t))
	require.NoError(t, err)
	require.Empty(t, s.DatabaseURL, "there is no file")

	require.NoError(t, os.Mkdir(filepath.Dir(client.DevEnvFile), 0o700))
	require.NoError(t, os.WriteFile(client.DevEnvFile, []byte("JIG_DATABASE_URL='postgres://dev'\nJIG_TEMPORAL_ADDRESS='dev:1'\n"), 0o600))
	s, err = worker.LoadSettings(environ(t, "JIG_TEMPORAL_ADDRESS=env:2"))
	require.NoError(t, err)
	require.Equal(t, "postgres://dev", s.DatabaseURL)
	require.Equal(t, "env:2", s.Temporal.Temporal.HostPort)

	dir, err := os.Getwd()
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	s, err = worker.LoadSettings(environ(t, "JIG_DEV_ENV="+filepath.Join(dir, client.DevEnvFile)))
	require.NoError(t, err)
	require.Equal(t, "postgres://dev", s.DatabaseURL)
	require.Equal(t, "dev:1", s.Temporal.Temporal.HostPort)
}

func TestSettings_NamesBadOnesWithoutTheirValues(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{
		"JIG_LOG_LEVEL=secret", "JIG_LOG_FORMAT=secret", "JIG_STOP_TIMEOUT=secret", "JIG_WORKFLOW_CACHE=secret", "JIG_HTTP_ALLOW_LOOPBACK=secret",
		"JIG_DATABASE_MAX_CONNS=0", "JIG_WORKFLOW_TASKS=secret", "JIG_APPROVALS_SIGNALS=secret", "JIG_TEMPORAL_COMPRESSION=secret",
		"JIG_MODELS_UNSTREAMED=secret",
	} {
		name, value, _ := strings.Cut(entry, "=")
		_, err := load(t, nil, entry)
		require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput}, entry)
		require.ErrorContains(t, err, name)
		if value == "secret" {
			require.NotContains(t, err.Error(), value)
		}
		require.Contains(t, worker.Describe(), name, "the help lists it")
	}
}

// One start is enough to learn of every mistake.
func TestSettings_ReportsBadOnesTogether(t *testing.T) {
	t.Parallel()
	_, err := load(t, nil, "JIG_LOG_LEVEL=loud", "JIG_STOP_TIMEOUT=soon", "JIG_WORKFLOW_CACHE=big")
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
	require.Equal(t, "JIG_LOG_LEVEL is not info or debug or warn or error; "+
		"JIG_STOP_TIMEOUT is not a duration such as 20s or 1m; JIG_WORKFLOW_CACHE is not a whole number of at least 1", jig.AsError(err).Message)
	require.Equal(t, "JIG_LOG_LEVEL", jig.AsError(err).Field)
}

func TestStart_SaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	s, err := load(t, nil)
	require.NoError(t, err)
	_, err = worker.Start(t.Context(), s, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "JIG_DATABASE_URL is not set")
	require.ErrorContains(t, worker.Migrate(t.Context(), s), "JIG_DATABASE_OWNER_URL is not set")

	s.DatabaseURL = "postgres://jig_app:hidden@127.0.0.1:1/jig?connect_timeout=2"
	s.Workdir = t.TempDir()
	_, err = worker.Start(t.Context(), s, slog.New(slog.DiscardHandler))
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hidden", "the password")
}

// docs/operations.md lists every setting that the worker's help lists.
func TestSettings_AreAllOnThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "docs", "operations.md"))
	require.NoError(t, err)
	names := regexp.MustCompile(`(?m)^ *([A-Z]+_[A-Z_]+) `).FindAllStringSubmatch(worker.Describe(), -1)
	require.Greater(t, len(names), 20)
	for _, name := range names {
		require.Contains(t, string(page), "`"+name[1]+"`")
	}
}
