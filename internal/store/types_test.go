package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
)

// noteOf returns a note whose content was checked against a version of its type.
func (w world) noteOf(version, key string) entity.NewEntity {
	return entity.NewEntity{Entity: entity.Entity{Tenant: w.tenant, Type: "note", TypeVersion: version, Content: json.RawMessage(`{}`)}, Key: key}
}

func typeDocument(version string) bundle.StoredDocument {
	return bundle.StoredDocument{DocumentVersion: document("entity_type/note@" + version), Body: []byte(version)}
}

func requireChanged(t *testing.T, err error) {
	t.Helper()
	requireCode(t, jig.CodeConflict, err)
	require.Equal(t, bundle.ReasonTypeChanged, jig.AsError(err).Reason)
}

func TestRegisterDocument_RefusesAChangedTypeBasis(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	unused, fits := bundle.TypeBasis{Type: "note"}, bundle.TypeBasis{Type: "note", Version: "v1"}
	register := func(version string, types ...bundle.TypeBasis) error {
		return w.register(t, typeDocument(version), types...)
	}
	require.NoError(t, register("v0", fits), "the type has no current version yet")
	requireChanged(t, register("v2", fits))
	require.NoError(t, register("v1", unused))

	e, _, err := w.CreateEntity(t.Context(), w.noteOf("v1", "n"))
	require.NoError(t, err)
	requireChanged(t, register("v2", unused))
	requireChanged(t, register("v2", bundle.TypeBasis{Type: "other"}, unused))
	require.Equal(t, []string{"entity_type/note@v1"}, w.current(t))
	owner := bundleOf("notes", "1.0.0", nil, "entity_type/memo@v1")
	owner.Types = []bundle.TypeBasis{unused}
	_, err = w.InstallBundle(t.Context(), w.operator(), owner)
	requireChanged(t, err)
	require.Equal(t, []string{"entity_type/note@v1"}, w.current(t), "nothing changed")

	require.NoError(t, w.DeleteEntity(t.Context(), w.tenant, e.ID, 0))
	require.NoError(t, register("v2", unused))
	require.NoError(t, register("v3"), "a document that is not an entity type needs no basis")
}

func TestCreateEntity_RequiresTheCurrentTypeVersion(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	_, created, err := w.CreateEntity(t.Context(), w.noteOf("v1", ""))
	require.NoError(t, err, "its type has no current version")
	require.True(t, created)
	w.put(t, "entity_type/note@v1")
	first, _, err := w.CreateEntity(t.Context(), w.noteOf("v1", "first"))
	require.NoError(t, err)
	w.put(t, "entity_type/note@v2")
	_, _, err = w.CreateEntity(t.Context(), w.noteOf("v1", "second"))
	requireCode(t, jig.CodeUnavailable, err)
	require.True(t, jig.CodeOf(err).Retryable(), "another attempt checks the content again")
	again, created, err := w.CreateEntity(t.Context(), w.noteOf("v1", "first"))
	require.NoError(t, err, "it was created before")
	require.False(t, created)
	require.Equal(t, first.ID, again.ID)
	_, created, err = w.CreateEntity(t.Context(), w.noteOf("v2", "second"))
	require.NoError(t, err)
	require.True(t, created)
}

// The defaults that a new version adds to existing entities are stored together with the version or not at all.
func TestEntities_GetTheDefaultsOfANewVersion(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	w.put(t, "entity_type/note@v1")
	n := w.noteOf("v1", "")
	lacks, _, err := w.CreateEntity(t.Context(), n)
	require.NoError(t, err)
	n.Content = json.RawMessage(`{"mood":"loud"}`)
	has, _, err := w.CreateEntity(t.Context(), n)
	require.NoError(t, err)
	n.Type = "memo"
	other, _, err := w.CreateEntity(t.Context(), n)
	require.NoError(t, err)
	gone, _, err := w.CreateEntity(t.Context(), w.noteOf("v1", ""))
	require.NoError(t, err)
	require.NoError(t, w.DeleteEntity(t.Context(), w.tenant, gone.ID, 0))
	content := func(e entity.Entity) string {
		t.Helper()
		now, err := w.Entity(t.Context(), w.tenant, e.ID)
		require.NoError(t, err)
		return fmt.Sprintf("revision %d: %s", now.Revision, strings.ReplaceAll(string(now.Content), " ", ""))
	}
	adds := bundle.TypeBasis{Type: "note", Version: "v1", Defaults: map[string]json.RawMessage{"mood": json.RawMessage(`"calm"`)}}
	stale := adds
	stale.Version = "v0"
	requireChanged(t, w.register(t, typeDocument("v2"), stale))
	require.Equal(t, `revision 1: {}`, content(lacks))
	require.NoError(t, w.register(t, typeDocument("v2"), adds))
	require.Equal(t, `revision 2: {"mood":"calm"}`, content(lacks))
	require.Equal(t, `revision 1: {"mood":"loud"}`, content(has))
	require.Equal(t, `revision 1: {"mood":"loud"}`, content(other))

	b := bundleOf("notes", "1.0.0", nil, "entity_type/memo@v3")
	b.Types = []bundle.TypeBasis{{Type: "memo", Version: "v1", Defaults: map[string]json.RawMessage{"size": json.RawMessage(`3`)}}}
	w.install(t, b)
	require.Equal(t, `revision 2: {"mood":"loud","size":3}`, content(other))
}

// A type can change only while it is unused: a changed type and an entity checked against the old version never coexist.
func TestTypes_ChangeConcurrentlyWithNewEntities(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	w.put(t, "entity_type/note@v0")
	for round := range 20 {
		old, next := fmt.Sprintf("v%d", round), fmt.Sprintf("v%d", round+1)
		var wait sync.WaitGroup
		var changed error
		made := make([]error, 4)
		ids := make([]string, 4)
		for i := range made {
			wait.Go(func() {
				var e entity.Entity
				e, _, made[i] = w.CreateEntity(t.Context(), w.noteOf(old, ""))
				ids[i] = e.ID
			})
		}
		wait.Go(func() {
			changed = w.register(t, typeDocument(next), bundle.TypeBasis{Type: "note"})
		})
		wait.Wait()
		for i, err := range made {
			if changed == nil {
				requireCode(t, jig.CodeUnavailable, err)
				continue
			}
			requireChanged(t, changed)
			require.NoError(t, err)
			require.NoError(t, w.DeleteEntity(t.Context(), w.tenant, ids[i], 0))
		}
		if changed != nil {
			w.put(t, "entity_type/note@"+next)
		}
	}
}
