package entities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/entities"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/guarded"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
	"github.com/jig-run/jig/tools/tooltest"
)

var types = []entity.Type{
	{Name: "team", Title: "Team", Version: "v1", Fields: []entity.Field{
		{Name: "name", Type: entity.FieldText, Required: true},
		{Name: "stage", Type: entity.FieldText, Default: []byte(`"new"`)},
		{Name: "notes", Type: entity.FieldText},
		{Name: "size", Type: entity.FieldNumber},
		{Name: "tags", Type: entity.FieldArray, Items: &entity.Field{Type: entity.FieldText}},
		{Name: "parent", Type: entity.FieldRelation, Target: "team"},
		{Name: "members", Type: entity.FieldRelation, Many: true},
		{Name: "office", Type: entity.FieldObject, Fields: []entity.Field{
			{Name: "city", Type: entity.FieldText}, {Name: "about", Type: entity.FieldText}, {Name: "owner", Type: entity.FieldRelation},
		}},
		{Name: "rooms", Type: entity.FieldArray, Items: &entity.Field{Type: entity.FieldObject, Fields: []entity.Field{{Name: "keeper", Type: entity.FieldRelation}}}},
	}},
	{Name: "report", Version: "v1", Fields: []entity.Field{
		{Name: "subject", Type: entity.FieldText, Required: true}, {Name: "summary", Type: entity.FieldText, Required: true, Task: "t"},
	}},
}

// check checks only the names of the fields and whether required fields are present.
func check(t entity.Type, content json.RawMessage, partial bool) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(content, &fields); err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "no object")
	}
	for name := range fields {
		if !slices.ContainsFunc(t.Fields, func(f entity.Field) bool { return f.Name == name }) {
			return jig.Errorf(jig.CodeInvalidInput, "no field %q", name).WithField("/" + name)
		}
	}
	for _, f := range t.Fields {
		if _, ok := fields[f.Name]; f.Required && !ok && !partial {
			return jig.Errorf(jig.CodeInvalidInput, "%q is required", f.Name)
		}
	}
	return nil
}

type bench struct {
	*tooltest.Kit
	t  *testing.T
	db *store.DB
	n  int
}

// newBench returns the tools with a store and a tenant of the test's own; the principal has the given permissions.
func newBench(t *testing.T, permissions ...string) *bench {
	t.Helper()
	db := storetest.New(t)
	b := &bench{t: t, db: db, Kit: tooltest.New(t, entities.Tools(options(db))...)}
	b.Invocation.Tenant = storetest.Tenant(t)
	b.Invocation.Principal.Permissions = permissions
	return b
}

func options(db *store.DB) entities.Options {
	return entities.Options{
		Entities: guarded.Entities{Store: db, Check: check, Types: func(context.Context, string) ([]entity.Type, error) { return types, nil }},
		Store:    entities.Store{Records: db, Texts: db, Finder: db},
	}
}

type object = map[string]any

// call runs a tool as a new call.
func (b *bench) call(tool string, input object, data any) {
	b.t.Helper()
	b.n++
	b.Invocation.IdempotencyKey = fmt.Sprint("ses/", b.n)
	b.Succeed(tool, input, data)
}

func (b *bench) refused(code jig.Code, tool string, input object) {
	b.t.Helper()
	require.NotNil(b.t, b.refusal(code, tool, input))
}

// refusal requires that a tool refuses an input with the given code, and returns the error.
func (b *bench) refusal(code jig.Code, tool string, input object) *jig.Error {
	b.t.Helper()
	b.n++
	b.Invocation.IdempotencyKey = fmt.Sprint("ses/", b.n)
	err := b.Fail(tool, input)
	require.Equal(b.t, code, err.Code, "%s: %v", tool, err)
	return err
}

func (b *bench) create(kind string, content object) string {
	b.t.Helper()
	var made entities.Changed
	b.call(entities.CreateTool, object{"type": kind, "title": "T " + kind, "content": content}, &made)
	return made.ID
}

