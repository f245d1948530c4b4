package deploy_test

import (
	"slices"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
)

// load reads docker-compose.yml as compose does, without the environment of whoever runs the test.
func load(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../docker-compose.yml"}, cli.WithWorkingDirectory(".."), cli.WithInterpolation(true))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	return project
}

func TestComposeLoads(t *testing.T) {
	t.Parallel()
	project := load(t)
	require.ElementsMatch(t, []string{"migrate", "postgres", "temporal", "temporal-schema", "temporal-setup", "ui", "worker"}, project.ServiceNames())
	require.ElementsMatch(t, []string{"postgres-data", "work"}, project.VolumeNames())
	for name, service := range project.Services {
		once := slices.Contains([]string{"migrate", "temporal-schema", "temporal-setup"}, name)
		require.Equal(t, !once, service.HealthCheck != nil, "%s: what keeps running has a health check", name)
		for _, mount := range service.Volumes {
			if mount.Type == types.VolumeTypeBind {
				require.FileExists(t, mount.Source, name)
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

// The worker must not hold the owner's credentials: row-level security would not bind it.
func TestWorkerIsNotTheOwner(t *testing.T) {
	t.Parallel()
	project := load(t)
	worker := project.Services["worker"].Environment
	require.NotContains(t, worker, "JIG_DATABASE_OWNER_URL")
	require.Contains(t, *worker["JIG_DATABASE_URL"], "jig_app:")
	require.Contains(t, *project.Services["migrate"].Environment["JIG_DATABASE_OWNER_URL"], "jig_owner:")
}
