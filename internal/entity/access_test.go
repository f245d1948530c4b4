package entity_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
)

func holding(permissions ...string) jig.Principal {
	return jig.Principal{ID: "ana", Permissions: permissions}
}

func TestMay_NeedsAPermissionForTheActionOrAllTypes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		permissions []string
		may         []entity.Action // on entities of type team
	}{
		"no permission":       {nil, nil},
		"exact permission":    {[]string{"entities.team.read"}, []entity.Action{entity.ActionRead}},
		"every type":          {[]string{"entities.*.read"}, []entity.Action{entity.ActionRead}},
		"another type":        {[]string{"entities.report.read", "entities.teams.write", "entities.tea.delete"}, nil},
		"write without read":  {[]string{"entities.team.write"}, []entity.Action{entity.ActionWrite}},
		"delete without read": {[]string{"entities.*.delete"}, []entity.Action{entity.ActionDelete}},
		"one of each kind":    {[]string{"entities.team.read", "entities.*.write"}, []entity.Action{entity.ActionRead, entity.ActionWrite}},
		"everything":          {[]string{"*"}, entity.Actions()},
		"not a permission":    {[]string{"entities", "entities.*", "entities.team", "entities.team.*", "entities.read", "team.read", ""}, nil},
		"another letter case": {[]string{"entities.Team.read", "Entities.team.write"}, nil},
	} {
		var may []entity.Action
		for _, action := range entity.Actions() {
			allowed := entity.May(holding(c.permissions...), "team", action)
			if allowed {
				may = append(may, action)
			}
			require.Equal(t, allowed, entity.Permit(holding(c.permissions...), "team", action) == nil, name)
		}
		require.Equal(t, c.may, may, name)
	}
}

func TestPermit_NamesTheMissingPermission(t *testing.T) {
	t.Parallel()
	err := jig.AsError(entity.Permit(holding("entities.team.read", "entities.*.write"), "team", entity.ActionDelete))
	require.Equal(t, jig.CodeNotPermitted, err.Code)
	require.Equal(t, `ana may not delete entities of type "team"`, err.Message)
	require.Equal(t, "this requires the permission entities.team.delete", err.Hint)
}

func TestReadable_HidesOtherTypes(t *testing.T) {
	t.Parallel()
	types := []entity.Type{{Name: "report"}, {Name: "team", Version: "v2"}}
	entities := []entity.Entity{{ID: "t1", Type: "team"}, {ID: "r1", Type: "report"}, {ID: "t2", Type: "team"}, {ID: "x1", Type: "removed"}}
	for name, c := range map[string]struct {
		permissions    []string
		types, visible []string
	}{
		"no permission":              {nil, nil, nil},
		"one type":                   {[]string{"entities.team.read"}, []string{"team"}, []string{"t1", "t2"}},
		"every type":                 {[]string{"entities.*.read"}, []string{"report", "team"}, []string{"t1", "r1", "t2"}},
		"everything":                 {[]string{"*"}, []string{"report", "team"}, []string{"t1", "r1", "t2"}},
		"write and delete, no read":  {[]string{"entities.*.write", "entities.team.delete"}, nil, nil},
		"write another than is read": {[]string{"entities.report.read", "entities.team.write"}, []string{"report"}, []string{"r1"}},
		"a type that does not exist": {[]string{"entities.removed.read"}, nil, nil},
		"one that exists, one not":   {[]string{"entities.removed.read", "entities.report.read"}, []string{"report"}, []string{"r1"}},
	} {
		readable := entity.Readable(holding(c.permissions...), types)
		var names, visible []string
		for typeName, found := range readable {
			names = append(names, typeName)
			require.Contains(t, types, found, name)
			require.Equal(t, typeName, found.Name, name)
		}
		slices.Sort(names)
		for _, e := range entity.Visible(readable, entities) {
			visible = append(visible, e.ID)
		}
		require.Equal(t, c.types, names, name)
		require.Equal(t, c.visible, visible, name)
	}
}

func TestSources_Visible(t *testing.T) {
	t.Parallel()
	all := entity.Sources{
		Entities: []entity.SourceEntity{{ID: "t1", Type: "team"}, {ID: "t2", Type: "team"}, {ID: "r1", Type: "report"}},
		Texts:    []entity.SourceText{{ID: "of t1", EntityID: "t1"}, {ID: "of t2", EntityID: "t2"}, {ID: "of r1", EntityID: "r1"}, {ID: "of none"}},
	}
	for name, c := range map[string]struct {
		readable, id    string
		entities, texts []string
	}{
		"texts of the entity, and what is connected": {"team", "t1", []string{"t2"}, []string{"of t1", "of t2"}},
		"only the entity is readable":                {"report", "r1", nil, []string{"of r1"}},
		"the entity is not readable":                 {"report", "t1", []string{"r1"}, []string{"of r1"}},
		"nothing is readable":                        {"", "t1", nil, nil},
		"the entity is not among the sources":        {"", "t3", nil, nil},
	} {
		var entities, texts []string
		visible := all.Visible(map[string]entity.Type{c.readable: {Name: c.readable}}, c.id)
		for _, e := range visible.Entities {
			entities = append(entities, e.ID)
		}
		for _, text := range visible.Texts {
			texts = append(texts, text.ID)
		}
		require.Equal(t, c.entities, entities, name)
		require.Equal(t, c.texts, texts, name)
	}
}
