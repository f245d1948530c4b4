package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/store/storetest"
)

func newTenant(t *testing.T) world {
	t.Helper()
	return world{DB: storetest.New(t), tenant: storetest.Tenant(t)}
}

// record creates an entity of the type "everything".
func (w world) record(t *testing.T, content string, change func(*entity.NewEntity)) entity.Entity {
	t.Helper()
	n := entity.NewEntity{Entity: entity.Entity{Tenant: w.tenant, Type: "everything", TypeVersion: "v1", Title: "one", Content: []byte(content)}}
	if change != nil {
		change(&n)
	}
	e, created, err := w.CreateEntity(t.Context(), n)
	require.NoError(t, err)
	require.True(t, created)
	return e
}

func TestCreateEntity_CreatesOneForEachKey(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	n := entity.NewEntity{Entity: entity.Entity{Tenant: w.tenant, Type: "everything", Title: "one", Content: []byte(`{"name":"x"}`)}, Key: "k"}
	var wait sync.WaitGroup
	ids, made := make([]string, 8), make([]bool, 8)
	errs := make([]error, 8)
	for i := range ids {
		wait.Go(func() {
			var e entity.Entity
			e, made[i], errs[i] = w.CreateEntity(t.Context(), n)
			ids[i] = e.ID
		})
	}
	wait.Wait()
	count := 0
	for i := range ids {
		require.NoError(t, errs[i])
		require.Equal(t, ids[0], ids[i])
		if made[i] {
			count++
		}
	}
	require.Equal(t, 1, count)
	require.Regexp(t, "^ent_[a-z-]+-[0-9a-z]{26}$", ids[0])
	n.Type = "other"
	_, _, err := w.CreateEntity(t.Context(), n)
	requireCode(t, jig.CodeConflict, err)
	n.Key = ""
	_, created, err := w.CreateEntity(t.Context(), n)
	require.NoError(t, err)
	require.True(t, created, "without a key, each creation makes a new entity")
}

func TestCreateEntity_ChecksTheContent(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	for _, content := range []string{
		`[]`, `null`, `"x"`, `{`, `{} {}`, `{"a":"\u0000"}`, `{"a":[{"\u0000":1}]}`, `{"a":1e401}`, `{"a":{"b":[1e-999999]}}`,
		`{"a":"` + big(entity.MaxBytes) + `"}`,
	} {
		_, _, err := w.CreateEntity(t.Context(), entity.NewEntity{Entity: entity.Entity{Tenant: w.tenant, Type: "x", Content: []byte(content)}})
		requireCode(t, jig.CodeInvalidInput, err)
	}
	// Texts and numbers that PostgreSQL handles specially, and a text that is expensive to index.
	for _, content := range []string{
		`{"a":"\ud800","b":"\\u0000"}`, `{"a":1e400,"b":-1e-400}`, `{"a":"` + strings.Repeat("a-b.c/d@e ", 25_000) + `"}`,
	} {
		w.record(t, content, nil)
	}
}

