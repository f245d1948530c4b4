package store_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
)

func keyed(w world, key string) entity.NewEntity {
	return entity.NewEntity{Entity: entity.Entity{Tenant: w.tenant, Type: "everything", Content: []byte(`{"name":"x"}`)}, Key: key}
}

// A deleted entity does not block its reusable key, and other keys that look alike are not affected.
func TestCreateByKey_DeletionFreesAReusableKey(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	n := keyed(w, "note.add: k")
	_, found, err := w.LatestByKey(t.Context(), w.tenant, n.Key)
	require.NoError(t, err)
	require.False(t, found)
	similar, created, err := w.CreateByKey(t.Context(), keyed(w, "note.add: k~2"), true)
	require.NoError(t, err)
	require.True(t, created)
	seen := map[string]bool{similar.ID: true}
	for range 12 {
		e, created, err := w.CreateByKey(t.Context(), n, true)
		require.NoError(t, err)
		require.True(t, created)
		require.False(t, seen[e.ID], "it is a new entity")
		seen[e.ID] = true
		same, created, err := w.CreateByKey(t.Context(), n, true)
		require.NoError(t, err)
		require.False(t, created)
		require.Equal(t, e.ID, same.ID)
		require.NoError(t, w.DeleteEntity(t.Context(), w.tenant, e.ID, 0))
		latest, found, err := w.LatestByKey(t.Context(), w.tenant, n.Key)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, e.ID, latest.ID, "the latest, although it was deleted")
	}
}

func TestCreateByKey_AKeyThatIsNotReusableKeepsItsEntity(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	first, created, err := w.CreateByKey(t.Context(), keyed(w, "ses_1/1.1"), false)
	require.NoError(t, err)
	require.True(t, created)
	require.NoError(t, w.DeleteEntity(t.Context(), w.tenant, first.ID, 0))
	again, created, err := w.CreateByKey(t.Context(), keyed(w, "ses_1/1.1"), false)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, first.ID, again.ID)

	other := keyed(w, "ses_1/1.1")
	other.Type = "other"
	_, _, err = w.CreateByKey(t.Context(), other, false)
	requireCode(t, jig.CodeConflict, err)
}

func TestCreateByKey_ConcurrentRequestsGetOneEntity(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	first, _, err := w.CreateByKey(t.Context(), keyed(w, "k"), true)
	require.NoError(t, err)
	require.NoError(t, w.DeleteEntity(t.Context(), w.tenant, first.ID, 0))
	const many = 8
	ids, made, errs := make([]string, many), make([]bool, many), make([]error, many)
	var wait sync.WaitGroup
	for i := range many {
		wait.Go(func() {
			var e entity.Entity
			e, made[i], errs[i] = w.CreateByKey(t.Context(), keyed(w, "k"), true)
			ids[i] = e.ID
		})
	}
	wait.Wait()
	count := 0
	for i := range many {
		require.NoError(t, errs[i])
		require.Equal(t, ids[0], ids[i])
		require.NotEqual(t, first.ID, ids[i])
		if made[i] {
			count++
		}
	}
	require.Equal(t, 1, count)
}
