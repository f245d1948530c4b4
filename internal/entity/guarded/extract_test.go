package guarded_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
)

// An extraction requires permission to read and write the entity, and entities that the principal may not read are not sources.
func TestExtraction_RequiresPermission(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Types = func(context.Context, string) ([]entity.Type, error) {
		return []entity.Type{
			{
				Name: "page", Fields: []entity.Field{{Name: "words", Type: entity.FieldNumber, Task: "words"}, {Name: "url", Type: entity.FieldURL}},
				Tasks: []entity.Task{{ID: "words", Kind: entity.TaskCompute}, {ID: "check", Kind: entity.TaskCitations}},
			},
			{Name: "open"},
			{Name: "secret"},
			{Name: "bare"},
		}, nil
	}
	ids := map[string]string{}
	for _, kind := range []string{"page", "open", "secret", "bare"} {
		e, _, err := f.db.CreateEntity(t.Context(), entity.NewEntity{Entity: entity.Entity{Tenant: f.inv.Tenant, Type: kind}})
		require.NoError(t, err)
		ids[kind] = e.ID
		_, err = f.db.PutText(t.Context(), entity.Text{Tenant: f.inv.Tenant, EntityID: e.ID, Title: kind, Body: "of " + kind})
		require.NoError(t, err)
	}
	for _, kind := range []string{"open", "secret"} {
		require.NoError(t, f.db.Relate(t.Context(), f.inv.Tenant, entity.Relation{From: ids[kind], Name: "about", To: ids["page"]}))
	}
	begin := func(input string, permissions ...string) (entity.Extraction, jig.Code) {
		inv := f.inv
		inv.Principal.Permissions = permissions
		x, err := f.Extraction(t.Context(), inv, []byte(input))
		return x, jig.CodeOf(err)
	}
	page := `{"id":"` + ids["page"] + `"`
	for code, permissions := range map[jig.Code][]string{
		jig.CodeNotFound: {"entities.page.write"}, jig.CodeNotPermitted: {"entities.page.read", "entities.open.write"},
	} {
		_, got := begin(page+`}`, permissions...)
		require.Equal(t, code, got)
	}
	for _, input := range []string{page + `,"fields":["url"]}`, page + `,"fields":["none"]}`, `{"id":"` + ids["bare"] + `"}`} {
		_, got := begin(input, "*")
		require.Equal(t, jig.CodeInvalidInput, got, input)
	}
	may := []string{"entities.page.read", "entities.page.write", "entities.open.read"}
	x, _ := begin(page+`,"mode":"retry"}`, may...)
	require.Equal(t, ids["page"], x.Entity.ID)
	require.Equal(t, "retry", x.Mode)
	inv := f.inv
	inv.Principal.Permissions = may
	sources, err := f.Sources(t.Context(), inv, x.Type, x.Entity.ID)
	require.NoError(t, err)
	require.Len(t, sources.Entities, 1)
	require.Equal(t, ids["open"], sources.Entities[0].ID)
	require.Len(t, sources.Texts, 2)
	for _, text := range sources.Texts {
		require.NotEqual(t, ids["secret"], text.EntityID)
		require.NotNil(t, text.Body, "a claim may quote it")
	}
}

// A principal without write permission for the type fills nothing, and fields that no task fills are refused before anything begins.
func TestExtractAll_RequiresPermission(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Types = func(context.Context, string) ([]entity.Type, error) {
		return []entity.Type{
			{
				Name: "page", Fields: []entity.Field{{Name: "words", Type: entity.FieldNumber, Task: "words"}, {Name: "url", Type: entity.FieldURL}},
				Tasks: []entity.Task{{ID: "words", Kind: entity.TaskCompute}},
			},
			{Name: "bare"},
		}, nil
	}
	check := func(input string, permissions ...string) error {
		inv := f.inv
		inv.Principal.Permissions = permissions
		return f.CheckExtractAll(t.Context(), inv, []byte(input))
	}
	require.NoError(t, check(`{"type":"page","fields":["words"]}`, "entities.page.read", "entities.page.write"))
	for _, tt := range []struct {
		input, permission, field string
		code                     jig.Code
	}{
		{`{"type":"page"}`, "entities.page.read", "", jig.CodeNotPermitted},
		{`{"type":"page"}`, "entities.page.write", "/type", jig.CodeNotFound},
		{`{"type":"none"}`, "*", "/type", jig.CodeNotFound},
		{`{"type":"bare"}`, "*", "/type", jig.CodeInvalidInput},
		{`{"type":"page","fields":["url"]}`, "*", "/fields/0", jig.CodeInvalidInput},
		{`{"type":"page","fields":["none"]}`, "*", "/fields/0", jig.CodeInvalidInput},
		{`{"type":"page","input":{"text":"` + strings.Repeat("x", 17<<10) + `"}}`, "*", "/input", jig.CodeInvalidInput},
		{`[`, "*", "", jig.CodeInvalidInput},
	} {
		err := check(tt.input, tt.permission)
		require.Equal(t, tt.code, jig.CodeOf(err), tt.input)
		require.Equal(t, tt.field, jig.AsError(err).Field, tt.input)
	}
}
