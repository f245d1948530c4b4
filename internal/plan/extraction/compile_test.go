package extraction_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan/extraction"
)

func TestCompile_RefusesBadTypes(t *testing.T) {
	t.Parallel()
	many, deep := []entity.Task{}, []entity.Task{compute("t0", "1")}
	for i := range 1001 {
		many = append(many, compute(fmt.Sprintf("t%d", i), "1"))
	}
	for i := range 100 {
		deep = append(deep, compute(fmt.Sprintf("t%d", i+1), "1", fmt.Sprintf("t%d", i)))
	}
	nested := kindOf(compute("a", "1"))
	nested.Fields = append(nested.Fields, entity.Field{Name: "o", Type: entity.FieldObject, Fields: []entity.Field{{Name: "p", Task: "a"}}})
	for name, c := range map[string]struct {
		kind entity.Type
		says string
	}{
		"cycle":             {kindOf(compute("a", "1", "c"), compute("b", "1", "a"), compute("c", "1", "b")), "a -> c -> b -> a"},
		"itself":            {kindOf(compute("a", "1", "a")), "a -> a"},
		"missing":           {kindOf(compute("a", "1", "b")), `no task "b"`},
		"twice":             {kindOf(compute("a", "1"), compute("a", "1")), "already"},
		"bad id":            {kindOf(compute("a~2", "1")), "not a task id"},
		"no id":             {kindOf(compute("", "1")), "not a task id"},
		"many":              {kindOf(many...), "at most 1000"},
		"deep":              {kindOf(deep...), "more than 100"},
		"kind":              {kindOf(entity.Task{ID: "a", Kind: "guess"}), "not a kind"},
		"no compute":        {kindOf(entity.Task{ID: "a", Kind: entity.TaskCompute}), "must say what it uses"},
		"no agent":          {kindOf(entity.Task{ID: "a", Kind: entity.TaskAgent}), "must say what it uses"},
		"no claims":         {kindOf(entity.Task{ID: "a", Kind: entity.TaskCitations}), "must say what it uses"},
		"compute of a tool": {kindOf(entity.Task{ID: "a", Kind: entity.TaskTool, Use: "look.up", Compute: "1"}), "compute is for kind compute"},
		"bad tool":          {kindOf(entity.Task{ID: "a", Kind: entity.TaskTool, Use: "lookup"}), "tasks.a.use"},
		"bad compute":       {kindOf(compute("a", "1 +")), "tasks.a.compute"},
		"bad condition":     {kindOf(entity.Task{ID: "a", Kind: entity.TaskCompute, Compute: "1", When: "'yes'"}), "tasks.a.when"},
		"bad input":         {kindOf(tool("a", `{"b":["${nothing}"]}`)), "tasks.a.input.b[0]"},
		"result too early":  {kindOf(compute("a", "result")), "tasks.a.compute"},
		"reads too much":    {kindOf(compute("a", "1"), compute("b", "tasks.a")), "reads tasks.a and does not depend on it"},
		"reads itself":      {kindOf(compute("a", "tasks.a")), "reads tasks.a and does not depend on it"},
		"reads nothing":     {kindOf(compute("a", "tasks.z")), "there is no such task"},
		"reads in input":    {kindOf(compute("a", "1"), tool("b", `{"x":"and ${tasks['a']}"}`)), "reads tasks.a"},
		"reads a field":     {kindOf(compute("a", "1"), compute("b", "entity.content.a")), "reads entity.content.a"},
		"field without":     {entity.Type{Fields: []entity.Field{{Name: "f", Task: "z"}}}, `no task "z"`},
		"field twice":       {entity.Type{Fields: []entity.Field{{Name: "f"}, {Name: "f"}}}, "name of its own"},
		"nested":            {nested, "its part p names a task"},
		"attempts":          {kindOf(entity.Task{ID: "a", Kind: entity.TaskCompute, Compute: "1", Attempts: 101}), "attempts must be 1 to 100"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.kind.Name = "module"
			_, err := extraction.Compile(c.kind, lenient())
			require.ErrorContains(t, err, c.says)
			require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
		})
	}
	_, err := extraction.Compile(kindOf(), extraction.Checks{})
	require.Equal(t, jig.CodeInternal, jig.CodeOf(err))
}

// The name of a task in a text, a comment or an escape does not count as reading that task.
func TestCompile_ReadsExpressions(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		`'tasks.a'`, `"\"tasks.a"`, `r"\" + "tasks.a"`, `'''it's tasks.a'''`, `1 // tasks.a`, `{'tasks': {'a': 1}}.tasks.a`, `b'tasks.a' == b''`,
		`[{'a': 1}].map(tasks, tasks.a)`,
	} {
		_, err := extraction.Compile(kindOf(compute("a", "1"), compute("b", source)), lenient())
		require.NoError(t, err, source)
	}
	for _, source := range []string{
		`tasks.a`, `.tasks.a`, `tasks.?a`, `tasks[?'a']`, `tasks["a"]`, `'a' in tasks`, `1 in [tasks.a]`, `has(tasks.a)`, "[1].map(x, tasks.a)", `1 in .tasks.a`,
		"// one\n tasks . a", `{'x': tasks.a}`, `"}" + string(tasks.a)`,
	} {
		_, err := extraction.Compile(kindOf(compute("a", "1"), compute("b", source)), lenient())
		require.ErrorContains(t, err, "does not depend", source)
		raw, err := json.Marshal(map[string]string{"in": "$${tasks.none} and ${" + source + "} more"})
		require.NoError(t, err)
		_, err = extraction.Compile(kindOf(compute("a", "1"), tool("b", string(raw))), lenient())
		require.ErrorContains(t, err, "does not depend", source)
	}
}