func TestUpdateEntity_ChangesFields(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	e := w.record(t, `{"name":"a","amount":1,"open":true}`, func(n *entity.NewEntity) {
		n.Provenance = map[string]entity.Provenance{"name": {Task: "n", InputHash: "h"}, "amount": {Task: "m"}}
	})
	title := "two"
	patch := entity.Patch{
		Fields: map[string]json.RawMessage{"name": []byte(`"b"`), "open": []byte("null"), "due": []byte(`"2026-01-31"`)},
		Title:  &title, TypeVersion: "v2", Provenance: map[string]entity.Provenance{"due": {Task: "d"}}, Key: "k1",
	}
	for range 2 { // the second is the same change again
		u, err := w.UpdateEntity(t.Context(), w.tenant, e.ID, 1, patch)
		require.NoError(t, err)
		require.JSONEq(t, `{"name":"b","amount":1,"due":"2026-01-31"}`, string(u.Content))
		require.Equal(t, int64(2), u.Revision)
		require.Equal(t, "two v2", u.Title+" "+u.TypeVersion)
		require.Equal(t, map[string]entity.Provenance{"due": {Task: "d"}, "amount": {Task: "m"}}, u.Provenance, "a person overwrote the name")
		require.True(t, u.UpdatedAt.After(e.UpdatedAt))
	}
	patch.Key = "k2"
	_, err := w.UpdateEntity(t.Context(), w.tenant, e.ID, 1, patch)
	requireCode(t, jig.CodeConflict, err)
	require.Equal(t, "stale_revision", jig.AsError(err).Reason)
	_, err = w.UpdateEntity(t.Context(), w.tenant, e.ID, 0, entity.Patch{Fields: map[string]json.RawMessage{"name": []byte(`"` + big(entity.MaxBytes-20) + `"`), "x": []byte(`"` + big(10) + `"`)}})
	requireCode(t, jig.CodeInvalidInput, err)
	u, err := w.Entity(t.Context(), w.tenant, e.ID)
	require.NoError(t, err)
	require.Equal(t, int64(2), u.Revision, "the change that was too large was not stored")

	require.NoError(t, w.DeleteEntity(t.Context(), w.tenant, e.ID, 2))
	require.NoError(t, w.DeleteEntity(t.Context(), w.tenant, e.ID, 2), "it is already deleted")
	_, err = w.UpdateEntity(t.Context(), w.tenant, e.ID, 0, patch)
	requireCode(t, jig.CodeNotFound, err)
	_, err = w.Entity(t.Context(), w.tenant, e.ID)
	requireCode(t, jig.CodeNotFound, err)
	kind, err := w.EntityTypeOf(t.Context(), w.tenant, e.ID)
	require.NoError(t, err)
	require.Equal(t, "everything", kind)
	requireCode(t, jig.CodeConflict, w.DeleteEntity(t.Context(), w.tenant, w.record(t, `{}`, nil).ID, 2))
	requireCode(t, jig.CodeNotFound, w.DeleteEntity(t.Context(), w.tenant, "ent_none", 0))
}

// Concurrent updates of different fields lose nothing.
func TestUpdateEntity_Concurrently(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	e := w.record(t, `{}`, nil)
	var wait sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		wait.Go(func() {
			fields := map[string]json.RawMessage{fmt.Sprint("f", i): []byte("1")}
			_, errs[i] = w.UpdateEntity(t.Context(), w.tenant, e.ID, 0, entity.Patch{Fields: fields})
		})
	}
	wait.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	u, err := w.Entity(t.Context(), w.tenant, e.ID)
	require.NoError(t, err)
	var content map[string]int
	require.NoError(t, json.Unmarshal(u.Content, &content))
	require.Len(t, content, 16)
	require.Equal(t, int64(17), u.Revision)
}

// The name of a relation is a text like any other.
func TestRelate_TaintsTheEntity(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	from, to := w.record(t, `{}`, nil).ID, w.record(t, `{}`, nil).ID
	reads := func() bool {
		taint := &entity.Taint{}
		related, err := w.RelationsOf(entity.WithTaint(t.Context(), taint), w.tenant, to, []string{"everything"}, 10)
		require.NoError(t, err)
		require.Len(t, related, 1)
		return taint.Read()
	}
	require.NoError(t, w.Relate(entity.WithTaint(t.Context(), &entity.Taint{}), w.tenant, entity.Relation{From: from, Name: "r", To: to}))
	require.False(t, reads())
	require.NoError(t, w.Relate(entity.WithTaint(t.Context(), &entity.Taint{Session: true}), w.tenant, entity.Relation{From: from, Name: "r", To: to}))
	require.True(t, reads())
}

