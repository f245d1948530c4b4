package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

const (
	readmePage = "README.md"
	ciPage     = "docs/ci.md"
)

// newcomer returns somebody in an empty folder, who has jig and jig-dev on the PATH and no settings.
func newcomer(t *testing.T) *pageRunner {
	t.Helper()
	m := &pageRunner{tenantEnv: tenantEnv{tenant: jig.DefaultTenant, testEnv: isolatedEnv(t)}}
	m.env = append(m.env, "NO_COLOR=1", "PATH="+strings.Join(
		[]string{filepath.Dir(shared.cli.path(t)), filepath.Dir(shared.dev.path(t)), os.Getenv("PATH")}, string(os.PathListSeparator)))
	return m
}

// Every main job of the README works from the README alone: somebody starts everything, runs and approves an agent's call, denies another one, registers and
// schedules a composition, and does the same over HTTP. Only jig-dev gets free ports, because tests run beside it.
func TestReadme_Works(t *testing.T) {
	t.Parallel()
	m := newcomer(t)
	const report = "reports/inventory.md"
	var servers *backgroundProcess
	steps := []pageStep{
		{"jig-dev", 0, nil},
		{"--id first", 3, func() { require.NoFileExists(t, filepath.Join(m.dir, report)) }},
		{"jig approve first", 0, func() {
			require.Contains(t, m.last.out, "The list is in reports/inventory.md.")
			require.Contains(t, m.content(report), "- inventory.md")
			require.NoError(t, os.Remove(filepath.Join(m.dir, report)))
		}},
		{"--id second", 3, nil},
		{"jig deny second", 0, func() {
			require.Contains(t, m.last.out+m.last.err, "not before the release")
			require.NoFileExists(t, filepath.Join(m.dir, report))
		}},
		{"jig trigger notes.copyHeading", 0, func() {
			require.Equal(t, "---", m.content("reports/heading.txt"))
			require.Equal(t, "notes.copyHeading", m.described("headings").Tool)
		}},
		{"jig catalog add inventory.md", 0, nil},
	}
	ran := 0
	for _, f := range codeBlocks(t, readmePage) {
		switch f.language {
		case "markdown":
			m.put("inventory.md", f.body)
		case "yaml":
			m.put("heading.yaml", f.body)
		case "python":
			m.put("approve.py", f.body)
		case "sh":
			require.Less(t, ran, len(steps), "the page has commands that this test has no step for:\n%s", f.body)
			step := steps[ran]
			ran++
			require.Contains(t, f.body, step.about, "the steps of the test must follow the page")
			if servers == nil {
				servers = m.background(strings.TrimSpace(f.body) + " " + strings.Join(anywhere, " "))
				servers.says(t, "jig is ready")
				continue
			}
			m.run(f.body, "", step.code)
			if step.then != nil {
				step.then()
			}
		}
	}
	require.Len(t, steps, ran, "the test has steps for commands that the page no longer has")
	if _, err := exec.LookPath("python3"); err == nil {
		m.run("set -a; . .jig/dev.env; set +a; python3 approve.py", "", 0)
		require.Contains(t, m.last.out, "event: tool.needs_approval\napproving ")
		require.True(t, strings.HasSuffix(m.last.out, "\ncompleted\n"), m.last.out)
		require.FileExists(t, filepath.Join(m.dir, report))
	}
	servers.end(t)
}

// The commands that begin a project of one's own are those of its page, which a test runs.
func TestReadme_WriteAToolHasThePagesCommands(t *testing.T) {
	t.Parallel()
	readme := textOf(t, filepath.Join("..", "..", readmePage))
	_, after, found := strings.Cut(readme, "```\njig init shop && cd shop\n")
	require.True(t, found)
	commands, _, _ := strings.Cut(after, "```")
	page := strings.Join(blocks(t, ownWorkerPage, "sh"), "")
	for line := range strings.Lines(commands) {
		command, _, _ := strings.Cut(line, "  #")
		require.Contains(t, page, strings.TrimSpace(command)+"\n")
	}
}

// The command on the page, run in a folder with the page's files, works. It fails if the policy, the agent or the composition does not do what the script
// expects.
func TestCIPage_Works(t *testing.T) {
	t.Parallel()
	m := newcomer(t)
	var command string
	for _, f := range codeBlocks(t, ciPage) {
		switch f.language {
		case "sh":
			require.Empty(t, command, "the page has one command")
			command = f.body
		case "bash":
			m.put("ci.sh", f.body)
		case "markdown":
			m.put("notes.md", f.body)
		case "yaml":
			name := "tidy.yaml"
			if strings.HasPrefix(f.body, "kind: policy") {
				name = "guard.yaml"
			}
			require.Contains(t, f.before, "`"+name+"`")
			m.put(name, f.body)
		}
	}
	m.run(command, "", 0)
	require.Equal(t, "The tests pass.", m.content("reports/tidy.txt"))
	require.NoFileExists(t, filepath.Join(m.dir, "secrets.txt"))
	require.NoDirExists(t, filepath.Join(m.dir, ".jig", "data"), "nothing stays")

	m.put("ci.sh", strings.Replace(m.content("ci.sh"), "word=tests", "word=bears", 1))
	failed := m.command("bash", "-c", command)
	require.Equal(t, 1, failed.code, "%s%s", failed.out, failed.err)
}
