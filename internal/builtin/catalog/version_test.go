package catalog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/catalog"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/spec"
)

func versionOf(t *testing.T, body string) string {
	t.Helper()
	doc, problems := spec.Load("shop.yaml", []byte(body))
	require.NoError(t, problems.OrNil())
	return doc.Version
}

// A change that says what it replaces fails if the document has another version, when it is shown to people and when it runs.
func TestPut_ReplacesOnlyWhatWasSeen(t *testing.T) {
	t.Parallel()
	s, changed := newFakeStore(), strings.Replace(watching, "deny", "ask", 1)
	replacing := func(version string) catalog.Files {
		return catalog.Files{Documents: []catalog.File{{Path: "shop.yaml", Body: changed, Replaces: &catalog.Named{Kind: "policy", Name: "shop", Version: version}}}}
	}
	kit := s.kit(t)
	require.Equal(t, bundle.ReasonPrecondition, kit.Fail(catalog.PutTool, replacing("v1")).Reason, "there is none")
	require.True(t, put(t, s, catalog.File{Path: "shop.yaml", Body: watching}).Success)
	require.Equal(t, bundle.ReasonPrecondition, kit.Fail(catalog.PutTool, replacing("")).Reason, "it is not new")
	require.Contains(t, kit.Preview(catalog.PutTool, replacing("")).Missing, "has changed")
	other := replacing("")
	other.Documents[0].Replaces.Name = "another"
	require.Equal(t, "/documents/0/replaces", kit.Fail(catalog.PutTool, other).Field)

	seen := replacing(versionOf(t, watching))
	s.late = func() {
		s.late = nil
		require.True(t, put(t, s, catalog.File{Path: "shop.yaml", Body: watching + "# theirs\n"}).Success)
	}
	require.Equal(t, bundle.ReasonPrecondition, kit.Fail(catalog.PutTool, seen).Reason, "it changed between the check and the transaction")
	require.True(t, put(t, s, catalog.File{Path: "shop.yaml", Body: watching}).Success)
	kit.Succeed(catalog.PutTool, seen, nil)
	kit.Succeed(catalog.PutTool, seen, nil) // an attempt after one that was not recorded
}

func TestRemove_TakesOnlyWhatWasSeen(t *testing.T) {
	t.Parallel()
	s := newFakeStore()
	require.True(t, put(t, s, catalog.File{Path: "shop.yaml", Body: watching}).Success)
	names := func(version string) catalog.Names {
		return catalog.Names{Documents: []catalog.Named{{Kind: "policy", Name: "shop", Version: version}}}
	}
	kit := s.kit(t)
	failed := kit.Fail(catalog.RemoveTool, names("v0"))
	require.Equal(t, []any{jig.CodeConflict, bundle.ReasonPrecondition}, []any{failed.Code, failed.Reason})
	require.Contains(t, kit.Preview(catalog.RemoveTool, names("v0")).Missing, "has changed")
	kit.Succeed(catalog.RemoveTool, names(versionOf(t, watching)), nil)
	kit.Invocation.Attempt = 2
	kit.Succeed(catalog.RemoveTool, names(versionOf(t, watching)), nil)
}
