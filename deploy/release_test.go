package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// unit returns the settings of a systemd unit; of settings that occur several times, the last.
func unit(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	settings := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.HasPrefix(key, "#") {
			settings[key] = value
		}
	}
	return settings
}

func TestUnits_RunAsAUserOfTheirOwnAndStartAgain(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	for _, name := range []string{"worker", "server"} {
		u := unit(t, filepath.Join("systemd", "jig-"+name+".service"))
		require.Equal(t, "/usr/local/bin/jig "+name, u["ExecStart"])
		require.Equal(t, "/etc/jig/"+name+".env", u["EnvironmentFile"])
		require.Equal(t, "/var/lib/"+u["StateDirectory"], u["WorkingDirectory"])
		for key, want := range map[string]string{
			"User": "jig-" + name, "Restart": "on-failure", "NoNewPrivileges": "true", "ProtectSystem": "strict", "ProtectHome": "true", "UMask": "0077", "CapabilityBoundingSet": "",
		} {
			require.Equal(t, want, u[key], "%s: %s", name, key)
		}
		stop, err := time.ParseDuration(u["TimeoutStopSec"] + "s")
		require.NoError(t, err)
		require.Greater(t, stop, 20*time.Second, "longer than JIG_STOP_TIMEOUT")
		for key := range unit(t, filepath.Join("systemd", name+".env")) {
			require.Contains(t, string(page), "`"+key+"`", "%s.env", name)
		}
	}
}

// The images have nothing but what is in the archives, and do not run as root.
func TestReleaseImages_AreMadeOfTheReleasedPrograms(t *testing.T) {
	t.Parallel()
	release, err := os.ReadFile("../scripts/release.sh")
	require.NoError(t, err)
	files, err := filepath.Glob("images/*.Containerfile")
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		programs := regexp.MustCompile(`jig_\$\{VERSION\}_linux_\$\{TARGETARCH\}/(\S+)`).FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, programs, file)
		for _, program := range programs {
			require.Contains(t, string(release), `build "$folder" `+program[1]+" ", file)
		}
		require.Regexp(t, `(?m)^USER (65532:65532|postgres)$`, string(text), file)
	}
}

// The workflows for GitHub are well formed, and run commands that the Makefile has.
func TestWorkflows_RunTargetsOfTheMakefile(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	files, err := filepath.Glob("../.github/workflows/*.yml")
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var workflow struct {
			Jobs map[string]struct {
				Steps []struct {
					Uses string `yaml:"uses"`
					Run  string `yaml:"run"`
				} `yaml:"steps"`
			} `yaml:"jobs"`
		}
		require.NoError(t, yaml.Load(text, &workflow), file)
		targets := 0
		for _, job := range workflow.Jobs {
			for _, step := range job.Steps {
				require.NotEqual(t, step.Uses == "", step.Run == "", "%s: a step uses an action or runs a command", file)
				if target, found := strings.CutPrefix(step.Run, "make "); found {
					require.Regexp(t, "(?m)^"+regexp.QuoteMeta(target)+":", string(makefile), file)
					targets++
				}
			}
		}
		require.Positive(t, targets, file)
	}
}
