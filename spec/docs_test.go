package spec_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/spec"
)

const page = "../docs/specs.md"

// Every example of the page is read without a problem: documents as they are, steps as those of a composition.
func TestExamplesInTheReference(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```(yaml|markdown)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	kinds := map[spec.Kind]int{}
	for _, block := range blocks {
		language, example := block[1], block[2]
		file := "example.yaml"
		switch {
		case language == "markdown" && strings.Contains(example, "model:"):
			file = "example.md"
		case language == "markdown":
			file = "example/SKILL.md"
		case strings.HasPrefix(example, "- "):
			example = "kind: composition\nname: example\nsteps:\n" + example
		}
		doc, problems := spec.Load(file, []byte(example))
		require.Empty(t, problems, "%s", example)
		kinds[doc.Kind]++
	}
	for _, kind := range spec.Kinds() {
		require.Positive(t, kinds[kind], "no example of %s", kind)
	}
	require.Greater(t, kinds[spec.KindComposition], 8)
}

// Every key that a document may have, and every code of a problem, stands on the page.
func TestReferenceIsComplete(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, kind := range spec.Kinds() {
		raw, err := spec.SchemaOf(kind)
		require.NoError(t, err)
		var schema any
		require.NoError(t, json.Unmarshal(raw, &schema))
		for _, key := range keysOf(schema) {
			require.Contains(t, string(text), "`"+key, "%s: the key %q is not on the page", kind, key)
		}
	}
	source, err := os.ReadFile("problem.go")
	require.NoError(t, err)
	codes := regexp.MustCompile(`ProblemCode = "([A-Z_]+)"`).FindAllStringSubmatch(string(source), -1)
	require.NotEmpty(t, codes)
	for _, code := range codes {
		require.Contains(t, string(text), "`"+code[1]+"`")
	}
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
		properties, _ := s["properties"].(map[string]any)
		for key := range properties {
			keys = append(keys, key)
		}
		for _, inner := range s {
			keys = append(keys, keysOf(inner)...)
		}
	}
	return keys
}
