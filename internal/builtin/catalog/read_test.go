package catalog_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/catalog"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/protocol"
)

// drafts is a suffix of the names of documents that were stored for a session and never registered.
const drafts = ".draft"

func (s *fakeStore) states(kind, name string) (list []protocol.DocumentState) {
	for d := range s.bodies {
		if (kind == "" || d.Kind == kind) && (name == "" || d.Name == name) {
			current := s.has.Current[d.Key()].DocumentVersion == d
			list = append(list, protocol.DocumentState{Kind: d.Kind, Name: d.Name, Version: d.Version, Current: current})
		}
	}
	slices.SortFunc(list, func(a, b protocol.DocumentState) int {
		return strings.Compare(a.Kind+"/"+a.Name+a.Version, b.Kind+"/"+b.Name+b.Version)
	})
	return list
}

func (s *fakeStore) SeenDocuments(_ context.Context, _, kind string, after bundle.Key, limit int) ([]protocol.DocumentState, error) {
	list := slices.DeleteFunc(s.states(kind, ""), func(d protocol.DocumentState) bool {
		return !d.Current || d.Kind+"/"+d.Name <= after.Kind+"/"+after.Name
	})
	return list[:min(len(list), limit)], nil
}

func (s *fakeStore) DocumentVersions(_ context.Context, _, kind, name, version string, _ int) ([]protocol.DocumentState, error) {
	all := s.states(kind, name)
	if len(all) == 0 {
		return nil, jig.Errorf(jig.CodeNotFound, "there is no %s %q", kind, name)
	}
	return slices.DeleteFunc(all, func(d protocol.DocumentState) bool { return version != "" && d.Version != version }), nil
}

func (*fakeStore) DocumentTrusted(_ context.Context, _, _, name, _ string) (bool, error) {
	return !strings.HasSuffix(name, drafts), nil
}

// An operator, or an agent, can read what it would change, and what was there before.
func TestCatalog_IsRead(t *testing.T) {
	t.Parallel()
	s := newFakeStore()
	changed := strings.Replace(watching, "deny", "ask", 1)
	for _, body := range []string{watching, changed} {
		require.True(t, put(t, s, catalog.File{Path: "read.yaml", Body: good}, catalog.File{Path: "shop.yaml", Body: body}).Success)
	}
	kit := s.kit(t)
	var list catalog.List
	kit.Succeed(catalog.ListTool, map[string]any{}, &list)
	require.Equal(t, "2 documents", list.Summary())
	require.Equal(t, []string{"composition acme.readIt", "policy shop"}, []string{list.Documents[0].Kind + " " + list.Documents[0].Name, list.Documents[1].Kind + " " + list.Documents[1].Name})
	list = catalog.List{}
	kit.Succeed(catalog.ListTool, map[string]any{"kind": "composition"}, &list)
	require.Len(t, list.Documents, 1)
	list = catalog.List{}
	kit.Succeed(catalog.ListTool, map[string]any{"kind": "policy", "name": "shop"}, &list)
	require.Len(t, list.Documents, 2, "both versions")

	var read catalog.Read
	kit.Succeed(catalog.GetTool, map[string]any{"kind": "policy", "name": "shop"}, &read)
	require.Equal(t, []any{changed, versionOf(t, changed), true}, []any{read.Text, read.Version, read.Current})
	read = catalog.Read{}
	kit.Succeed(catalog.GetTool, map[string]any{"kind": "policy", "name": "shop", "version": versionOf(t, watching)}, &read)
	require.Equal(t, []any{watching, false}, []any{read.Text, read.Current})

	require.Equal(t, "/kind", kit.Fail(catalog.ListTool, map[string]any{"kind": "polici"}).Field)
	require.Equal(t, "/kind", kit.Fail(catalog.ListTool, map[string]any{"name": "shop"}).Field)
	require.Equal(t, "/cursor", kit.Fail(catalog.ListTool, map[string]any{"cursor": "x"}).Field)
	for _, in := range []map[string]any{{"kind": "policy", "name": "other"}, {"kind": "policy", "name": "shop", "version": "v9"}} {
		require.Equal(t, jig.CodeNotFound, kit.Fail(catalog.GetTool, in).Code)
	}
	kit.Succeed(catalog.RemoveTool, catalog.Names{Documents: []catalog.Named{{Kind: "policy", Name: "shop"}}}, nil)
	require.Contains(t, kit.Fail(catalog.GetTool, map[string]any{"kind": "policy", "name": "shop"}).Hint, "restore")
}

