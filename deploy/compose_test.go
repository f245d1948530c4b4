package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
)

// load reads docker-compose.yml like Docker Compose, with only the passwords that the script generates as its environment.
func load(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	file := filepath.Join(t.TempDir(), "env")
	out, err := exec.CommandContext(t.Context(), "./generate-env.sh", file).CombinedOutput()
	require.NoError(t, err, string(out))
	project, err := project(t, cli.WithEnvFiles(file), cli.WithDotEnv, cli.WithProfiles(profiles))
	require.NoError(t, err)
	return project
}

func project(t *testing.T, more ...cli.ProjectOptionsFn) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../docker-compose.yml"},
		append([]cli.ProjectOptionsFn{cli.WithWorkingDirectory(".."), cli.WithInterpolation(true)}, more...)...)
	require.NoError(t, err)
	return options.LoadProject(t.Context())
}

// Outside development, nothing has a known password, lets everybody do everything, or trusts an unproved claim about who decides.
func TestCompose_HasNoUnsafeDefaults(t *testing.T) {
	t.Parallel()
	_, err := project(t)
	require.ErrorContains(t, err, "run deploy/generate-env.sh")

	seen := map[string]bool{}
	loaded := load(t)
	for _, name := range []string{"POSTGRES_PASSWORD", "JIG_OWNER_PASSWORD", "JIG_APP_PASSWORD", "JIG_SERVER_PASSWORD", "TEMPORAL_DB_PASSWORD"} {
		password := loaded.Services["postgres"].Environment[name]
		require.NotNil(t, password, name)
		require.Regexp(t, "^[0-9a-f]{48}$", *password, name)
		require.False(t, seen[*password], name)
		seen[*password] = true
	}
	worker := loaded.Services["worker"].Environment
	require.Equal(t, "signed", *worker["JIG_APPROVALS_SIGNALS"])
	require.Empty(t, *worker["JIG_PERMISSIONS"])
}

func TestGeneratedPasswords_AreNotReplaced(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "env")
	require.NoError(t, exec.CommandContext(t.Context(), "./generate-env.sh", file).Run())
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	out, err := exec.CommandContext(t.Context(), "./generate-env.sh", file).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "exists")
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestCompose_Loads(t *testing.T) {
	t.Parallel()
	always := []string{"keys", "migrate", "postgres", "server", "temporal", "temporal-schema", "temporal-setup", "ui", "worker"}
	require.ElementsMatch(t, always, load(t).ServiceNames())
	project := load(t, "metrics")
	require.ElementsMatch(t, append(always, "grafana", "prometheus"), project.ServiceNames())
	require.ElementsMatch(t, append(always, "api-key"), load(t, "tools").ServiceNames())
	require.ElementsMatch(t, []string{"postgres-data", "prometheus-data", "root-key", "server-key", "work"}, project.VolumeNames())
	for name, service := range project.Services {
		once := slices.Contains([]string{"api-key", "keys", "migrate", "temporal-schema", "temporal-setup"}, name)
		require.Equal(t, !once, service.HealthCheck != nil, "%s: a service that keeps running has a health check", name)
		for _, mount := range service.Volumes {
			if mount.Type == types.VolumeTypeBind {
				_, err := os.Stat(mount.Source)
				require.NoError(t, err, name)
			}
		}
		for on, dependency := range service.DependsOn {
			if dependency.Condition == types.ServiceConditionHealthy {
				require.NotNil(t, project.Services[on].HealthCheck, "%s waits for the health of %s", name, on)
			}
		}
		for _, port := range service.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, "%s is reachable from other machines", name)
		}
	}
}

