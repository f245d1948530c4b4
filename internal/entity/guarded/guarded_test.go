package guarded_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/guarded"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
	"github.com/jig-run/jig/spec"
)

var types = []entity.Type{
	{Name: "team", Version: "v1", Fields: []entity.Field{
		{Name: "name", Type: entity.FieldText, Required: true},
		{Name: "stage", Type: entity.FieldText, Default: json.RawMessage(`"new"`)},
		{Name: "notes", Type: entity.FieldText},
		{Name: "parent", Type: entity.FieldRelation, Target: "team"},
		{Name: "members", Type: entity.FieldRelation, Many: true},
		{Name: "office", Type: entity.FieldObject, Fields: []entity.Field{
			{Name: "city", Type: entity.FieldText}, {Name: "owner", Type: entity.FieldRelation},
		}},
	}},
	{Name: "report", Version: "v1", Fields: []entity.Field{{Name: "subject", Type: entity.FieldText, Required: true}}},
}

// fixture is access to a tenant's entities, and the call of a principal who may do everything.
type fixture struct {
	guarded.Entities
	db  *store.DB
	inv jig.Invocation
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{db: storetest.New(t)}
	f.Entities = guarded.Entities{
		Store: f.db, Types: func(context.Context, string) ([]entity.Type, error) { return types, nil }, Check: spec.CheckContent,
	}
	f.inv.Tenant, f.inv.Principal.Permissions = storetest.Tenant(t), []string{"*"}
	return f
}

// create stores an entity and returns its id.
func (f *fixture) create(t *testing.T, kind, content string) string {
	t.Helper()
	e, _, err := f.db.CreateEntity(t.Context(), entity.NewEntity{Entity: entity.Entity{
		Tenant: f.inv.Tenant, Type: kind, Content: json.RawMessage(content),
	}})
	require.NoError(t, err)
	return e.ID
}

func TestReadable_FailsClosed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.create(t, "team", `{"name":"a"}`)
	types, err := f.ReadableTypes(t.Context(), f.inv)
	require.NoError(t, err)
	require.Equal(t, []string{"report", "team"}, slices.Sorted(maps.Keys(types)))
	e, found, err := f.Readable(t.Context(), f.inv, id)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "team", e.Type)

	inv := f.inv
	inv.Principal.Permissions = []string{"entities.report.read", "entities.team.write"}
	types, err = f.ReadableTypes(t.Context(), inv)
	require.NoError(t, err)
	require.Equal(t, []string{"report"}, slices.Sorted(maps.Keys(types)))
	_, found, err = f.Readable(t.Context(), inv, id)
	require.NoError(t, err)
	require.False(t, found)
	_, _, err = f.New(t.Context(), inv, guarded.Draft{Type: "team"})
	require.Equal(t, jig.CodeNotFound, jig.CodeOf(err), "an entity that may not be read is not found")
	inv.Principal.Permissions = []string{"entities.*.read"}
	_, _, err = f.New(t.Context(), inv, guarded.Draft{Type: "team"})
	require.Equal(t, jig.CodeNotPermitted, jig.CodeOf(err))
	inv = f.inv
	inv.Tenant = storetest.Tenant(t)
	_, found, err = f.Readable(t.Context(), inv, id)
	require.NoError(t, err)
	require.False(t, found, "nor is an entity of another tenant")
}
