package jig_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Files that list the documentation: for people, and for models in the form of llmstxt.org. The server serves its copy of the latter.
const (
	docsIndex  = "docs/README.md"
	modelIndex = "llms.txt"
	servedList = "internal/httpapi/llms.txt"
)

// published is where the pages of the documentation can be read as Markdown.
const published = "https://raw.githubusercontent.com/jig-run/jig/main/"

// docsPage is a page of the documentation.
type docsPage struct{ file, title, about string }

var (
	markdownLink = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`)
	sentenceEnd  = regexp.MustCompile(`^.{20,}?[^.]\.(?: [A-Z]| jig |$)`)
)

// docsPages lists the pages: each with its heading and the first sentence of its first paragraph.
func docsPages(t *testing.T) []docsPage {
	t.Helper()
	files, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	var pages []docsPage
	for _, file := range files {
		if file == docsIndex {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		heading, rest, _ := strings.Cut(string(text), "\n")
		title, found := strings.CutPrefix(heading, "# ")
		require.True(t, found, "%s: begin it with a heading", file)
		about := ""
		for paragraph := range strings.SplitSeq(rest, "\n\n") {
			if paragraph = strings.Join(strings.Fields(paragraph), " "); paragraph != "" && !strings.ContainsAny(paragraph[:1], "<|#-") && !strings.HasPrefix(paragraph, "```") {
				about = strings.ReplaceAll(markdownLink.ReplaceAllString(paragraph, "$1"), "**", "")
				break
			}
		}
		if sentence := sentenceEnd.FindString(about); sentence != "" {
			about = strings.TrimRight(sentence[:strings.LastIndex(sentence, ".")+1], " ")
		}
		require.NotEmpty(t, about, "%s: begin it with a sentence that says what it is about", file)
		pages = append(pages, docsPage{filepath.ToSlash(file), title, about})
	}
	return pages
}

// The indexes list every page, with what it is about. `go test . -run DocsIndex -update` writes them.
func TestDocsIndex_IsUpToDate(t *testing.T) {
	t.Parallel()
	var people, models strings.Builder
	people.WriteString("# Documentation\n\n<!-- go test . -run DocsIndex -update writes this page from the headings and first sentences of the others. -->\n\n")
	models.WriteString("# jig\n\n> jig runs the tool calls of agents, people and programs durably, on Temporal and PostgreSQL. Each effect happens once, calls that write wait until\n" +
		"> somebody approves them, and afterwards it can be proved who did.\n\n## Documentation\n\n")
	for _, p := range docsPages(t) {
		fmt.Fprintf(&people, "- [%s](%s): %s\n", p.title, strings.TrimPrefix(p.file, "docs/"), p.about)
		fmt.Fprintf(&models, "- [%s](%s%s): %s\n", p.title, published, p.file, p.about)
	}
	people.WriteString("\n[Decisions](decisions) say why jig is built this way. Models find this list as `llms.txt`, which `jig server` also serves.\n")
	models.WriteString("\n## Reference\n\n- [OpenAPI document](/openapi.json): every operation of a server, on the server itself\n- [README](" + published + "README.md): what jig is, and the first steps\n")
	for file, want := range map[string]string{docsIndex: people.String(), modelIndex: models.String(), servedList: models.String()} {
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(want), 0o600))
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, want, string(text), "%s: run go test . -run DocsIndex -update", file)
	}
}
