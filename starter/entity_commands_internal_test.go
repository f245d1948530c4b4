package starter

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func TestEntityList_FiltersAndPrintsFields(t *testing.T) {
	t.Parallel()
	e := &fake{toolRead: map[string]json.RawMessage{"entities.filter": json.RawMessage(`{"entities": [
		{"entity_id": "ent_company-1", "title": "Acme", "revision": 2, "updated_at": "2030-01-02T03:04:05Z", "values": {"risk": "high", "staff": 70}},
		{"entity_id": "ent_company-2", "title": "Zoo", "revision": 1, "updated_at": "2030-01-02T03:04:05Z", "large": ["staff"]}
	], "next_cursor": "c2"}`)}}
	got := jigCLI(t, e, nil, "entity", "list", "company", "--filter", "risk=high", "--filter", "staff>=50", "--filter", "name!=null", "--filter", "note~a=b",
		"--partial", "--sort=-staff", "--field", "risk", "--field", "staff", "--limit", "2", "--after", "c1", "--as", "ana", "--tenant", "acme")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.JSONEq(t, `{"type": "company", "where": [{"field": "risk", "op": "eq", "value": "high"}, {"field": "staff", "op": "gte", "value": 50},
		{"field": "name", "op": "neq", "value": null}, {"field": "note", "op": "contains", "value": "a=b"},
		{"field": "$failed_tasks", "op": "neq", "value": null}],
		"sort": [{"field": "staff", "desc": true}], "fields": ["risk", "staff"], "limit": 2, "cursor": "c1"}`, string(e.toolReads[0].Input))
	require.Equal(t, "acme", e.toolReads[0].Tenant)
	require.Equal(t, jig.Principal{ID: "ana", Claimed: true}, e.toolReads[0].Principal)
	require.Regexp(t, `(?s)ID +TITLE +UPDATED +RISK +STAFF\n *ent_company-1 +Acme .* high +70\n *ent_company-2 +Zoo .*…`, got.stdout)
	require.Contains(t, got.stderr, "add --after c2")
	for _, wrong := range []string{"risk", "=high", "!high", ""} {
		require.Equal(t, exitUsage, jigCLI(t, e, nil, "entity", "list", "company", "--filter", wrong).code, wrong)
	}
}

func TestEntityShow_FindsAnEntityByItsTitle(t *testing.T) {
	t.Parallel()
	e := &fake{toolRead: map[string]json.RawMessage{
		"entities.search": json.RawMessage(`{"hits": [{"entity_id": "ent_1", "type": "company", "title": "Acme Ltd"}, {"entity_id": "ent_2", "type": "company", "title": "Acme Ltd & Sons"},
			{"entity_id": "ent_3", "type": "note", "title": "Twice"}, {"entity_id": "ent_4", "type": "note", "title": "twice"}]}`),
		"entities.get": json.RawMessage(`{"entity_id": "ent_1", "type": "company", "title": "Acme Ltd", "revision": 3, "fields": [
			{"name": "risk", "type": "text", "size": 6, "value": "high"}, {"name": "story", "type": "text", "size": 4000, "beginning": "Once upon"}],
			"missing": ["logo"], "provenance": {"risk": {"task": "assess", "model": "m1", "sources": ["doc_1"]}}}`),
	}}
	got := jigCLI(t, e, nil, "entity", "show", "acme ltd", "--type", "company")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.JSONEq(t, `{"query": "acme ltd", "limit": 100, "types": ["company"]}`, string(e.toolReads[0].Input))
	require.JSONEq(t, `{"id": "ent_1"}`, string(e.toolReads[1].Input))
	require.Regexp(t, `(?s)risk +high\n.*story +Once upon.*4000 bytes.*without a value +logo`, got.stdout)
	require.NotContains(t, got.stdout, "assess")
	got = jigCLI(t, e, nil, "entity", "show", "ent_1", "--provenance")
	require.Regexp(t, `risk +assess +m1 +doc_1`, got.stdout)
	require.JSONEq(t, `{"id": "ent_1", "provenance": true}`, string(e.toolReads[2].Input))
	require.NotContains(t, jigCLI(t, e, nil, "entity", "show", "ent_1", "--output", "json").stdout, "assess", "a server sends the provenance unasked")

	got = jigCLI(t, e, nil, "entity", "show", "Twice")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "ent_3, ent_4")
	got = jigCLI(t, e, nil, "entity", "show", "Acme")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, `similar: "Acme Ltd", "Acme Ltd & Sons"`)
}