func TestCatalog_IsListedInPages(t *testing.T) {
	t.Parallel()
	s := newFakeStore()
	for i := range 230 {
		d := bundle.DocumentVersion{Kind: "skill", Name: fmt.Sprintf("s%03d", i), Version: "v"}
		s.bodies[d], s.has.Current[d.Key()] = "x", bundle.CurrentVersion{DocumentVersion: d}
	}
	var names []string
	in := map[string]any{"kind": "skill"}
	for {
		var list catalog.List
		s.kit(t).Succeed(catalog.ListTool, in, &list)
		for _, d := range list.Documents {
			names = append(names, d.Name)
		}
		if list.Next == "" {
			break
		}
		require.Contains(t, list.Summary(), "there are more")
		in["cursor"] = list.Next
	}
	require.Len(t, names, 230)
	require.True(t, slices.IsSorted(names))
}

// Whoever reads a text that outsiders may have written has read untrusted data.
func TestGet_MarksUntrustedTexts(t *testing.T) {
	t.Parallel()
	s := newFakeStore()
	for name, untrusted := range map[string]bool{"acme.readIt": false, "acme" + drafts: true} {
		require.True(t, put(t, s, catalog.File{Path: "read.yaml", Body: strings.Replace(good, "acme.readIt", name, 1)}).Success)
		taint := &entity.Taint{}
		result := s.kit(t).Run(entity.WithTaint(t.Context(), taint), catalog.GetTool, map[string]any{"kind": "composition", "name": name})
		require.True(t, result.Success, "%+v", result.Error)
		require.Equal(t, untrusted, taint.Read(), name)
	}
}

// Restoring shows the difference, and is checked like a registration.
func TestRestore_MakesAnEarlierVersionCurrent(t *testing.T) {
	t.Parallel()
	s, changed := newFakeStore(), strings.Replace(watching, "deny", "ask", 1)
	for _, body := range []string{watching, changed} {
		require.True(t, put(t, s, catalog.File{Path: "shop.yaml", Body: body}).Success)
	}
	kit, key := s.kit(t), bundle.Key{Kind: "policy", Name: "shop"}
	in := map[string]any{"kind": "policy", "name": "shop", "version": versionOf(t, watching), "replaces": "v9"}
	require.Equal(t, bundle.ReasonPrecondition, kit.Fail(catalog.RestoreTool, in).Reason, "another version was looked at")
	in["replaces"] = versionOf(t, changed)
	shown := kit.Preview(catalog.RestoreTool, in)
	require.Contains(t, strings.Join(shown.Changes, "\n"), "deny")
	kit.Invocation.Precondition = shown.Precondition
	var out catalog.Result
	kit.Succeed(catalog.RestoreTool, in, &out)
	require.Equal(t, versionOf(t, watching), s.has.Current[key].Version)
	require.Equal(t, "registered shop", out.Summary())
}

// A version that nobody has registered, or whose text outsiders may have written, does not become trusted by being restored.
func TestRestore_RefusesWhatNobodyHasRegistered(t *testing.T) {
	t.Parallel()
	s := newFakeStore()
	body := strings.Replace(good, "acme.readIt", "acme"+drafts, 1)
	require.True(t, put(t, s, catalog.File{Path: "read.yaml", Body: body}).Success)
	for d := range s.bodies {
		failed := s.kit(t).Fail(catalog.RestoreTool, map[string]any{"kind": "composition", "name": d.Name, "version": d.Version})
		require.Equal(t, []any{jig.CodeNotPermitted, "/version"}, []any{failed.Code, failed.Field})
		require.Contains(t, failed.Hint, "catalog.put")
	}
}

// The answer has the advice on what was registered.
func TestPut_ReturnsWarnings(t *testing.T) {
	t.Parallel()
	var out catalog.Result
	odd := strings.Replace(good, "path: {type: string}", "path: {type: string, nullable: true, default: 010}", 1)
	s := newFakeStore()
	s.kit(t).Succeed(catalog.PutTool, catalog.Files{Documents: []catalog.File{{Path: "odd.yaml", Body: odd}}}, &out)
	require.Len(t, out.Warnings, 3)
	all := strings.Join(out.Warnings, "\n")
	for _, part := range []string{"odd.yaml:4:", "nullable is OpenAPI 3.0", "010 is read as the number 8", "the default 8 does not fit its schema"} {
		require.Contains(t, all, part)
	}
}
