package jig_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/spec"
)

// The engine accepts the agent file shown in the README.
func TestReadme_AgentIsValid(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```markdown\n(.*?)```").FindSubmatch(readme)
	require.NotNil(t, block, "the README shows no agent file")
	agent, problems := spec.CheckAgent("README.md", block[1])
	require.Empty(t, problems)
	require.NotEmpty(t, agent.Name)
}

// The composition shown in the README is valid, and the code compiles.
func TestReadme_CodeCompiles(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	example, err := os.ReadFile("worker/example_test.go")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```(go|yaml)\n(.*?)```").FindAllSubmatch(readme, -1)
	require.Len(t, blocks, 2)
	for _, block := range blocks {
		if string(block[1]) == "go" {
			require.Contains(t, string(example), string(block[2]), "worker/example_test.go has the README's code")
			continue
		}
		_, problems := spec.Load("README.yaml", block[2])
		require.Empty(t, problems)
	}
}

func TestDocumentation_LinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/decisions/*.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, found := range link.FindAllStringSubmatch(string(text), -1) {
				_, err := os.Stat(filepath.Join(filepath.Dir(file), found[1]))
				require.NoError(t, err, "%s links to %s", file, found[1])
			}
		}
	}
}
