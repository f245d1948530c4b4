package spec_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

// The pages that contain documents. The tests of package composition run the compositions on both pages.
const (
	page       = "../docs/spec.md"
	otherTools = "../docs/from-other-tools.md"
)

var fenced = regexp.MustCompile("(?ms)^```(yaml|markdown|text)\n(.*?)^```$")

// example is a fenced code block of a page.
type example struct{ language, text string }

func examplesOf(t *testing.T, file string) []example {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var all []example
	for _, block := range fenced.FindAllStringSubmatch(string(text), -1) {
		all = append(all, example{language: block[1], text: block[2]})
	}
	return all
}

// document returns the example as a file, and the number of lines that were added before it. The name is empty if the example is not a
// document.
func (e example) document() (name, text string, before int) {
	head := "kind: composition\nname: example\n"
	text, refused := strings.CutPrefix(e.text, "# refused\n")
	if refused {
		before--
	}
	switch {
	case e.language == "markdown" && strings.Contains(text, "model:"):
		return "example.md", text, before
	case e.language == "markdown":
		return "example/SKILL.md", text, before
	case strings.HasPrefix(text, "kind:"):
		return "example.yaml", text, before
	case strings.HasPrefix(text, "steps:"):
		return "example.yaml", head + text, before + strings.Count(head, "\n")
	}
	return "", "", 0
}

// Every example in the reference is read without problems, and those marked as refused are refused with the problems that they announce.
func TestReference_ExamplesAreRead(t *testing.T) {
	t.Parallel()
	kinds, refused := map[spec.Kind]int{}, map[string]bool{}
	examples := examplesOf(t, page)
	for i, e := range examples {
		name, text, before := e.document()
		if name == "" {
			continue
		}
		doc, problems := spec.Load(name, []byte(text))
		if strings.HasPrefix(e.text, "# refused\n") {
			var got []string
			for _, p := range problems {
				got = append(got, fmt.Sprintf("%d %s", p.Line-before, p.Code))
				refused[string(p.Code)] = true
			}
			require.ElementsMatch(t, announced(e.text), got, "%s\n%s", e.text, problems.Error())
			continue
		}
		require.Empty(t, problems, "%s", e.text)
		kinds[doc.Kind]++
		if doc.Agent() != nil {
			require.Equal(t, "text", examples[i+1].language, "the page does not show the output of jig explain for %s", doc.Agent().Name)
			explained := strings.ReplaceAll(spec.ExplainAgent(*doc.Agent()), jig.ShortVersion(doc.Agent().Version), "VERSION")
			require.Equal(t, explained, examples[i+1].text)
		}
	}
	for _, kind := range spec.Kinds() {
		require.Positive(t, kinds[kind], "no example of %s", kind)
	}
	require.Greater(t, kinds[spec.KindComposition], 20)
	require.Greater(t, len(refused), 12, "%v", refused)
}

var comment = regexp.MustCompile(`# ([A-Z_]+)$`)

// announced returns the problems that the comments in an example announce, each with line and code.
func announced(text string) []string {
	var all []string
	for i, line := range strings.Split(text, "\n") {
		if code := comment.FindStringSubmatch(line); code != nil {
			all = append(all, fmt.Sprintf("%d %s", i+1, code[1]))
		}
	}
	return all
}

// The jig side of each example on the page about other tools is read without problems.
func TestReference_ExamplesForOtherToolsAreRead(t *testing.T) {
	t.Parallel()
	found := 0
	for _, e := range examplesOf(t, otherTools) {
		if name, text, _ := e.document(); name != "" {
			_, problems := spec.Load(name, []byte(text))
			require.Empty(t, problems, "%s", e.text)
			found++
		}
	}
	require.GreaterOrEqual(t, found, 4)
}

// The page has every key that a document may have, and every problem code.
func TestReference_IsComplete(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	wanted := problemCodes(t)
	for _, kind := range spec.Kinds() {
		raw, err := spec.SchemaOf(kind)
		require.NoError(t, err)
		var schema any
		require.NoError(t, json.Unmarshal(raw, &schema))
		wanted = append(wanted, keysOf(schema)...)
	}
	missing := slices.DeleteFunc(wanted, func(word string) bool { return strings.Contains(string(text), "`"+word) })
	require.Empty(t, missing, "these keys and codes are not on the page")
}

// problemCodes returns the problem codes in the sources of the package.
func problemCodes(t *testing.T) []string {
	t.Helper()
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var all []string
	for _, file := range sources {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, code := range regexp.MustCompile(`ProblemCode\s+= "([A-Z_]+)"`).FindAllStringSubmatch(string(source), -1) {
			all = append(all, code[1])
		}
	}
	require.Contains(t, all, "CYCLE")
	require.Contains(t, all, "SYNTAX")
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

var (
	heading  = regexp.MustCompile("(?m)^#+ (.*)$")
	fences   = regexp.MustCompile("(?ms)^```.*?^```$")
	anchor   = regexp.MustCompile(`\]\(([^)#:]*)#([^)]+)\)`)
	nonWords = regexp.MustCompile(`[^\w\- ]`)
)

// Links from the two pages to sections lead to existing sections.
func TestReference_SectionsAreFound(t *testing.T) {
	t.Parallel()
	for _, file := range []string{page, otherTools} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		links := anchor.FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, links)
		for _, link := range links {
			target := file
			if link[1] != "" {
				target = filepath.Join(filepath.Dir(file), link[1])
			}
			require.Contains(t, sectionsOf(t, target), link[2], "%s links to a section that %s does not have", file, target)
		}
	}
}

// sectionsOf returns the anchors of a page's headings.
func sectionsOf(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	seen := map[string]int{}
	var all []string
	for _, h := range heading.FindAllStringSubmatch(fences.ReplaceAllString(string(text), ""), -1) {
		name := strings.ReplaceAll(nonWords.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")
		seen[name]++
		if n := seen[name]; n > 1 {
			name = fmt.Sprintf("%s-%d", name, n-1)
		}
		all = append(all, name)
	}
	return all
}

// keysOf lists the properties of a schema, at any depth.
func keysOf(schema any) []string {
	var keys []string
	switch s := schema.(type) {
	case []any:
		for _, one := range s {
			keys = append(keys, keysOf(one)...)
		}
	case map[string]any:
		if properties, ok := s["properties"].(map[string]any); ok {
			for key := range properties {
				keys = append(keys, key)
			}
		}
		for _, inner := range s {
			keys = append(keys, keysOf(inner)...)
		}
	}
	return keys
}
