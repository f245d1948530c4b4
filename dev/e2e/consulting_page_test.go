package e2e_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

const consultingPage = "docs/consulting.md"

// consultingPageRunner follows the page. It remembers the output of the last commands and the ids that the next commands are about.
type consultingPageRunner struct {
	pageRunner
	session, entity     string
	engagement, summary string
}

// consultingStep describes a block of commands: a word in it, what must exist before it, its exit code, and what must hold afterwards.
type consultingStep struct {
	about string
	given func()
	code  int
	then  func()
}

// Every command on the page is run literally and does what the page says.
func TestConsultingPage_Works(t *testing.T) {
	t.Parallel()
	stock, tenant := filepath.Dir(shared.cli.path(t)), "firm-"+strings.ToLower(jig.NewSessionID()[20:])
	c := &consultingPageRunner{pageRunner: pageRunner{tenantEnv: tenantEnv{tenant: tenant, testEnv: startEnv(
		t, "PATH="+stock+":/usr/local/bin:/usr/bin:/bin", "HOME="+t.TempDir(), "JIG_TENANT="+tenant, "NO_COLOR=1", "JIG_PERMISSIONS=*",
	)}}}
	folder, err := filepath.Abs(filepath.Join("..", "..", "bundles", "consulting"))
	require.NoError(t, err)
	installed := c.jig("bundle", "install", folder, "--yes")
	require.Zero(t, installed.code, installed.out+installed.err)
	steps, ran := c.steps(), 0
	for _, f := range codeBlocks(t, consultingPage) {
		if f.language == "text" {
			heard := regexp.MustCompile(`ent_[\w-]+`).ReplaceAllString(c.last.out+c.last.err, "ent_…")
			require.Contains(t, strings.Split(heard, "\n"), strings.TrimSpace(f.body), "the page shows a line that the commands did not print")
			continue
		}
		require.Equal(t, "sh", f.language)
		require.Less(t, ran, len(steps), "the page has commands that this test has no step for:\n%s", f.body)
		s := steps[ran]
		require.Contains(t, f.body, s.about, "the steps of the test must follow the page")
		if s.given != nil {
			s.given()
		}
		about := strings.NewReplacer("ses_…", c.session, "ent_…", c.entity).Replace(f.body)
		c.last = c.command("bash", "-c", "set -e\n"+about)
		t.Logf("%s%s%s", about, c.last.out, c.last.err)
		require.Equal(t, s.code, c.last.code, "%s\n%s%s", about, c.last.out, c.last.err)
		if s.then != nil {
			s.then()
		}
		ran++
	}
	require.Equal(t, len(steps), ran, "the test has steps for commands that the page no longer has")
}

func (c *consultingPageRunner) steps() []consultingStep {
	return []consultingStep{
		{"consulting.loadSample", nil, 0, func() {
			found := regexp.MustCompile(`"sample-harbour": "(ent_[\w-]+)"`).FindStringSubmatch(c.last.out)
			require.NotNil(c.t, found, c.last.out)
			c.engagement, c.entity = found[1], found[1]
		}},
		{"generateExecutiveSummary", nil, 0, func() {
			c.session = c.first(`"session_id": "(ses_[\w-]+)"`)
			c.summary = c.first(`"entity_id": "(ent_[\w-]+)"`)
			c.entity = c.summary
		}},
		{"jig watch", nil, 0, func() { c.says("narrative", "citations")("") }},
		{"field=narrative", nil, 0, func() { c.says("Harbour Mutual: 2 of 3 pilots", "source_entity_ids")("") }},
		{"publishExecutiveSummary", nil, 3, func() { c.session = c.first(`(ses_[\w-]+)`); c.waits(c.session) }},
		{"jig approve", nil, 0, func() {
			c.ends(jig.CallSucceeded)(c.session)
			require.Contains(c.t, c.wrote("summaries", "harbour.md"), "## Claims")
		}},
		{"recordPilot", func() { c.entity = c.engagement }, 0, nil},
		{"mode=refresh", func() { c.entity = c.summary }, 0, func() {
			require.Contains(c.t, string(c.field("narrative")), "A portal for brokers: calls per week improved by 32.2%")
		}},
		{"recordEngagement", nil, 0, func() { c.entity = c.first(`"entity_id": "(ent_[\w-]+)"`) }},
		{"generateExecutiveSummary", nil, 1, nil},
	}
}

// first returns the first match of words in the output of the last commands.
func (c *consultingPageRunner) first(words string) string {
	c.t.Helper()
	found := regexp.MustCompile(words).FindStringSubmatch(c.last.out + c.last.err)
	require.NotNil(c.t, found, c.last.out+c.last.err)
	return found[1]
}

// field returns the value of a field of the summary.
func (c *consultingPageRunner) field(name string) json.RawMessage {
	c.t.Helper()
	read := c.trigger("entities.get", map[string]any{"id": c.summary, "field": name})
	require.Equal(c.t, jig.CallSucceeded, read.Status, "%+v", read.Result)
	return read.Result.Data
}