func TestEntities_LiveFromCreationToDeletion(t *testing.T) {
	t.Parallel()
	b := newBench(t, "*")
	parent := b.create("team", object{"name": "parent"})
	id := b.create("team", object{
		"name": "Alpha", "parent": parent, "members": []string{parent}, "tags": []string{"a"},
		"office": object{"city": "Bonn", "about": strings.Repeat("long ", 200), "owner": parent}, "rooms": []object{{"keeper": parent}, {}},
		"notes": strings.Repeat("é", 20_000),
	})
	var again entities.Changed
	b.Succeed(entities.CreateTool, object{"type": "team", "content": object{"name": "again"}}, &again)
	require.Equal(t, id, again.ID, "another attempt at the same call")

	var r entity.Reading
	b.call(entities.GetTool, object{"id": id}, &r)
	infos := map[string]entity.FieldInfo{}
	for _, f := range r.Fields {
		infos[f.Name] = f
	}
	require.JSONEq(t, `"Alpha"`, string(infos["name"].Value))
	require.JSONEq(t, `"new"`, string(infos["stage"].Value), "the default")
	require.Equal(t, 40_002, infos["notes"].Size)
	require.Nil(t, infos["notes"].Value)
	require.Equal(t, strings.Repeat("é", 160)+"…", infos["notes"].Beginning)
	require.JSONEq(t, `"Bonn"`, string(infos["office.city"].Value), "a large object is shown part by part")
	require.Equal(t, []string{"size"}, r.Missing)
	whole, err := json.Marshal(r)
	require.NoError(t, err)
	require.Less(t, len(whole), 4000, "the structure is small")

	var part entity.Reading
	b.call(entities.GetTool, object{"id": id, "field": "notes"}, &part)
	require.Equal(t, 16_000, part.Next)
	b.call(entities.GetTool, object{"id": id, "field": "notes", "offset": part.Next}, &part)
	require.JSONEq(t, `"`+strings.Repeat("é", 4000)+`"`, string(part.Value))
	part = entity.Reading{}
	b.call(entities.GetTool, object{"id": id, "field": "size"}, &part)
	require.Equal(t, "null", string(part.Value))
	require.Equal(t, "/field", b.refusal(jig.CodeInvalidInput, entities.GetTool, object{"id": id, "field": "nope"}).Field)

	ids, err := b.db.Connected(t.Context(), b.Invocation.Tenant, id, 1, "")
	require.NoError(t, err)
	require.Equal(t, []string{parent}, ids, "the targets of relation fields are related")
	var changed entities.Changed
	update := object{"id": id, "revision": 1, "set": object{
		"size": 5, "stage": nil, "parent": nil, "members": []string{}, "office": object{"city": "Rome"}, "rooms": []object{},
	}}
	b.call(entities.UpdateTool, update, &changed)
	b.Succeed(entities.UpdateTool, update, &changed) // another attempt at the same call
	require.Equal(t, int64(2), changed.Revision)
	ids, err = b.db.Connected(t.Context(), b.Invocation.Tenant, id, 1, "")
	require.NoError(t, err)
	require.Empty(t, ids, "clearing the fields removes the relations")
	b.refused(jig.CodeConflict, entities.UpdateTool, update)
	require.Equal(t, "/set/name", b.refusal(jig.CodeInvalidInput, entities.UpdateTool, object{"id": id, "revision": 2, "set": object{"name": nil}}).Field)
	require.Equal(t, "/set/nope", b.refusal(jig.CodeInvalidInput, entities.UpdateTool, object{"id": id, "revision": 2, "set": object{"nope": 1}}).Field)
	require.Equal(t, "/set/nope", b.refusal(jig.CodeInvalidInput, entities.UpdateTool, object{"id": id, "revision": 2, "set": object{"nope": nil}}).Field)

	b.call(entities.CreateRelationTool, object{"from": id, "name": "knows", "to": parent}, nil)
	var related entity.RelationList
	b.call(entities.ListRelationsTool, object{"id": parent}, &related)
	require.Equal(t, []entity.RelatedEntity{{Name: "knows", EntityID: id, Type: "team", Title: "T team"}}, related.Relations)
	var page entity.RowPage
	b.call(entities.FilterTool, object{"type": "team", "where": []object{{"field": "$id", "op": "eq", "value": id}}}, &page)
	require.Equal(t, []string{"a"}, page.Entities[0].Tags)
	require.Equal(t, entity.Address{Slug: "t-team", Href: "/v1/entities/" + id}, page.Entities[0].Address)
	require.JSONEq(t, `{"type":"team","match":"all","where":[{"field":"$id","op":"eq","value":"`+id+`"}],"sort":[{"field":"$created_at"}]}`, asJSON(t, page.Filter))
	require.Equal(t, int64(1), *page.Total, "there is no other page")
	require.Equal(t, "/name", b.refusal(jig.CodeInvalidInput, entities.CreateRelationTool, object{"from": id, "name": "parent", "to": parent}).Field)

	b.call(entities.DeleteTool, object{"id": id}, nil)
	b.Succeed(entities.DeleteTool, object{"id": id}, nil) // another attempt at the same call
	b.refused(jig.CodeNotFound, entities.GetTool, object{"id": id})
	var stats entities.Stats
	b.call(entities.StatsTool, object{}, &stats)
	require.Equal(t, int64(1), stats.Total)
}

