package worker

import (
	"testing"

	"github.com/stretchr/testify/require"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/setting"
)

func TestDeployment_IsRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sdkworker.WorkerDeploymentVersion{
		"":                          {},
		"jig:2026-11-22":            {DeploymentName: "jig", BuildID: "2026-11-22"},
		"jig-blue_1:v1.2.3+4f0c":    {DeploymentName: "jig-blue_1", BuildID: "v1.2.3+4f0c"},
		"refused jig":               {},
		"refused jig:":              {},
		"refused :v1":               {},
		"refused jig.blue:v1":       {},
		"refused jig:v1:v2":         {},
		"refused jig:v 1":           {},
		"refused jig:--help":        {},
		"refused jig:$(touch file)": {},
	} {
		value, refused := text, false
		if len(text) > 8 && text[:8] == "refused " {
			value, refused = text[8:], true
		}
		r := reader{setting.Reader{Env: map[string]string{EnvDeployment: value}}}
		require.Equal(t, want, r.deployment(EnvDeployment), text)
		if refused {
			require.ErrorContains(t, r.Err(), "JIG_DEPLOYMENT is not NAME:BUILD", text)
			require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(r.Err()))
		} else {
			require.NoError(t, r.Err(), text)
		}
	}
}

// A worker without a version works as before. One with a version lets waiting sessions move on to the next version.
func TestWorkerOptions_Deployment(t *testing.T) {
	t.Parallel()
	require.Equal(t, sdkworker.DeploymentOptions{}, workerOptions(Settings{}, nil).DeploymentOptions)
	version := sdkworker.WorkerDeploymentVersion{DeploymentName: "jig", BuildID: "v1"}
	require.Equal(t, sdkworker.DeploymentOptions{
		UseVersioning: true, Version: version, DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	}, workerOptions(Settings{Deployment: version}, nil).DeploymentOptions)
	require.Equal(t, "temporal worker deployment set-current-version --deployment-name jig --build-id v1 --yes", makeCurrent(version))
}
