package guarded_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity/guarded"
)

func TestNew_ConvertsDrafts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	team, report := f.create(t, "team", `{"name":"a"}`), f.create(t, "report", `{"subject":"s"}`)
	draft := func(content string, relations map[string][]string) guarded.Draft {
		d := guarded.Draft{Type: "team", Title: "T", Relations: relations, At: "creates.fields", RelationsAt: "creates.relations"}
		require.NoError(t, json.Unmarshal([]byte(content), &d.Content))
		return d
	}
	for name, c := range map[string]struct {
		draft   guarded.Draft
		content string
		points  map[string][]string
		missing []string
		field   string
	}{
		"defaults": {draft(`{"name":"n"}`, nil), `{"name":"n","stage":"new"}`, map[string][]string{}, nil, ""},
		"a relation of no field": {
			draft(`{"name":"n"}`, map[string][]string{"about": {team, report}}), `{"name":"n","stage":"new"}`,
			map[string][]string{"about": {team, report}},
			nil, "",
		},
		"a field of one": {
			draft(`{"name":"n"}`, map[string][]string{"parent": {team}}), `{"name":"n","stage":"new","parent":"` + team + `"}`,
			map[string][]string{"parent": {team}},
			nil, "",
		},
		"a field of many": {
			draft(`{"name":"n"}`, map[string][]string{"members": {team, report}}),
			`{"name":"n","stage":"new","members":["` + team + `","` + report + `"]}`,
			map[string][]string{"members": {team, report}},
			nil, "",
		},
		"a field within an object": {
			draft(`{"name":"n","office":{"city":"Bonn"}}`, map[string][]string{"office.owner": {report}}),
			`{"name":"n","stage":"new","office":{"city":"Bonn","owner":"` + report + `"}}`,
			map[string][]string{"office.owner": {report}},
			nil, "",
		},
		"a field that has its value": {
			draft(`{"name":"n","parent":"`+team+`"}`, map[string][]string{"parent": {report}}), `{"name":"n","stage":"new","parent":"` + team + `"}`,
			map[string][]string{"parent": {team}},
			nil, "",
		},
		"not there":     {draft(`{"name":"n","parent":"ent_a"}`, map[string][]string{"about": {"ent_b", team}}), "", nil, []string{"ent_a", "ent_b"}, ""},
		"another type":  {draft(`{"name":"n"}`, map[string][]string{"parent": {report}}), "", nil, nil, "creates.fields.parent"},
		"two for one":   {draft(`{"name":"n"}`, map[string][]string{"parent": {team, team}}), "", nil, nil, "creates.relations.parent"},
		"no relation":   {draft(`{"name":"n"}`, map[string][]string{"notes": {team}}), "", nil, nil, "creates.relations.notes"},
		"not an object": {draft(`{"name":"n","office":"x"}`, map[string][]string{"office.owner": {team}}), "", nil, nil, "creates.relations.office.owner"},
		"below a value": {draft(`{"name":"n"}`, map[string][]string{"notes.owner": {team}}), "", nil, nil, "creates.relations.notes.owner"},
		"no field":      {draft(`{"name":"n","colour":"red"}`, nil), "", nil, nil, "creates.fields/colour"},
	} {
		n, missing, err := f.New(t.Context(), f.inv, c.draft)
		require.Equal(t, c.missing, missing, name)
		if c.field != "" {
			require.Equal(t, []any{jig.CodeInvalidInput, c.field}, []any{jig.CodeOf(err), jig.AsError(err).Field}, "%s: %v", name, err)
			continue
		}
		require.NoError(t, err, name)
		if c.missing != nil {
			continue
		}
		require.JSONEq(t, c.content, string(n.Content), name)
		for relation, ids := range n.Relations {
			require.ElementsMatch(t, c.points[relation], ids, "%s: %s", name, relation)
		}
		for relation := range c.points {
			require.Contains(t, n.Relations, relation, name)
		}
		require.Equal(t, []string{f.inv.Tenant, "team", "v1", "T"}, []string{n.Tenant, n.Type, n.TypeVersion, n.Title}, name)
	}
}
