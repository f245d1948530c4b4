package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

// blocks returns the code blocks of a page that are in a language.
func blocks(t *testing.T, page, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", page))
	require.NoError(t, err)
	var found []string
	for _, block := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		if block[1] == language {
			found = append(found, block[2])
		}
	}
	require.NotEmpty(t, found, page)
	return found
}

// Every document and step on the page is valid with the tools that a worker has.
func TestCompositionsPage_IsValid(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	catalog, err := d.Catalog(t.Context(), jig.DefaultTenant)
	require.NoError(t, err)
	known := spec.Catalog{Tools: catalog.Tools, Agents: catalog.Agents, Skills: catalog.Skills}
	var docs []spec.Document
	load := func(file, body string) {
		doc, problems := spec.Load(file, []byte(body))
		require.Empty(t, problems, "%s", body)
		docs = append(docs, doc)
	}
	for _, example := range append(blocks(t, "docs/compositions.md", "yaml"), blocks(t, "README.md", "yaml")...) {
		if strings.HasPrefix(example, "- ") {
			example = "kind: composition\nname: page.example" + string(rune('A'+len(docs))) + "\ndescription: An example of a page, made whole for a test.\nsteps:\n" + example
		}
		load("example.yaml", example)
	}
	for _, example := range blocks(t, "docs/compositions.md", "markdown") {
		load("example.md", example)
	}
	require.Greater(t, len(docs), 8)
	require.Empty(t, spec.Check(docs, known))
}

// Follows the first example of the page step by step.
func TestCompositionsPage_FirstCompositionInTenMinutes(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	d.put("src/a.go", "package a\n// FIXME: this | that\n")
	d.put("notes.yaml", blocks(t, "docs/compositions.md", "yaml")[0])
	valid := d.jig("validate", "notes.yaml")
	require.Zero(t, valid.code, valid.out+valid.err)

	ran := d.jig("run", "notes.yaml", "--input", "word=FIXME", "--input", "path=src", "--no-wait")
	require.Equal(t, 3, ran.code, ran.out+ran.err)
	id := regexp.MustCompile(`ses_[a-z0-9-]+`).FindString(ran.out + ran.err)
	approved := d.jig("approve", id, "1.1/written")
	require.Zero(t, approved.code, approved.out+approved.err)
	require.JSONEq(t, `{"count":1,"list":"reports/todos.md"}`, string(d.output(id).Data))
	require.Equal(t, "# FIXME\n\n- `src/a.go` line 2\n", d.content("reports/todos.md"))

	// After registration, the composition is a tool.
	added := d.jig("catalog", "add", "notes.yaml", "--yes")
	require.Zero(t, added.code, added.out+added.err)
	none := d.jig("run", "notes.collectTodos", "--input", "word=XYZZY", "--input", "path=src", "--output", "json")
	require.Equal(t, 1, none.code, none.out+none.err)
	require.Contains(t, none.out, "nothing_found")
	require.Contains(t, none.out, "no file of src holds XYZZY")
	scheduled := d.schedule("--tool", "notes.collectTodos", "--input", "word=FIXME", "--cron", "0 7 * * 1-5")
	require.Equal(t, "notes.collectTodos", d.described(scheduled).Tool)
}

// Tests the composition in the README.
func TestReadme_CompositionRuns(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	d.put("heading.yaml", blocks(t, "README.md", "yaml")[0])
	d.put("README.md", "# jig\n\nmore\n")
	valid := d.jig("validate", "heading.yaml")
	require.Zero(t, valid.code, valid.out+valid.err)
	require.NotContains(t, valid.out, "warning")
	ran := d.jig("run", "heading.yaml", "--input", "path=README.md", "--yes", "--output", "json")
	require.Zero(t, ran.code, ran.out+ran.err)
	require.Contains(t, ran.out, `# jig`)
	require.Equal(t, "# jig", d.content("reports/heading.txt"))
}