func TestCreate_ChecksTheContent(t *testing.T) {
	t.Parallel()
	b := newBench(t, "*")
	require.Equal(t, "/content/nope", b.refusal(jig.CodeInvalidInput, entities.CreateTool, object{"type": "team", "content": object{"name": "x", "nope": 1}}).Field)
	b.refused(jig.CodeInvalidInput, entities.CreateTool, object{"type": "team", "content": object{}})
	b.refused(jig.CodeInvalidInput, entities.CreateTool, object{"type": "report", "content": object{}})
	report := b.create("report", object{"subject": "x"}) // a task fills in the summary
	b.refused(jig.CodeInvalidInput, entities.CreateTool, object{"type": "team", "content": object{"name": "x", "parent": report}})
	b.refused(jig.CodeNotFound, entities.CreateTool, object{"type": "nope", "content": object{}})
	for field, content := range map[string]object{
		"/content/parent": {"name": "x", "parent": "ent_none"}, "/content/office/owner": {"name": "x", "office": object{"city": "Bonn", "owner": "ent_none"}},
	} {
		nobody := b.refusal(jig.CodeNotFound, entities.CreateTool, object{"type": "team", "content": content})
		require.Equal(t, field, nobody.Field)
		require.Contains(t, nobody.Hint, entities.FilterTool)
	}
}

func TestEntities_AreFoundByWordsAndFields(t *testing.T) {
	t.Parallel()
	b := newBench(t, "*")
	for i := range 5 {
		b.create("team", object{"name": fmt.Sprint("team ", i), "size": i, "notes": strings.Repeat("x", 100*i*i)})
	}
	input := object{
		"type": "team", "where": []object{{"any": []object{{"field": "size", "op": "gte", "value": 3}, {"field": "name", "op": "eq", "value": "team 0"}}}},
		"sort": []object{{"field": "size", "desc": true}}, "limit": 2, "fields": []string{"size", "notes", "parent"},
	}
	var page entity.RowPage
	b.call(entities.FilterTool, input, &page)
	require.Len(t, page.Entities, 2)
	require.JSONEq(t, "4", string(page.Entities[0].Values["size"]))
	require.Equal(t, []string{"notes"}, page.Entities[0].Large)
	require.Nil(t, page.Total, "counting them is not cheap")
	for limit, sum := range map[int]string{2: "2 of 5 entities", 5: "5 entities"} {
		var all entity.RowPage
		b.call(entities.FilterTool, object{"type": "team", "limit": limit}, &all)
		require.Equal(t, int64(5), *all.Total)
		require.Equal(t, sum, all.Summary())
	}
	input["cursor"] = page.Next
	page = entity.RowPage{}
	b.call(entities.FilterTool, input, &page)
	require.Nil(t, page.Total, "only the first page has it")
	require.Len(t, page.Entities, 1)
	require.JSONEq(t, "0", string(page.Entities[0].Values["size"]))
	require.Empty(t, page.Next)
	require.Equal(t, "/where/0/value", b.refusal(jig.CodeInvalidInput, entities.FilterTool, object{
		"type": "team", "where": []object{{"field": "size", "op": "gt", "value": "3"}},
	}).Field)
	b.refused(jig.CodeInvalidInput, entities.FilterTool, object{"type": "team", "where": []object{{"field": "size", "op": "like", "value": 3}}})

	var hits entity.HitList
	b.call(entities.SearchTool, object{"query": `"team 3"`, "types": []string{"team"}}, &hits)
	require.Len(t, hits.Hits, 1)
	b.refused(jig.CodeNotFound, entities.SearchTool, object{"query": "team", "types": []string{"nope"}})
	b.refused(jig.CodeNotFound, entities.SearchTool, object{"query": "team", "workspace": "nope"})

	var list entity.TypeList
	b.call(entities.ListTypesTool, object{}, &list)
	require.Len(t, list.Types, 2)
	require.Empty(t, list.Types[0].Fields)
	b.call(entities.ListTypesTool, object{"type": "report"}, &list)
	require.Len(t, list.Types[0].Fields, 2)
}

