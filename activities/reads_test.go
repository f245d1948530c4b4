package activities_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/protocol"
)

// noPolicies is a policy engine without policies, which decides nothing.
type noPolicies struct{ activities.Policy }

func (noPolicies) Policies(context.Context, string) ([]jig.PolicyState, error) { return nil, nil }

// shelf is a store of documents by kind, together with a catalog and a composer. It implements nothing else.
type shelf struct {
	activities.Store
	activities.Catalog
	activities.Composer

	tools []jig.Tool
	kept  map[string][]string
	body  string
}

func (s shelf) Tools() []jig.Tool { return append([]jig.Tool{}, s.tools...) }

func (s shelf) Tool(name string) (jig.Tool, bool) {
	for _, tool := range s.tools {
		if tool.Name == name {
			return tool, true
		}
	}
	return jig.Tool{}, false
}

func (s shelf) Load(_ string, body []byte) (plan.Tool, error) {
	return plan.Tool{Contract: jig.Tool{Name: string(body), Implementation: "composition"}}, nil
}

func (s shelf) CurrentDocuments(_ context.Context, _, kind string) ([]bundle.DocumentVersion, error) {
	var current []bundle.DocumentVersion
	for _, name := range s.kept[kind] {
		current = append(current, bundle.DocumentVersion{Kind: kind, Name: name, Version: "1"})
	}
	return current, nil
}

func (s shelf) DocumentNames(_ context.Context, _, kind string) ([]string, error) {
	return s.kept[kind], nil
}

func (s shelf) DocumentAt(_ context.Context, _, _, name, _ string) ([]byte, error) {
	return []byte(name), nil
}

func (s shelf) Document(_ context.Context, tenant, kind, name string) ([]byte, error) {
	if tenant != "acme" || kind != "skill" || name != "notes" {
		return nil, jig.Errorf(jig.CodeNotFound, "there is no %s %q", kind, name)
	}
	return []byte(s.body), nil
}

func (s shelf) activities() *activities.Activities {
	return activities.New(activities.Deps{Policy: noPolicies{}, Store: s, Tenants: who{}, Catalog: s, Composer: s})
}

func TestListCatalog_NamesRegisteredDocuments(t *testing.T) {
	t.Parallel()
	s := shelf{
		tools: []jig.Tool{{Name: "file.read"}, {Name: "file.write", Tenants: []string{"others"}}},
		kept:  map[string][]string{"agent": {"review"}, activities.DocumentSpec: {"cms.publish", "nightly"}},
	}
	page, err := s.activities().ListCatalog(t.Context(), protocol.CatalogRequest{Tenant: "acme"})
	require.NoError(t, err)
	require.Equal(t, []string{"cms.publish", "file.read"}, names(page.Tools))
	require.Equal(t, []string{"review"}, page.Agents)
	require.Equal(t, []string{"nightly"}, page.Compositions, "its name is not a tool name")
	require.Equal(t, []string{}, page.Skills, "an empty list means that there are none")
}

func TestListCatalog_ReturnsPages(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 60<<10)
	s := shelf{kept: map[string][]string{"skill": {"notes"}}}
	for _, name := range []string{"a.a", "b.b", "c.c", "d.d", "e.e"} {
		s.tools = append(s.tools, jig.Tool{Name: name, Description: large})
	}
	a := s.activities()
	var seen []string
	request := protocol.CatalogRequest{Tenant: "acme"}
	for more := true; more; {
		page, err := a.ListCatalog(t.Context(), request)
		require.NoError(t, err)
		require.NotEmpty(t, page.Tools)
		require.LessOrEqual(t, len(page.Tools), 2)
		require.Equal(t, request.After == "", page.Skills != nil, "documents are named only on the first page")
		seen = append(seen, names(page.Tools)...)
		more, request.After = page.More, seen[len(seen)-1]
	}
	require.Equal(t, []string{"a.a", "b.b", "c.c", "d.d", "e.e"}, seen)
}

func TestListCatalog_ReturnsADocumentInPieces(t *testing.T) {
	t.Parallel()
	s := shelf{body: strings.Repeat("0123456789", 30<<10)}
	a := s.activities()
	var whole, hash string
	for len(whole) < len(s.body) {
		page, err := a.ListCatalog(t.Context(), protocol.CatalogRequest{Tenant: "acme", Kind: "skill", Name: "notes", Offset: len(whole)})
		require.NoError(t, err)
		require.Empty(t, page.Tools)
		require.Equal(t, len(s.body), page.Document.Size)
		require.NotEmpty(t, page.Document.Data)
		require.LessOrEqual(t, len(page.Document.Data), 128<<10)
		require.Contains(t, []string{"", page.Document.Hash}, hash)
		hash = page.Document.Hash
		whole += string(page.Document.Data)
	}
	require.Equal(t, s.body, whole)

	for _, request := range []protocol.CatalogRequest{
		{Tenant: "acme", Kind: "skill", Name: "notes", Offset: len(s.body) + 1}, {Tenant: "acme", Kind: "skill", Name: "notes", Offset: -5},
	} {
		page, err := a.ListCatalog(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, request.Offset > 0, len(page.Document.Data) == 0)
	}
	for code, request := range map[jig.Code]protocol.CatalogRequest{
		jig.CodeInvalidInput: {Tenant: "acme", Kind: "poem", Name: "notes"},
		jig.CodeNotFound:     {Tenant: "other", Kind: "skill", Name: "notes"},
	} {
		_, err := a.ListCatalog(t.Context(), request)
		require.ErrorContains(t, err, string(code))
	}
}

func names(tools []jig.Tool) []string {
	list := make([]string, 0, len(tools))
	for _, tool := range tools {
		list = append(list, tool.Name)
	}
	return list
}
