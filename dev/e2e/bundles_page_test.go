package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

const (
	bundlesPage = "docs/bundles.md"
	firstBundle = "Write your first bundle in ten minutes"
)

// pageFile matches the name of a file in the text before a document.
var pageFile = regexp.MustCompile("`(reading/[\\w.]+\\.yaml)`")

// bundlesPageRunner follows the page about bundles. It remembers the article that the page creates and the output of the last commands.
type bundlesPageRunner struct {
	pageRunner
	article spec.ThinResult
	// before is the version of the policies without the bundle's policy.
	before string
}

// Every document on the page is written to its file, and every command on it is run literally and prints what the page shows.
func TestBundlesPage_Works(t *testing.T) {
	t.Parallel()
	stock, tenant := filepath.Dir(shared.cli.path(t)), "reader-"+strings.ToLower(jig.NewSessionID()[20:])
	r := &bundlesPageRunner{pageRunner: pageRunner{tenantEnv: tenantEnv{tenant: tenant, testEnv: startEnv(
		t, "PATH="+stock+":/usr/local/bin:/usr/bin:/bin", "HOME="+t.TempDir(), "JIG_TENANT="+tenant, "NO_COLOR=1", "JIG_PERMISSIONS=*",
	)}}}
	r.dir = r.workdir() // the page works in the folder that the tools see
	require.NoError(t, os.MkdirAll(r.dir, 0o755))
	r.before = r.rulings()
	steps, ran := r.steps(), 0
	for _, f := range codeBlocks(t, bundlesPage) {
		if f.section != firstBundle {
			require.Equal(t, "yaml", f.language, "the test runs no other blocks of the page")
			_, problems := spec.Load("tenant.yaml", []byte(f.body))
			require.Empty(t, problems)
			continue
		}
		switch f.language {
		case "yaml":
			names := pageFile.FindAllStringSubmatch(f.before, -1)
			require.NotEmpty(t, names, "the text before a document names its file:\n%s", f.body)
			r.put(names[len(names)-1][1], f.body)
		case "text":
			r.shows(f)
		case "sh":
			require.Less(t, ran, len(steps), "the page has commands that this test has no step for:\n%s", f.body)
			require.Contains(t, f.body, steps[ran].about, "the steps of the test must follow the page")
			r.follow(f.body, steps[ran].code)
			if steps[ran].then != nil {
				steps[ran].then()
			}
			ran++
		default:
			require.Fail(t, "this test cannot run blocks of this language", f.language)
		}
	}
	require.Equal(t, len(steps), ran, "the test has steps for commands that the page no longer has")
}

// pageStep describes a block of commands: a word in it, its exit code, and what must hold afterwards.
type pageStep struct {
	about string
	code  int
	then  func()
}

func (r *bundlesPageRunner) steps() []pageStep {
	return []pageStep{
		{"jig validate reading", 0, nil},
		{"jig bundle install", 0, r.forbids},
		{"jig trigger article.add", 0, r.adds},
		{"jig watch", 0, func() { r.hears("tasks", "minutes") }},
		{"entities.get", 0, func() { r.hears("1") }},
		{"secrets.md", 4, nil},
		{"name: pages", 0, nil},
		{"mode=retry", 0, func() { require.Equal(r.t, "1", r.field("pages")) }},
		{"string(tasks.words)", 1, func() {
			r.hears("article.minutes", "its type is text; it was number")
			require.Equal(r.t, "1", r.field("minutes"))
		}},
		{"jig bundle remove", 0, r.isGone},
	}
}

// follow runs commands as they are on the page, with the ids of what the page has created.
func (r *bundlesPageRunner) follow(commands string, code int) {
	r.t.Helper()
	about := strings.NewReplacer("ses_…", r.article.SessionID, "ent_…", r.article.EntityID).Replace(commands)
	require.NotContains(r.t, about, "…")
	r.last = r.command("bash", "-c", "set -e\n"+about)
	r.t.Logf("%s%s%s", about, r.last.out, r.last.err)
	require.Equal(r.t, code, r.last.code, "%s\n%s%s", about, r.last.out, r.last.err)
}

// hears checks that the output of the last commands contains words.
func (r *bundlesPageRunner) hears(words ...string) {
	r.t.Helper()
	for _, word := range words {
		require.Contains(r.t, r.last.out+r.last.err, word)
	}
}

// rulings returns the version of the policies that currently apply to a call.
func (r *bundlesPageRunner) rulings() string {
	r.t.Helper()
	id := r.written("a.md")()
	version := r.waiting(id).Pending[0].PolicyVersion
	r.decided(id, jig.Decision{By: "ana", Answer: jig.AnswerDeny})
	return version
}

// forbids waits until the bundle's policy takes effect, which takes at most a second.
func (r *bundlesPageRunner) forbids() {
	r.t.Helper()
	require.True(r.t, eventually(r.t.Context(), patience, func() bool { return r.rulings() != r.before }))
}

// adds reads the created article and checks that the same path gives the same article again.
func (r *bundlesPageRunner) adds() {
	r.t.Helper()
	require.NoError(r.t, json.Unmarshal([]byte(r.last.out), &r.article), r.last.out)
	require.True(r.t, r.article.Created)
	again := r.trigger("article.add", map[string]any{"path": "notes/coffee.md"})
	require.Equal(r.t, jig.CallSucceeded, again.Status, "%+v", again.Result)
	var same spec.ThinResult
	require.NoError(r.t, json.Unmarshal(again.Result.Data, &same))
	require.Equal(r.t, r.article.EntityID, same.EntityID)
	require.False(r.t, same.Created)
}

// field returns the value of a field of the article.
func (r *bundlesPageRunner) field(name string) string {
	r.t.Helper()
	got := r.trigger("entities.get", map[string]any{"id": r.article.EntityID, "field": name})
	require.Equal(r.t, jig.CallSucceeded, got.Status, "%+v", got.Result)
	var data struct {
		Value json.RawMessage `json:"value"`
	}
	require.NoError(r.t, json.Unmarshal(got.Result.Data, &data))
	return string(data.Value)
}

// isGone checks that nothing of the bundle is left, and that the article is back after the bundle is installed again.
func (r *bundlesPageRunner) isGone() {
	r.t.Helper()
	r.hears("1.1.0", "article.add", "reading-rules")
	gone := r.jig("trigger", "article.add", "--input", "path=notes/coffee.md")
	require.Equal(r.t, 1, gone.code)
	require.Contains(r.t, gone.err, "there is no tool")
	require.NotContains(r.t, r.jig("catalog").out, "article")
	r.command("bash", "-c", "sed -i 's/minutes, type: text/minutes, type: number, integer: true/; s/string(tasks.words)/tasks.words/' reading/article.yaml")
	again := r.jig("bundle", "install", "reading", "--yes")
	require.Zero(r.t, again.code, again.out+again.err)
	require.Equal(r.t, "1", r.field("minutes"))
}