// Without the permission for a type, its entities do not exist.
func TestPermissions_FailClosed(t *testing.T) {
	t.Parallel()
	b := newBench(t, "*")
	team, report := b.create("team", object{"name": "needle"}), b.create("report", object{"subject": "needle"})
	as := func(permissions ...string) { b.Invocation.Principal.Permissions = permissions }
	count := func() (types, found int, total int64) {
		var list entity.TypeList
		var hits entity.HitList
		var stats entities.Stats
		b.call(entities.ListTypesTool, object{}, &list)
		b.call(entities.SearchTool, object{"query": "needle"}, &hits)
		b.call(entities.StatsTool, object{}, &stats)
		return len(list.Types), len(hits.Hits), stats.Total
	}
	for _, permissions := range [][]string{nil, {"entities"}, {"entities.*"}, {"entities.team"}, {"entities.read"}, {"entities.team.write", "entities.team.delete"}, {"entities.*.write"}} {
		as(permissions...)
		types, found, total := count()
		require.Zero(t, int64(types+found)+total, permissions)
		for tool, input := range map[string]object{
			entities.ListTypesTool: {"type": "team"}, entities.SearchTool: {"query": "needle", "types": []string{"team"}},
			entities.FilterTool: {"type": "team"}, entities.GetTool: {"id": team}, entities.CreateTool: {"type": "team", "content": object{"name": "x"}},
			entities.UpdateTool: {"id": team, "revision": 1}, entities.DeleteTool: {"id": team},
			entities.CreateRelationTool: {"from": team, "name": "r", "to": team},
		} {
			b.refused(jig.CodeNotFound, tool, input)
		}
	}
	as("entities.team.read")
	types, found, total := count()
	require.Equal(t, []int{1, 1, 1}, []int{types, found, int(total)})
	b.call(entities.GetTool, object{"id": team}, nil)
	b.refused(jig.CodeNotFound, entities.GetTool, object{"id": report})
	require.NoError(t, b.db.Relate(t.Context(), b.Invocation.Tenant, entity.Relation{From: team, Name: "covers", To: report}))
	require.NoError(t, b.db.Relate(t.Context(), b.Invocation.Tenant, entity.Relation{From: team, Name: "knows", To: team}))
	var related entity.RelationList
	b.call(entities.ListRelationsTool, object{"id": team}, &related)
	require.Equal(t, []entity.RelatedEntity{{Name: "knows", Outgoing: true, EntityID: team, Type: "team", Title: "T team"}}, related.Relations, "reports are not readable")
	for tool, input := range map[string]object{
		entities.CreateTool: {"type": "team", "content": object{"name": "x"}}, entities.UpdateTool: {"id": team, "revision": 1},
		entities.DeleteTool: {"id": team}, entities.CreateRelationTool: {"from": team, "name": "r", "to": team},
	} {
		require.Contains(t, b.refusal(jig.CodeNotPermitted, tool, input).Hint, "entities.team.")
	}
	as("entities.team.read", "entities.team.write")
	b.call(entities.UpdateTool, object{"id": team, "revision": 1, "set": object{"size": 1}}, nil)
	b.refused(jig.CodeNotFound, entities.CreateRelationTool, object{"from": team, "name": "r", "to": report})
	b.refused(jig.CodeNotFound, entities.UpdateTool, object{"id": team, "revision": 2, "set": object{"members": []string{report}}})
	b.refused(jig.CodeNotPermitted, entities.DeleteTool, object{"id": team})
	as("entities.*.read", "entities.*.delete")
	types, found, total = count()
	require.Equal(t, []int{2, 2, 2}, []int{types, found, int(total)})
	b.call(entities.DeleteTool, object{"id": report}, nil)
}

