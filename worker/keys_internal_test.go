package worker

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/tenancy"
)

// shipped returns the contracts of the tools that ship with jig, by name.
func shipped() map[string]jig.Tool {
	all := map[string]jig.Tool{}
	for _, tool := range slices.Concat(builtins(Settings{}, nil, nil, documents{}, nil, nil), taskTools(nil, documents{}, nil, Settings{})) {
		all[tool.Contract().Name] = tool.Contract()
	}
	return all
}

// Every shipped tool that writes has a concurrency key, except those whose calls cannot change the same thing.
func TestShippedTools_ThatWriteHaveConcurrencyKeys(t *testing.T) {
	t.Parallel()
	apart := []string{"entities.create", "grants.create"}
	for name, tool := range shipped() {
		if tool.Permission.Writes() && !slices.Contains(apart, name) {
			require.NotEmpty(t, tool.ConcurrencyKey, name)
		}
	}
}

// Changes of the same thing have the same key, also across tools, and changes of different things have different keys.
func TestShippedTools_ConcurrencyKeys(t *testing.T) {
	t.Parallel()
	engine, err := expr.NewEngine()
	require.NoError(t, err)
	tools := shipped()
	for _, c := range []struct{ tool, input, key string }{
		{"file.write", `{"path":"a/b.txt","content":""}`, "file a/b.txt"},
		{"entities.update", `{"id":"ent_1","revision":1}`, "entity ent_1"},
		{"entities.delete", `{"id":"ent_1"}`, "entity ent_1"},
		{"entities.putText", `{"id":"ent_2","body":"x"}`, "entity ent_2"},
		{"entities.createRelation", `{"from":"ent_1","name":"a","to":"ent_2"}`, "entity ent_1"},
		{"http.post", `{"url":"https://example.com/a"}`, "http https://example.com/a"},
		{"todo.write", `{"items":[]}`, "todo"},
		{"catalog.put", `{"documents":[]}`, "catalog"},
		{"catalog.remove", `{"documents":[]}`, "catalog"},
		{"bundle.install", `{"files":[]}`, "catalog"},
		{"bundle.remove", `{"name":"a"}`, "catalog"},
		{"sessions.retry", `{"session_id":"ses_1"}`, "session ses_1"},
	} {
		require.Contains(t, tools, c.tool)
		got, err := engine.ConcurrencyKey(t.Context(), tools[c.tool].ConcurrencyKey, json.RawMessage(c.input))
		require.NoError(t, err, c.tool)
		require.Equal(t, c.key, got, c.tool)
	}
}

// What the API shows only to those who may read everything, tools show to nobody else.
func TestShippedTools_ThatReadTheCatalogNeedItsPermission(t *testing.T) {
	t.Parallel()
	tools := shipped()
	for _, name := range []string{"catalog.list", "catalog.get", "usage.get"} {
		require.Equal(t, tenancy.PermissionRead, tools[name].RequiredPermission, name)
	}
}
