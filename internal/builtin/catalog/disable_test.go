package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/catalog"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/spec"
)

func TestDisable_ChangesTheDocument(t *testing.T) {
	t.Parallel()
	s := newFakeStore()
	require.True(t, put(t, s, catalog.File{Path: "acme.yaml", Body: "kind: tenant\nname: acme\npeople:\n  - {id: ana} # finance\n  - {id: flo}\n"}).Success)
	kit := s.kit(t)
	key := bundle.Key{Kind: "tenant", Name: "acme"}
	in := catalog.Disabling{Person: "ana", Disabled: true}
	shown := kit.Preview(catalog.DisableTool, in)
	require.Contains(t, shown.Title, "Disables ana")
	kit.Invocation.Precondition = shown.Precondition
	var out catalog.Disabled
	kit.Succeed(catalog.DisableTool, in, &out)
	require.Equal(t, "ana is disabled", out.Summary())
	require.Equal(t, s.has.Current[key].Version, out.Version)
	doc, err := spec.LoadTenant("acme.yaml", []byte(s.bodies[s.has.Current[key].DocumentVersion]))
	require.NoError(t, err)
	require.Equal(t, []spec.TenantPerson{{ID: "ana", Disabled: true}, {ID: "flo"}}, doc.People)

	back := catalog.Disabling{Person: "ana"}
	kit.Invocation.Precondition = shown.Precondition
	require.Equal(t, bundle.ReasonPrecondition, kit.Fail(catalog.DisableTool, back).Reason, "the document is not the one that was shown")
	kit.Invocation.Precondition = ""
	shown = kit.Preview(catalog.DisableTool, back)
	require.Contains(t, shown.Changes[0], "ana is no longer disabled")
	kit.Succeed(catalog.DisableTool, back, &out)
	require.Equal(t, "ana is enabled", out.Summary())
}

// A call without a precondition, such as one that ran unasked, must not undo a change that was made at the same time.
func TestDisable_LosesNoOtherChange(t *testing.T) {
	t.Parallel()
	s := newFakeStore()
	document := "kind: tenant\nname: acme\npeople: [{id: ana}, {id: flo}]\n"
	require.True(t, put(t, s, catalog.File{Path: "acme.yaml", Body: document}).Success)
	s.late = func() {
		s.late = nil
		require.True(t, put(t, s, catalog.File{Path: "acme.yaml", Body: document + "roles: [{name: reader, people: [flo]}]\n"}).Success)
	}
	e := s.kit(t).Fail(catalog.DisableTool, catalog.Disabling{Person: "ana", Disabled: true})
	require.Equal(t, bundle.ReasonPrecondition, e.Reason)
	require.Contains(t, s.bodies[s.has.Current[bundle.Key{Kind: "tenant", Name: "acme"}].DocumentVersion], "roles")
}

func TestDisable_Refuses(t *testing.T) {
	t.Parallel()
	s := newFakeStore()
	require.True(t, put(t, s, catalog.File{Path: "acme.yaml", Body: "kind: tenant\nname: acme\npeople: [{id: ana}]\n"}).Success)
	kit := s.kit(t)
	for _, in := range []catalog.Disabling{{Disabled: true}, {Person: "ana", Key: "k", Disabled: true}} {
		require.Equal(t, jig.CodeInvalidInput, kit.Fail(catalog.DisableTool, in).Code)
	}
	require.Equal(t, jig.CodeNotFound, kit.Fail(catalog.DisableTool, catalog.Disabling{Key: "none", Disabled: true}).Code)
	require.Contains(t, newFakeStore().kit(t).Fail(catalog.DisableTool, catalog.Disabling{Person: "ana", Disabled: true}).Message, "has no document")
}