func TestConnected_FollowsRelationsWithinAWorkspace(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	ctx := t.Context()
	// a -> b -> c -> d, and x -> b; c is not in the workspace.
	d := w.record(t, `{}`, nil).ID
	point := func(to ...string) func(*entity.NewEntity) {
		return func(n *entity.NewEntity) { n.Relations = map[string][]string{"next": to} }
	}
	c := w.record(t, `{}`, point(d, d)).ID
	b := w.record(t, `{}`, point(c)).ID
	a := w.record(t, `{}`, func(n *entity.NewEntity) { point(b)(n); n.Workspaces = []string{"ws"} }).ID
	x := w.record(t, `{}`, nil).ID
	require.NoError(t, w.Relate(ctx, w.tenant, entity.Relation{From: x, Name: "r", To: b}))
	require.NoError(t, w.Relate(ctx, w.tenant, entity.Relation{From: x, Name: "r", To: b}))
	connected := func(from string, depth int, workspace string) []string {
		ids, err := w.Connected(ctx, w.tenant, from, depth, workspace)
		require.NoError(t, err)
		return ids
	}
	require.Equal(t, []string{b}, connected(a, 0, ""))
	require.ElementsMatch(t, []string{b, c, x}, connected(a, 2, ""))
	require.Equal(t, []string{b}, connected(a, 2, "")[:1], "the nearest first")
	require.ElementsMatch(t, []string{b, c, x, d}, connected(a, 99, ""))

	w.change(t, "insert into workspaces (tenant_id, workspace, entity_id) values ($1, 'ws', $2), ($1, 'ws', $3)", w.tenant, b, d)
	related, err := w.RelationsOf(ctx, w.tenant, b, []string{"everything"}, 10)
	require.NoError(t, err)
	require.Equal(t, []entity.RelatedEntity{
		{Name: "next", Outgoing: true, EntityID: c, Type: "everything", Title: "one"},
		{Name: "next", EntityID: a, Type: "everything", Title: "one"},
		{Name: "r", EntityID: x, Type: "everything", Title: "one"},
	}, related)
	for limit, kind := range map[int]string{0: "everything", 10: "other"} {
		none, err := w.RelationsOf(ctx, w.tenant, b, []string{kind}, limit)
		require.NoError(t, err)
		require.Empty(t, none)
	}
	near, err := w.ConnectedEntities(ctx, w.tenant, a, 5, nil, "", 2)
	require.NoError(t, err)
	require.Len(t, near, 2)
	require.Equal(t, entity.Entity{Tenant: w.tenant, ID: b, Type: "everything", Title: "one"}, near[0], "the nearest first, without contents")
	near, err = w.ConnectedEntities(ctx, w.tenant, a, 5, []string{"other", "everything"}, "", 0)
	require.NoError(t, err)
	require.Len(t, near, 4)
	near, err = w.ConnectedEntities(ctx, w.tenant, a, 5, []string{"other"}, "", 0)
	require.NoError(t, err)
	require.Empty(t, near)
	near, err = w.ConnectedEntities(ctx, w.tenant, a, 5, nil, "ws", 0)
	require.NoError(t, err)
	require.Len(t, near, 1)
	require.Equal(t, []string{b}, connected(a, 5, "ws"), "c is not in the workspace, and d is behind it")
	held, err := w.InWorkspace(ctx, w.tenant, "ws", []string{d, c, a})
	require.NoError(t, err)
	require.Equal(t, []string{d, a}, held)
	w.change(t, "update workspaces set removed_at = now() where entity_id = $1", b)
	require.Empty(t, connected(a, 5, "ws"))

	_, err = w.UpdateEntity(ctx, w.tenant, x, 0, entity.Patch{Relations: map[string][]string{"r": {}}})
	require.NoError(t, err)
	require.Empty(t, connected(x, 5, ""))
	_, err = w.UpdateEntity(ctx, w.tenant, a, 0, entity.Patch{Relations: map[string][]string{"next": {x, d}}})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{x, d}, connected(a, 1, ""))
	_, err = w.UpdateEntity(ctx, w.tenant, a, 0, entity.Patch{Relations: map[string][]string{"next": {"ent_none"}}})
	requireCode(t, jig.CodeNotFound, err)
	require.ElementsMatch(t, []string{x, d}, connected(a, 1, ""), "the failed update changed nothing")
	require.NoError(t, w.DeleteEntity(ctx, w.tenant, x, 0))
	require.Equal(t, []string{d}, connected(a, 1, ""))
	requireCode(t, jig.CodeNotFound, w.Relate(ctx, w.tenant, entity.Relation{From: a, Name: "r", To: x}))
	_, err = w.Connected(ctx, w.tenant, x, 1, "")
	requireCode(t, jig.CodeNotFound, err)
	_, _, err = w.CreateEntity(ctx, entity.NewEntity{Entity: entity.Entity{Tenant: w.tenant, Type: "t"}, Relations: map[string][]string{"r": {x}}})
	requireCode(t, jig.CodeNotFound, err)
}

