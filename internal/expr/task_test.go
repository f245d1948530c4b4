package expr_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/expr"
)

func TestReads_OfTasks(t *testing.T) {
	t.Parallel()
	env, err := expr.TaskUse().Env()
	require.NoError(t, err)
	for source, want := range map[string]expr.Reads{
		"tasks.a + tasks['b'] + tasks.?c.orValue(1)":     {Names: []string{"tasks"}, Tasks: []string{"a", "b", "c"}},
		"has(tasks.a.b) && 'z' in tasks":                 {Names: []string{"tasks"}, Tasks: []string{"a", "z"}},
		"tasks.map(k, k)":                                {Names: []string{"tasks"}, AllTasks: true},
		"tasks[tenant]":                                  {Names: []string{"tasks", "tenant"}, AllTasks: true},
		"[{'a': 1}].map(tasks, tasks.a)":                 {},
		"entity.content.a":                               {Names: []string{"entity"}, Content: []string{"a"}},
		"entity['content']['a'] + entity.content[?'b']":  {Names: []string{"entity"}, Content: []string{"a", "b"}},
		"entity.?content.?a.b.orValue('')":               {Names: []string{"entity"}, Content: []string{"a"}},
		"has(entity.content.a) || 'b' in entity.content": {Names: []string{"entity"}, Content: []string{"a", "b"}},
		"entity.content":                                 {Names: []string{"entity"}, AllContent: true},
		"entity.content.exists(k, k == 'a')":             {Names: []string{"entity"}, AllContent: true},
		"entity":                                         {Names: []string{"entity"}, AllContent: true},
		"entity[tenant]":                                 {Names: []string{"entity", "tenant"}, AllContent: true},
		"entity.id + entity.title + entity.type":         {Names: []string{"entity"}},
		"has(entity.title)":                              {Names: []string{"entity"}},
		"has(entity.content)":                            {Names: []string{"entity"}, AllContent: true},
		"result.x + input.y":                             {Names: []string{"input", "result"}},
		"[1].map(entity, entity)":                        {},
	} {
		p, err := env.Compile(source)
		require.NoError(t, err, source)
		require.Equal(t, want, p.Reads(), source)
	}
}

func TestReads_OfTasksMerge(t *testing.T) {
	t.Parallel()
	env, err := expr.TaskUse().Env()
	require.NoError(t, err)
	template, err := env.Template("${tasks.b} ${tasks.a} ${entity.content.x} ${entity}")
	require.NoError(t, err)
	require.Equal(t, expr.Reads{
		Names: []string{"entity", "tasks"}, Tasks: []string{"a", "b"}, Content: []string{"x"}, AllContent: true,
	}, template.Reads())
}

func TestTask_Expressions(t *testing.T) {
	t.Parallel()
	env, err := expr.TaskUse().Env()
	require.NoError(t, err)
	p, err := env.CompileAs("entity.content.name + '@' + tasks.version + ' ' + result.note + ' ' + string(now.getFullYear())", expr.String)
	require.NoError(t, err)
	got, err := p.Eval(t.Context(), map[string]any{
		"entity": map[string]any{"id": "e", "type": "module", "title": "T", "content": map[string]any{"name": "x"}},
		"tasks":  map[string]any{"version": "v1"}, "result": map[string]any{"note": "n"},
		"now": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "tenant": "acme", "input": nil,
	})
	require.NoError(t, err)
	require.Equal(t, "x@v1 n 2026", got)
	_, err = env.Compile("steps.a")
	require.ErrorContains(t, err, "steps")
}