// In every argument of every tool, the id of another tenant's entity is answered like an id that does not exist.
func TestOtherTenants_AreInvisible(t *testing.T) {
	t.Parallel()
	owner, thief := newBench(t, "*"), newBench(t, "*")
	thief.Invocation.Tenant += "-thief"
	foreign := owner.create("team", object{"name": "needle"})
	storetest.Exec(t, owner.Invocation.Tenant, "insert into workspaces (tenant_id, workspace, entity_id) values ($1, 'secret-ws', $2)", owner.Invocation.Tenant, foreign)
	own := thief.create("team", object{"name": "mine"})
	nobody := jig.NewEntityID("team")
	tried := map[string]bool{}
	attack := func(tool string, input func(id string) object) {
		t.Helper()
		tried[tool] = true
		answers := make([]string, 2)
		for i, id := range []string{foreign, nobody} {
			thief.n++
			thief.Invocation.IdempotencyKey = fmt.Sprint("ses/", thief.n)
			b, err := json.Marshal(thief.Run(t.Context(), tool, input(id)))
			require.NoError(t, err)
			require.NotContains(t, string(b), "needle", tool)
			answers[i] = strings.ReplaceAll(string(b), id, "ID")
		}
		require.Equal(t, answers[1], answers[0], tool)
		require.Regexp(t, `"code":"(NOT_FOUND|INVALID_INPUT)"|"success":true`, answers[0])
	}
	missing := func(tool string, input func(id string) object) {
		t.Helper()
		attack(tool, input)
		thief.refused(jig.CodeNotFound, tool, input(foreign))
	}
	set := func(id string, value func(id string) object) object {
		return object{"id": own, "revision": 1, "set": value(id)}
	}
	missing(entities.GetTool, func(id string) object { return object{"id": id} })
	missing(entities.GetTool, func(id string) object { return object{"id": id, "field": "name", "offset": 1} })
	missing(entities.UpdateTool, func(id string) object { return object{"id": id, "revision": 1, "set": object{"name": "x"}} })
	missing(entities.DeleteTool, func(id string) object { return object{"id": id, "revision": 1} })
	missing(entities.ListRelationsTool, func(id string) object { return object{"id": id} })
	missing(entities.CreateRelationTool, func(id string) object { return object{"from": id, "name": "r", "to": own} })
	missing(entities.CreateRelationTool, func(id string) object { return object{"from": own, "name": "r", "to": id} })
	missing(entities.PutTextTool, func(id string) object { return object{"id": id, "body": "x"} })
	missing(entities.PutTextTool, func(id string) object { return object{"id": own, "document_id": id, "body": "x"} })
	missing(entities.GetTextTool, func(id string) object { return object{"document_id": id} })
	for _, content := range []func(id string) object{
		func(id string) object { return object{"name": "x", "parent": id} },
		func(id string) object { return object{"name": "x", "members": []string{own, id}} },
		func(id string) object { return object{"name": "x", "office": object{"owner": id}} },
		func(id string) object { return object{"name": "x", "rooms": []object{{}, {"keeper": id}}} },
	} {
		missing(entities.CreateTool, func(id string) object { return object{"type": "team", "content": content(id)} })
		missing(entities.UpdateTool, func(id string) object { return set(id, content) })
	}
	missing(entities.SearchTool, func(id string) object { return object{"query": "needle", "types": []string{id}} })
	missing(entities.ListTypesTool, func(id string) object { return object{"type": id} })
	missing(entities.FilterTool, func(id string) object { return object{"type": id} })
	missing(entities.CreateTool, func(id string) object { return object{"type": id, "content": object{}} })
	// Tools that only search find nothing.
	attack(entities.SearchTool, func(id string) object { return object{"query": id} })
	attack(entities.SearchTool, func(string) object { return object{"query": "needle"} })
	attack(entities.StatsTool, func(string) object { return object{} })
	missing(entities.ResearchTool, func(id string) object { return object{"question": "needle", "types": []string{id}} })
	attack(entities.ResearchTool, func(id string) object { return object{"question": "needle " + id, "answer": true} })
	attack(entities.ResearchTool, func(id string) object {
		return object{"question": "needle", "type": "team", "where": []object{{"field": "$id", "op": "eq", "value": id}}}
	})
	missing(entities.ExtractFiltersTool, func(id string) object { return object{"type": id, "text": "needle"} })
	for _, c := range []object{
		{"field": "parent", "op": "eq"}, {"field": "$id", "op": "eq"}, {"field": "members", "op": "contains"}, {"field": "$id", "op": "contains"},
	} {
		attack(entities.FilterTool, func(id string) object {
			return object{"type": "team", "where": []object{{"field": c["field"], "op": c["op"], "value": id}}, "sort": []object{{"field": "name"}}, "fields": []string{"name"}}
		})
	}
	attack(entities.FilterTool, func(id string) object { return object{"type": "team", "cursor": id} })
	attack(entities.FilterTool, func(id string) object { return object{"type": "team", "fields": []string{id}} })
	attack(entities.FilterTool, func(id string) object { return object{"type": "team", "sort": []object{{"field": id}}} })
	thief.refused(jig.CodeNotFound, entities.SearchTool, object{"query": "needle", "workspace": "secret-ws"})
	thief.refused(jig.CodeNotFound, entities.FilterTool, object{"type": "team", "workspace": "secret-ws"})
	thief.refused(jig.CodeNotFound, entities.ResearchTool, object{"question": "needle", "workspace": "secret-ws"})
	for _, id := range []string{foreign, "ent_none"} {
		_, err := options(thief.db).Extraction(t.Context(), thief.Invocation, []byte(`{"id":"`+id+`"}`))
		require.Equal(t, jig.CodeNotFound, jig.CodeOf(err))
		require.Equal(t, `there is no entity "`+id+`"`, jig.AsError(err).Message)
	}
	for _, id := range []string{foreign, "ent_none"} {
		err := options(thief.db).CheckExtractAll(t.Context(), thief.Invocation, []byte(`{"type":"`+id+`"}`))
		require.Equal(t, jig.CodeNotFound, jig.CodeOf(err))
		require.Equal(t, `there is no entity type "`+id+`"`, jig.AsError(err).Message)
	}
	tried[entities.ExtractTool], tried[entities.ExtractAllTool] = true, true
	for _, tool := range entities.Tools(entities.Options{}) {
		require.True(t, tried[tool.Contract().Name], tool.Contract().Name)
	}

	e, err := owner.db.Entity(t.Context(), owner.Invocation.Tenant, foreign)
	require.NoError(t, err)
	require.Equal(t, int64(1), e.Revision, "nothing has changed")
	var r entity.Reading
	thief.call(entities.GetTool, object{"id": own}, &r)
	require.Equal(t, int64(1), r.Revision)
	related, err := thief.db.Connected(t.Context(), thief.Invocation.Tenant, own, 3, "")
	require.NoError(t, err)
	require.Empty(t, related)
}

// No tool has a tenant argument.
func TestTenant_IsNotAnArgument(t *testing.T) {
	t.Parallel()
	for _, tool := range entities.Tools(entities.Options{}) {
		c := tool.Contract()
		require.NotContains(t, strings.ToLower(string(c.InputSchema)), "tenant", c.Name)
		require.NotEmpty(t, c.OutputSchema)
		require.True(t, c.Idempotent)
	}
}
