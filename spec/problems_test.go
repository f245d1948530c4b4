package spec_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/jig-run/jig/spec"
)

// problemCase is a case of testdata/problems: a document and everything that is wrong with it.
type problemCase struct {
	Name string `yaml:"name"`
	// File is the name under which the document is read. The default is spec.yaml.
	File string `yaml:"file"`
	// Document is the text. Prefix and a padding of many lines may precede it.
	Document string `yaml:"document"`
	Prefix   string `yaml:"prefix"`
	Pad      struct {
		Line  string `yaml:"line"`
		Times int    `yaml:"times"`
	} `yaml:"pad"`
	Problems []struct {
		Path     string           `yaml:"path"`
		Code     spec.ProblemCode `yaml:"code"`
		Severity spec.Severity    `yaml:"severity"`
		// Line, Hint and Message are compared if they are given; the texts may be parts.
		Line    int    `yaml:"line"`
		Hint    string `yaml:"hint"`
		Message string `yaml:"message"`
	} `yaml:"problems"`
}

func (c problemCase) text() string {
	return c.Prefix + strings.Repeat(c.Pad.Line, c.Pad.Times) + c.Document
}

// problemCases reads the cases below testdata/problems, by file.
func problemCases(t *testing.T) map[string][]problemCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "problems", "*.yaml"))
	require.NoError(t, err)
	cases := map[string][]problemCase{}
	for _, file := range files {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		loader, err := yaml.NewLoader(bytes.NewReader(body), yaml.WithKnownFields())
		require.NoError(t, err)
		for {
			var c problemCase
			err := loader.Load(&c)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, "%s after %d cases", file, len(cases[file]))
			cases[file] = append(cases[file], c)
		}
	}
	return cases
}

func TestProblems_AreListedInOrder(t *testing.T) {
	t.Parallel()
	count := 0
	for file, cases := range problemCases(t) {
		names := map[string]bool{}
		for _, c := range cases {
			count++
			require.False(t, names[c.Name], "%s has %q twice", file, c.Name)
			names[c.Name] = true
			t.Run(filepath.Base(file)+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				c.check(t)
			})
		}
	}
	require.GreaterOrEqual(t, count, 70)
}

func (c problemCase) check(t *testing.T) {
	t.Helper()
	name := c.File
	if name == "" {
		name = "spec.yaml"
	}
	doc, problems := spec.Load(name, []byte(c.text()))
	for _, want := range c.Problems {
		if want.Severity == "" {
			want.Severity = spec.SeverityError
		}
		found := -1
		for i, p := range problems {
			if p.Path == want.Path && p.Code == want.Code && p.Severity == want.Severity {
				found = i
				break
			}
		}
		require.GreaterOrEqual(t, found, 0, "no %s at %q in\n%v", want.Code, want.Path, problems)
		p := problems[found]
		require.Contains(t, p.Hint, want.Hint, "%v", p)
		require.Contains(t, p.Message, want.Message, "%v", p)
		require.Positive(t, p.Line, "%v", p)
		require.Positive(t, p.Column, "%v", p)
		if p.Code != spec.ProblemBadCEL && p.Code != spec.ProblemSyntax { // for these the message says what to do
			require.NotEmpty(t, p.Hint, "%v", p)
		}
		if want.Line > 0 {
			require.Equal(t, want.Line, p.Line, "%v", p)
		}
		problems = append(problems[:found:found], problems[found+1:]...)
	}
	require.Empty(t, problems, "the case does not expect these problems")
	if len(c.Problems) == 0 {
		require.NotNil(t, doc.Execution())
		again, err := spec.LoadExecution(name, []byte(c.text()))
		require.NoError(t, err)
		require.Equal(t, *doc.Execution(), again)
	}
}