func TestSearchText_FindsWords(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	ctx := t.Context()
	e := w.record(t, `{"name":"unrelated"}`, func(n *entity.NewEntity) { n.Workspaces = []string{"ws"} })
	other := w.record(t, `{"name":"A quokka by itself"}`, func(n *entity.NewEntity) { n.Type = "other" })
	long := strings.Repeat("Nothing of interest happens here. ", 60)
	doc, err := w.PutText(ctx, entity.Text{Tenant: w.tenant, EntityID: e.ID, Title: "Zoo", Body: long + "The Quokka smiles. " + long})
	require.NoError(t, err)
	loose, err := w.PutText(ctx, entity.Text{Tenant: w.tenant, Body: "A quokka of nobody."})
	require.NoError(t, err)

	found, err := w.SearchText(ctx, w.tenant, "quokka smiles", nil, 10)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, doc.ID, found[0].DocumentID)
	require.Positive(t, found[0].Chunk)
	require.Contains(t, found[0].Snippet, "**Quokka** **smiles**")
	require.Contains(t, found[0].Body, "Quokka")
	for query, ids := range map[string][]string{"quokka": {e.ID, other.ID}, "zebra": nil} {
		hits, err := w.SearchEntities(ctx, w.tenant, []string{"everything", "other"}, query, "", 10)
		require.NoError(t, err)
		var got []string
		for _, h := range hits {
			got = append(got, h.EntityID)
		}
		require.ElementsMatch(t, ids, got)
	}
	hits, err := w.SearchEntities(ctx, w.tenant, []string{"everything", "other"}, "quokka", "ws", 10)
	require.NoError(t, err)
	require.Len(t, hits, 1)
	require.Equal(t, doc.ID, hits[0].Document)
	require.Contains(t, hits[0].Snippet, "**Quokka**")
	found, err = w.SearchText(ctx, w.tenant, "quokka", []string{}, 10)
	require.NoError(t, err)
	require.Empty(t, found, "an empty list does not mean all entities")
	for _, hostile := range []string{"", "'", `"`, "!!! & | :*", `\`, "a\x00b", "\xff", ":A", "-", "((("} {
		_, err = w.SearchText(ctx, w.tenant, hostile, nil, 10)
		require.NoError(t, err, "%q", hostile)
	}

	_, err = w.PutText(ctx, entity.Text{Tenant: w.tenant, ID: doc.ID, EntityID: e.ID, Body: "Short, and without it."})
	require.NoError(t, err)
	found, err = w.SearchText(ctx, w.tenant, "quokka", nil, 10)
	require.NoError(t, err)
	require.Len(t, found, 1, "the chunks of the longer version are gone")
	require.Equal(t, loose.ID, found[0].DocumentID)
	shorter, err := w.Text(ctx, w.tenant, doc.ID)
	require.NoError(t, err)
	require.Equal(t, "Short, and without it.", shorter.Body)
	require.NoError(t, w.DeleteEntity(ctx, w.tenant, e.ID, 0))
	_, err = w.Text(ctx, w.tenant, doc.ID)
	requireCode(t, jig.CodeNotFound, err)
	_, err = w.PutText(ctx, entity.Text{Tenant: w.tenant, EntityID: e.ID, Body: "x"})
	requireCode(t, jig.CodeNotFound, err)
}

// No tenant can see or change anything of another tenant, through the API with any id or through SQL as the application role.
func TestEntities_AreSeparatedByTenant(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	ctx := t.Context()
	target := w.record(t, `{"name":"secret"}`, func(n *entity.NewEntity) { n.Workspaces, n.Key = []string{"ws"}, "k" })
	e := w.record(t, `{"name":"secret"}`, func(n *entity.NewEntity) { n.Relations = map[string][]string{"r": {target.ID}} })
	doc, err := w.PutText(ctx, entity.Text{Tenant: w.tenant, EntityID: e.ID, Body: "secret"})
	require.NoError(t, err)
	before := w.dump(t)
	require.Contains(t, before, `"kind":"text_chunk"`)

	thief := world{DB: w.DB, tenant: storetest.Tenant(t)}
	own := thief.record(t, `{}`, func(n *entity.NewEntity) { n.Key = "k" })
	require.NotEqual(t, target.ID, own.ID, "each tenant has its own keys")
	patch := entity.Patch{Fields: map[string]json.RawMessage{"name": []byte(`"x"`)}}
	_, get := w.Entity(ctx, thief.tenant, e.ID)
	_, kind := w.EntityTypeOf(ctx, thief.tenant, e.ID)
	_, update := w.UpdateEntity(ctx, thief.tenant, e.ID, 0, patch)
	_, points := w.UpdateEntity(ctx, thief.tenant, own.ID, 0, entity.Patch{Relations: map[string][]string{"r": {e.ID}}})
	_, connected := w.Connected(ctx, thief.tenant, e.ID, 3, "")
	_, near := w.ConnectedEntities(ctx, thief.tenant, e.ID, 3, nil, "", 0)
	theirs, err := w.RelationsOf(ctx, thief.tenant, e.ID, []string{"everything"}, 10)
	require.NoError(t, err)
	require.Empty(t, theirs)
	_, _, progress := w.EntityProgress(ctx, thief.tenant, e.ID)
	_, read := w.Text(ctx, thief.tenant, doc.ID)
	_, attach := w.PutText(ctx, entity.Text{Tenant: thief.tenant, EntityID: e.ID, Body: "x"})
	_, search := w.SearchEntities(ctx, thief.tenant, []string{"everything"}, "secret", "ws", 10)
	for i, err := range []error{
		get, kind, update, points, connected, near, progress, read, attach, search, w.DeleteEntity(ctx, thief.tenant, e.ID, 0),
		w.Relate(ctx, thief.tenant, entity.Relation{From: own.ID, Name: "r", To: e.ID}), w.Relate(ctx, thief.tenant, entity.Relation{From: e.ID, Name: "r", To: own.ID}),
	} {
		require.Equal(t, jig.CodeNotFound, jig.CodeOf(err), "%d: %v", i, err)
	}
	hits, err := w.SearchText(ctx, thief.tenant, "secret", []string{e.ID}, 10)
	require.NoError(t, err)
	require.Empty(t, hits)
	require.NotContains(t, thief.dump(t), "secret")

	foreign, err := w.EntitiesElsewhere(ctx, thief.tenant, []string{own.ID, e.ID, "ent_none"})
	require.NoError(t, err)
	require.Equal(t, []string{e.ID}, foreign)
	tables := []string{"entities", "relations", "workspaces", "texts", "text_chunks"}
	for tenant, more := range map[string]bool{w.tenant: true, storetest.Tenant(t): false, "": false} {
		direct(t, storetest.URL(t), tenant, func(tx pgx.Tx) {
			_, err := tx.Exec(ctx, "select set_config('jig.sweep', 'on', true)")
			require.NoError(t, err)
			for _, table := range tables {
				var n int
				require.NoError(t, tx.QueryRow(ctx, "select count(*) from "+table).Scan(&n))
				require.Equal(t, more, n > 0, table)
			}
		})
	}
	for _, table := range tables {
		direct(t, storetest.URL(t), w.tenant, func(tx pgx.Tx) {
			_, err := tx.Exec(ctx, "delete from "+table)
			require.ErrorContains(t, err, "permission denied")
		})
	}
	require.NoError(t, w.EraseTenant(ctx, thief.tenant))
	require.Equal(t, before, w.dump(t), "nothing has changed")
	require.NoError(t, w.EraseTenant(ctx, w.tenant))
	require.Empty(t, w.dump(t))
}

func TestEntityCounts_CountByType(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	w.record(t, `{}`, nil)
	began := clock(t)
	last := w.record(t, `{}`, nil)
	gone := w.record(t, `{}`, nil)
	require.NoError(t, w.DeleteEntity(t.Context(), w.tenant, gone.ID, 0))
	other := w.record(t, `{}`, func(n *entity.NewEntity) { n.Type = "other" })
	counts, err := w.EntityCounts(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Equal(t, []entity.Count{
		{Type: "everything", Count: 2, UpdatedAt: last.UpdatedAt}, {Type: "other", Count: 1, UpdatedAt: other.UpdatedAt},
	}, counts)
	requireSince(t, began, 0, last.CreatedAt)
}

// A relation name with characters that PostgreSQL refuses is cleaned like any text, and its relations are kept.
func TestRelations_OfOddNamesAreKept(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	to := w.record(t, `{}`, nil)
	from := w.record(t, `{}`, func(n *entity.NewEntity) {
		n.Relations = map[string][]string{"a\x00b": {to.ID, to.ID}}
	})
	ids, err := w.Connected(t.Context(), w.tenant, from.ID, 1, "")
	require.NoError(t, err)
	require.Equal(t, []string{to.ID}, ids)
}
