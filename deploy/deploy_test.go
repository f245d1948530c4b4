package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

func TestDynamicConfig_IsWellFormed(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("dynamicconfig.yaml")
	require.NoError(t, err)
	var settings map[string][]struct {
		Value any `yaml:"value"`
	}
	require.NoError(t, yaml.Load(raw, &settings, yaml.WithKnownFields()))
	for _, name := range []string{"history.transferProcessorMaxPollRPS", "history.visibilityProcessorMaxPollRPS", "history.workflowIdReuseMinimalInterval", "system.enableActivityEagerExecution", "matching.enableFairness"} {
		require.Len(t, settings[name], 1, name)
		require.NotNil(t, settings[name][0].Value, name)
	}
}

func TestSetup_NamesEverySearchAttribute(t *testing.T) {
	t.Parallel()
	messages, err := os.ReadFile("../internal/protocol/names.go")
	require.NoError(t, err)
	setup, err := os.ReadFile("temporal-setup.sh")
	require.NoError(t, err)
	attributes := regexp.MustCompile(`= "(Jig[A-Za-z]+)"`).FindAllStringSubmatch(string(messages), -1)
	require.NotEmpty(t, attributes)
	for _, attribute := range attributes {
		require.Contains(t, string(setup), "--name "+attribute[1]+" ")
	}
}

func TestImage_RunsWithoutRoot(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../Dockerfile")
	require.NoError(t, err)
	last := strings.Split(string(raw), "\nFROM ")
	require.Contains(t, last[len(last)-1], "\nUSER 65532:65532\n")
	require.Contains(t, string(raw), "CGO_ENABLED=0")
	scripts, err := filepath.Glob("*.sh")
	require.NoError(t, err)
	for _, script := range scripts {
		body, err := os.ReadFile(script)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(body), "#!/bin/sh\n"), script)
		require.Contains(t, string(body), "\nset -eu\n", script)
	}
}
