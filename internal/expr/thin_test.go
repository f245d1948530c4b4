package expr_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
)

func TestThin_Expressions(t *testing.T) {
	t.Parallel()
	env, err := expr.ThinUse().Env()
	require.NoError(t, err)
	link, err := expr.ThinURLUse().Env()
	require.NoError(t, err)
	again, err := expr.ThinUse().Env()
	require.NoError(t, err)
	require.Same(t, env, again, "the environment is cached")
	type object = map[string]any
	vars := object{
		"input": object{"module": "x"}, "tenant": "acme", "now": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		"principal": object{"id": "ana", "groups": []any{"finance"}, "permissions": []any{}},
		"entities": object{"parent": nil, "engagement": object{
			"id": "ent_1", "type": "engagement", "title": "E", "content": object{"client": "C"},
			"connected": []any{object{"id": "ent_2", "type": "pilot", "title": "P"}},
		}},
		"entity": object{"id": "ent_3"}, "session": object{"id": ""},
	}
	for source, want := range map[string]any{
		"entities.engagement.connected.exists(c, c.type == 'pilot')":                                         true,
		"entities.parent == null":                                                                            true,
		"entities.engagement.content.client + input.module + tenant":                                         "Cxacme",
		"'finance' in principal.groups && now.getFullYear() == 2026":                                         true,
		"entities.parent == null ? null : entities.parent.id":                                                nil,
		"entities.engagement.connected.map(c, c.id)":                                                         []any{"ent_2"},
		"size(entities.engagement.connected.filter(c, c.type == 'pilot')) >= 3 ? 'enough' : 'add ' + 'some'": "add some",
	} {
		p, err := env.Compile(source)
		require.NoError(t, err, source)
		got, err := p.Eval(t.Context(), vars)
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
	template, err := link.Template("https://example.com/${entity.id}/${session.id}?m=${input.module}")
	require.NoError(t, err)
	got, err := template.Eval(t.Context(), vars)
	require.NoError(t, err)
	require.Equal(t, "https://example.com/ent_3/?m=x", got)
	for _, source := range []string{"entity.id", "session.id", "steps.a", "tasks.a", "result"} {
		_, err := env.Compile(source)
		require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput}, source)
	}
}

// A person waits for a thin tool, so its expressions have lower limits than others.
func TestThin_IsBounded(t *testing.T) {
	t.Parallel()
	for _, use := range []expr.Use{expr.ThinUse(), expr.ThinURLUse()} {
		require.Less(t, use.Limits.Cost, expr.TaskUse().Limits.Cost)
		require.Less(t, use.Limits.Work, expr.TaskUse().Limits.Work)
		require.Less(t, use.Limits.Result, expr.TaskUse().Limits.Result)
	}
	require.NotEqual(t, expr.ThinUse().Name, expr.ThinURLUse().Name)
	env, err := expr.ThinUse().Env()
	require.NoError(t, err)
	p, err := env.Compile("input.list.map(a, input.list.map(b, a + b)).size()")
	require.NoError(t, err)
	list := make([]any, 1000)
	for i := range list {
		list[i] = i
	}
	_, err = p.Eval(t.Context(), map[string]any{"input": map[string]any{"list": list}})
	require.Error(t, err)
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
}