// Workers and servers must not hold the owner's credentials, because row-level security would not apply to them, nor each other's.
func TestCompose_GivesEachProcessItsOwnRole(t *testing.T) {
	t.Parallel()
	project := load(t, "tools")
	for _, name := range []string{"server", "api-key"} {
		environment := project.Services[name].Environment
		require.NotContains(t, environment, "JIG_DATABASE_OWNER_URL", name)
		require.NotContains(t, environment, "JIG_DATABASE_URL", name)
		require.Contains(t, *environment["JIG_SERVER_DATABASE_URL"], "jig_server:", name)
	}
	require.Contains(t, project.Services["migrate"].Environment, "JIG_SERVER_DATABASE_URL", "migrating gives the role its rights")
	worker := project.Services["worker"].Environment
	require.NotContains(t, worker, "JIG_SERVER_DATABASE_URL")
	require.NotContains(t, worker, "JIG_DATABASE_OWNER_URL")
	require.Contains(t, *worker["JIG_DATABASE_URL"], "jig_app:")
	require.Contains(t, *project.Services["migrate"].Environment["JIG_DATABASE_OWNER_URL"], "jig_owner:")
}

// The first start makes the keys with which the server vouches for its users. Each process sees only its own, and the private root key is in no volume.
func TestCompose_VouchesFromTheFirstStart(t *testing.T) {
	t.Parallel()
	project := load(t)
	mounts := map[string]map[string]types.ServiceVolumeConfig{}
	for name, service := range project.Services {
		mounts[name] = map[string]types.ServiceVolumeConfig{}
		for _, mount := range service.Volumes {
			mounts[name][mount.Source] = mount
		}
	}
	made := strings.Join(project.Services["keys"].Command, " ")
	require.True(t, strings.HasPrefix(made, "server-key setup "), made)
	require.Contains(t, made, "--out "+*project.Services["server"].Environment["JIG_SERVER_KEY"])
	require.Contains(t, made, "--root-out "+*project.Services["worker"].Environment["JIG_ROOT_KEY_FILE"])
	for name, volume := range map[string]string{"server": "server-key", "worker": "root-key"} {
		require.True(t, mounts[name][volume].ReadOnly, name)
		require.Equal(t, mounts["keys"][volume].Target, mounts[name][volume].Target, name)
		require.Equal(t, types.ServiceConditionCompletedSuccessfully, project.Services[name].DependsOn["keys"].Condition, name)
	}
	for name := range project.Services {
		require.Equal(t, name == "server" || name == "keys", mounts[name]["server-key"].Source != "", name)
		require.Equal(t, name == "worker" || name == "keys", mounts[name]["root-key"].Source != "", name)
	}
	image, err := os.ReadFile("../Dockerfile")
	require.NoError(t, err)
	require.Contains(t, string(image), "--chown=65532:65532 /out/keys /keys", "user 65532 may write to the volumes")
}

// Prometheus finds the workers where they serve their metrics, nobody outside reaches them, and nobody can change anything in Grafana.
func TestMetricsProfile_ScrapesAndAlerts(t *testing.T) {
	t.Parallel()
	project := load(t, "metrics")
	worker := project.Services["worker"]
	require.Equal(t, ":9464", *worker.Environment["JIG_METRICS_ADDRESS"])
	require.Empty(t, worker.Ports)
	config, err := os.ReadFile("prometheus/prometheus.yml")
	require.NoError(t, err)
	require.Contains(t, string(config), "names: [worker]")
	require.Contains(t, string(config), "port: 9464")
	require.Contains(t, string(config), "job_name: jig")
	server := project.Services["server"]
	require.Equal(t, ":9465", *server.Environment["JIG_SERVER_METRICS_ADDRESS"])
	require.Contains(t, string(config), "names: [server]")
	require.Contains(t, string(config), "port: 9465")
	require.Contains(t, string(config), "job_name: jig-server")
	for _, port := range server.Ports {
		require.Equal(t, uint32(8480), port.Target, "nobody outside reaches the metrics")
	}
	grafana := project.Services["grafana"].Environment
	require.Equal(t, "Viewer", *grafana["GF_AUTH_ANONYMOUS_ORG_ROLE"])
	require.Equal(t, "true", *grafana["GF_AUTH_DISABLE_LOGIN_FORM"])
	require.Equal(t, "true", *grafana["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"])
}
