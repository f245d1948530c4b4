package client_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

func TestSettings_Precedence(t *testing.T) {
	t.Parallel()
	profile := filepath.Join(t.TempDir(), "temporal.toml")
	require.NoError(t, os.WriteFile(profile, []byte("[profile.default]\naddress = \"profile:1\"\nnamespace = \"profile\"\n"), 0o600))
	none := "TEMPORAL_CONFIG_FILE=" + filepath.Join(t.TempDir(), "none.toml")
	dev := map[string]string{client.EnvAddress: "dev:1", client.EnvTaskQueue: "dev-queue"}
	for name, row := range map[string]struct {
		request                           client.SettingsRequest
		address, namespace, queue, source string
	}{
		"default": {client.SettingsRequest{Environ: []string{none}}, client.DefaultAddress, "default", "jig", "default"},
		"make dev": {
			client.SettingsRequest{Environ: []string{none}, DevEnv: dev}, "dev:1", "default", "dev-queue", client.DevEnvFile,
		},
		"make dev in another folder": {
			client.SettingsRequest{Environ: []string{none}, DevEnv: dev, DevEnvPath: "/mine/.jig/dev.env"}, "dev:1", "default", "dev-queue", "/mine/.jig/dev.env",
		},
		"profile": {
			client.SettingsRequest{Environ: []string{"TEMPORAL_CONFIG_FILE=" + profile}, DevEnv: dev},
			"profile:1", "profile", "dev-queue", "Temporal's own settings",
		},
		"Temporal's environment": {
			client.SettingsRequest{Environ: []string{"TEMPORAL_CONFIG_FILE=" + profile, "TEMPORAL_ADDRESS=env:1"}, DevEnv: dev},
			"env:1", "profile", "dev-queue", "Temporal's own settings",
		},
		"our environment": {
			client.SettingsRequest{Environ: []string{"TEMPORAL_CONFIG_FILE=" + profile, "JIG_TEMPORAL_ADDRESS=jig:1", "JIG_TASK_QUEUE=q"}, DevEnv: dev},
			"jig:1", "profile", "q", client.EnvAddress,
		},
		"flag": {
			client.SettingsRequest{Environ: []string{none, "JIG_TEMPORAL_ADDRESS=jig:1"}, Address: "flag:1", Namespace: "n", TaskQueue: "f"},
			"flag:1", "n", "f", "--temporal-address",
		},
	} {
		s, err := client.LoadSettings(row.request)
		require.NoError(t, err, name)
		require.Equal(t, row.address, s.Temporal.HostPort, name)
		require.Equal(t, row.namespace, s.Temporal.Namespace, name)
		require.Equal(t, row.queue, s.TaskQueue, name)
		require.Equal(t, row.source, s.Source, name)
	}
	_, err := client.LoadSettings(client.SettingsRequest{Environ: []string{none, "TEMPORAL_PROFILE=missing"}})
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput})
}

func TestReadEnvFile_ReadsLines(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "dev.env")
	require.NoError(t, os.WriteFile(file, []byte("# written by make dev\nexport A=1\nB='two words'\nC=\"x=y\"\n\nD=\n"), 0o600))
	env, err := client.ReadEnvFile(file)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"A": "1", "B": "two words", "C": "x=y", "D": ""}, env)
	env, err = client.ReadEnvFile(file + ".none")
	require.NoError(t, err)
	require.Nil(t, env)
	_, err = client.ReadEnvFile(filepath.Dir(file))
	require.Error(t, err)
}

func TestDial_ReportsThatNothingAnswers(t *testing.T) {
	t.Parallel()
	_, err := client.Dial(t.Context(), client.Options{Temporal: sdk.Options{HostPort: "127.0.0.1:1"}})
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeUnavailable})
	require.ErrorContains(t, err, "no Temporal server answers at 127.0.0.1:1")
}
