package store_test

import (
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/store/storetest"
)

// A move and its change of the entity are stored together or not at all.
func TestMoveFrame_ChangesItsEntity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.record(t, `{"name":"a","amount":1}`, nil)
	near := w.record(t, `{}`, nil)
	f, _ := w.frame(t, 1)
	m := w.moving(f)
	m.Events = []jig.Event{{Type: jig.EventEntityUpdated, Data: json.RawMessage(`{"entity_id":"` + e.ID + `"}`)}}
	m.Entity = &entity.Change{
		ID: e.ID, Fields: map[string]json.RawMessage{"name": []byte(`"b"`)}, Provenance: map[string]entity.Provenance{"name": {Task: "n", InputHash: "h"}},
		Relations: map[string][]string{"owner": {near.ID, "ent_none"}},
		Tasks:     map[string]json.RawMessage{"n": []byte(`{"status":"completed"}`), "o": []byte(`{"status":"failed"}`)},
	}
	stale := m
	stale.Revision = 7
	requireCode(t, jig.CodeConflict, w.MoveFrame(t.Context(), stale))
	same, err := w.Entity(t.Context(), w.tenant, e.ID)
	require.NoError(t, err)
	require.Equal(t, e, same, "a stale move changes nothing")

	f = w.move(t, m)
	u, err := w.Entity(t.Context(), w.tenant, e.ID)
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"b","amount":1}`, string(u.Content))
	require.Equal(t, m.Entity.Provenance, u.Provenance)
	require.Equal(t, int64(2), u.Revision)
	ids, err := w.Connected(t.Context(), w.tenant, e.ID, 1, "")
	require.NoError(t, err)
	require.Equal(t, []string{near.ID}, ids)
	_, ended, err := w.EntityProgress(t.Context(), w.tenant, e.ID)
	require.NoError(t, err)
	require.Equal(t, m.Entity.Tasks, ended)

	m = w.moving(f)
	m.Entity = &entity.Change{ID: e.ID, Tasks: map[string]json.RawMessage{"o": []byte(`{"status":"completed"}`)}}
	f = w.move(t, m)
	_, ended, err = w.EntityProgress(t.Context(), w.tenant, e.ID)
	require.NoError(t, err)
	require.JSONEq(t, `{"status":"completed"}`, string(ended["o"]))
	require.Len(t, ended, 2)

	m = w.moving(f)
	m.Entity = &entity.Change{ID: e.ID, Fields: map[string]json.RawMessage{
		"name": []byte(`"` + big(entity.MaxBytes-20) + `"`), "x": []byte(`"` + big(10) + `"`),
	}}
	requireCode(t, jig.CodeInvalidInput, w.MoveFrame(t.Context(), m))
	require.Equal(t, f, w.frameOf(t, f.CallID), "a change that is too large stores nothing of the move")

	require.NoError(t, w.DeleteEntity(t.Context(), w.tenant, e.ID, 0))
	m = w.moving(f)
	m.Entity = &entity.Change{ID: e.ID, Fields: map[string]json.RawMessage{"name": []byte(`"c"`)}}
	w.move(t, m)
	_, err = w.Entity(t.Context(), w.tenant, e.ID)
	requireCode(t, jig.CodeNotFound, err)

	thief := storetest.Tenant(t)
	direct(t, storetest.URL(t), thief, func(tx pgx.Tx) {
		var n int
		require.NoError(t, tx.QueryRow(t.Context(), "select count(*) from entity_tasks").Scan(&n))
		require.Zero(t, n)
	})
	direct(t, storetest.URL(t), w.tenant, func(tx pgx.Tx) {
		_, err := tx.Exec(t.Context(), "delete from entity_tasks")
		require.ErrorContains(t, err, "permission denied")
	})
	require.NoError(t, w.EraseTenant(t.Context(), w.tenant))
	require.NotContains(t, w.dump(t), "entity_task")
}

// What a task has found is kept with the entity even if it fills no field.
func TestMoveFrame_OutcomesOfTasksTaintTheEntity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.record(t, `{}`, nil)
	f, _ := w.frame(t, 1)
	for _, untrusted := range []bool{false, true} {
		m := w.moving(f)
		m.Entity = &entity.Change{ID: e.ID, Tasks: map[string]json.RawMessage{"n": []byte(`{"status":"completed","value":1}`)}}
		require.NoError(t, w.MoveFrame(entity.WithTaint(t.Context(), &entity.Taint{Session: untrusted}), m))
		f = w.frameOf(t, f.CallID)
		taint := &entity.Taint{}
		_, _, err := w.EntityProgress(entity.WithTaint(t.Context(), taint), w.tenant, e.ID)
		require.NoError(t, err)
		require.Equal(t, untrusted, taint.Read())
	}
}

func TestSources_HaveHashesAndBodies(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	e := w.record(t, `{"name":"a"}`, nil)
	put := func(d entity.Text) entity.Text {
		d.Tenant, d.EntityID = w.tenant, e.ID
		d, err := w.PutText(t.Context(), d)
		require.NoError(t, err)
		return d
	}
	first, second := put(entity.Text{Body: "0123456789"}), put(entity.Text{Body: "abc"})
	read := func(bytes int) entity.Sources {
		found, err := w.Sources(t.Context(), w.tenant, []string{e.ID, "ent_none"}, bytes)
		require.NoError(t, err)
		require.Len(t, found.Entities, 1)
		require.Equal(t, []string{first.ID, second.ID}, []string{found.Texts[0].ID, found.Texts[1].ID})
		return found
	}
	before := read(12)
	require.Equal(t, "0123456789", *before.Texts[0].Body)
	require.Nil(t, before.Texts[1].Body, "there is no room for it")
	require.Nil(t, read(0).Texts[0].Body)
	require.Equal(t, e.Type, before.Entities[0].Type)

	put(entity.Text{ID: second.ID, Body: "abd"})
	after := read(100)
	require.Equal(t, "abd", *after.Texts[1].Body)
	require.Equal(t, before.Texts[0].Hash, after.Texts[0].Hash)
	require.NotEqual(t, before.Texts[1].Hash, after.Texts[1].Hash)
	require.Equal(t, before.Entities, after.Entities)
	_, err := w.UpdateEntity(t.Context(), w.tenant, e.ID, 0, entity.Patch{Fields: map[string]json.RawMessage{"name": []byte(`"b"`)}})
	require.NoError(t, err)
	require.NotEqual(t, before.Entities, read(0).Entities)

	thief, err := w.Sources(t.Context(), storetest.Tenant(t), []string{e.ID}, 100)
	require.NoError(t, err)
	require.Empty(t, thief.Entities)
	require.Empty(t, thief.Texts)
}

// Entities whose latest extraction left a task without a value can be selected, all of them or those of one task.
func TestFilter_SelectsEntitiesWithFailedTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	kind := everything()
	kind.Tasks = []entity.Task{{ID: "n"}, {ID: "o"}}
	f, _ := w.frame(t, 1)
	ended := func(tasks map[string]json.RawMessage) string {
		e := w.record(t, `{}`, nil)
		m := w.moving(f)
		m.Entity = &entity.Change{ID: e.ID, Tasks: tasks}
		f = w.move(t, m)
		return e.ID
	}
	done, failed, canceled := []byte(`{"status":"completed"}`), []byte(`{"status":"failed","value":"\u0000"}`), []byte(`{"status":"canceled"}`)
	ended(nil)
	whole := ended(map[string]json.RawMessage{"n": done})
	ended(map[string]json.RawMessage{"gone": failed})
	first := ended(map[string]json.RawMessage{"n": failed, "o": done})
	second := ended(map[string]json.RawMessage{"n": done, "o": canceled})
	selected := func(op entity.FilterOp, value string) []string {
		page, err := w.FilterEntities(t.Context(), w.tenant, kind, entity.Filter{
			Where: []entity.FilterClause{{Field: entity.FilterFailedTasks, Op: op, Value: json.RawMessage(value)}},
		})
		require.NoError(t, err)
		var ids []string
		for _, e := range page.Entities {
			ids = append(ids, e.ID)
		}
		return ids
	}
	require.ElementsMatch(t, []string{first, second}, selected(entity.FilterNeq, "null"))
	require.Equal(t, []string{second}, selected(entity.FilterContains, `"o"`))
	require.Contains(t, selected(entity.FilterEq, "null"), whole)
	require.NotContains(t, selected(entity.FilterEq, "null"), first)
	_, err := w.FilterEntities(t.Context(), w.tenant, kind, entity.Filter{Sort: []entity.FilterSort{{Field: entity.FilterFailedTasks}}})
	requireCode(t, jig.CodeInvalidInput, err)
}
