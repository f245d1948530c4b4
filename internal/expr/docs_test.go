package expr_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/expr"
)

// Every example on the page gives the result that the page shows, and the page names every function.
func TestDocumentation_MatchesTheCode(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/expressions.md")
	require.NoError(t, err)
	page := string(raw)
	input := regexp.MustCompile("(?s)```json\n(.*?)```").FindStringSubmatch(page)
	require.NotNil(t, input)
	vars := map[string]any{"input": json.RawMessage(input[1])}
	shapes := expr.Shapes{"input": json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"},"count":{"type":"integer"},
		"price":{"type":"number"},"note":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},
		"sections":{"type":"array","items":{"type":"object","properties":{"heading":{"type":"string"},"words":{"type":"integer"}}}},
		"publish":{"type":"boolean"},"options":{"type":"object"}}}`)}
	env, examples := stepEnv(t), 0
	for _, block := range regexp.MustCompile("(?s)```cel\n(.*?)```").FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(block[1]) {
			source, want, ok := strings.Cut(strings.TrimSpace(line), "// ")
			require.True(t, ok, line)
			source = strings.TrimSpace(source)
			examples++
			err := env.Check(source, expr.Any, shapes)
			var issue *expr.IssueError
			if message, ok := strings.CutPrefix(want, "error: "); ok {
				require.ErrorAs(t, err, &issue, source)
				require.Equal(t, message, issue.Message, source)
				continue
			}
			require.NoError(t, err, source)
			got, err := eval(t, env, source, vars)
			if message, ok := strings.CutPrefix(want, "fails: "); ok {
				require.ErrorAs(t, err, &issue, source)
				require.Equal(t, message, issue.Message, source)
				continue
			}
			require.NoError(t, err, source)
			require.Equal(t, want, got, source)
		}
	}
	require.Greater(t, examples, 40)
	for _, v := range env.Use().Variables {
		require.Contains(t, page, "`"+v.Name, "the variables that are read")
	}
	library, err := cel.NewEnv(cel.OptionalTypes(), ext.Strings(), ext.Lists(), ext.Math(), ext.Sets(), ext.Encoders(), ext.Bindings(), ext.TwoVarComprehensions())
	require.NoError(t, err)
	for name := range library.Functions() {
		if regexp.MustCompile(`^[a-zA-Z.0-9]+$`).MatchString(name) && name != "in" {
			require.Contains(t, page, "`"+name+"`")
		}
	}
	for _, macro := range library.Macros() {
		require.Regexp(t, "`([a-z]+\\.)?"+macro.Function()+"`", page)
	}
}
