package worker

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/plan/thin"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
	"github.com/jig-run/jig/spec"
)

func TestLast(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 100, 1000, maxDeleted} {
		looks := 0
		got, err := last(func(i int) (bool, error) {
			looks++
			return i < n, nil
		})
		require.NoError(t, err)
		require.Equal(t, n-1, got)
		require.LessOrEqual(t, looks, 41, "%d", n)
	}
	_, err := last(func(int) (bool, error) { return false, jig.Errorf(jig.CodeUnavailable, "away") })
	require.Equal(t, jig.CodeUnavailable, jig.CodeOf(err))
}

// A deleted entity does not block its key, and earlier deletions do not slow down later requests.
func TestKeyAfterDeletions(t *testing.T) {
	t.Parallel()
	owner, app := storetest.NewDatabase(t)
	db := storetest.Open(t, owner, app, store.Options{})
	ctx, tenant := t.Context(), "acme"
	body := []byte(`{"kind":"entity_type","name":"note","description":"A note.","fields":[{"name":"n","type":"number"}]}`)
	doc, problems := spec.Load("note.json", body)
	require.NoError(t, problems.OrNil())
	require.NoError(t, db.PutDocument(ctx, tenant, activities.DocumentEntityType, doc.Name, doc.Version, doc.Body))
	r := records{db: db, entities: entityOptions(db)}
	inv := jig.Invocation{Tenant: tenant, Principal: jig.Principal{ID: "ana", Permissions: []string{"entities.*.read", "entities.*.write"}}}
	c := thin.Creation{Type: "note", Key: "note.add: k", Shared: true, Content: map[string]json.RawMessage{"n": []byte("1")}}
	_, found, err := r.Made(ctx, tenant, c.Key)
	require.NoError(t, err)
	require.False(t, found)
	seen := map[string]bool{}
	similar := c
	similar.Key += "~2"
	other, _, _, err := r.Create(ctx, inv, similar)
	require.NoError(t, err)
	seen[other.ID] = true
	for range 12 {
		e, created, missing, err := r.Create(ctx, inv, c)
		require.NoError(t, err)
		require.Empty(t, missing)
		require.True(t, created)
		require.False(t, seen[e.ID], "it is a new one")
		seen[e.ID] = true
		same, created, _, err := r.Create(ctx, inv, c)
		require.NoError(t, err)
		require.False(t, created)
		require.Equal(t, e.ID, same.ID)
		made, found, err := r.Made(ctx, tenant, c.Key)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, e.ID, made.ID)
		require.NoError(t, db.DeleteEntity(ctx, tenant, e.ID, 0))
	}
}
