package activities_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/tools"
)

// library holds a worker's tools, some of which belong to a bundle, and the bundles of each tenant.
type library struct {
	activities.Store
	*tools.Registry
	bundles map[string][]string
}

type nothing struct{}

func newLibrary(t *testing.T, contracts ...jig.Tool) library {
	t.Helper()
	l := library{bundles: map[string][]string{"acme": {"notes"}}}
	list := make([]tools.Tool, len(contracts))
	for i, contract := range contracts {
		contract.Description, contract.Permission = "For a test.", jig.PermissionRead
		list[i] = tools.New(contract, func(context.Context, jig.Invocation, nothing) (nothing, error) { return nothing{}, nil })
	}
	var err error
	l.Registry, err = tools.NewRegistry(list...)
	require.NoError(t, err)
	return l
}

func (l library) BundleNames(_ context.Context, tenant string) ([]string, error) {
	return l.bundles[tenant], nil
}

func (l library) CurrentDocuments(context.Context, string, string) ([]bundle.DocumentVersion, error) {
	return nil, nil
}

func (l library) DocumentNames(context.Context, string, string) ([]string, error) { return nil, nil }

func (l library) activities() *activities.Activities {
	return activities.New(activities.Deps{Policy: noPolicies{}, Store: l, Tenants: who{}, Catalog: l, Bundles: l})
}

func TestBundleTools_AreVisibleWithTheBundle(t *testing.T) {
	t.Parallel()
	l := newLibrary(t, jig.Tool{Name: "notes.tidy", Bundle: "notes"}, jig.Tool{Name: "notes.secret", Bundle: "other"}, jig.Tool{Name: "file.read"})
	for tenant, want := range map[string][]string{"acme": {"file.read", "notes.tidy"}, "zeta": {"file.read"}} {
		page, err := l.activities().ListCatalog(t.Context(), protocol.CatalogRequest{Tenant: tenant})
		require.NoError(t, err)
		var names []string
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		require.Equal(t, want, slices.Sorted(slices.Values(names)), tenant)
	}
}

// A caller who does not see a tool gets the same answer as for a name that no tool has, including the hint.
func TestBundleTool_IsUnknownWithoutTheBundle(t *testing.T) {
	t.Parallel()
	l := newLibrary(t, jig.Tool{Name: "notes.tidy", Bundle: "notes"}, jig.Tool{Name: "notes.hidden", Tenants: []string{"acme"}}, jig.Tool{Name: "file.read"})
	refused := func(tool string) string {
		_, err := l.activities().OpenCall(t.Context(), activities.OpenCallInput{
			SessionRef: protocol.SessionRef{Tenant: "zeta", SessionID: jig.NewSessionID()},
			Call:       protocol.CallInput{Tool: tool, Principal: jig.Principal{ID: "ana"}},
		})
		e := activities.ErrorFrom(err)
		require.NotNil(t, e)
		require.Equal(t, jig.CodeToolNotFound, e.Code, "%v", err)
		return e.Error() + " " + e.Hint
	}
	for _, name := range []string{"notes.tidy", "notes.hidden"} {
		require.Equal(t, refused("notes.nobody"), strings.ReplaceAll(refused(name), name, "notes.nobody"))
	}
	near := refused("notes.tidi")
	require.NotContains(t, near, "notes.tidy")
	require.Contains(t, refused("file.raed"), "file.read", "hints name what the tenant sees")
}
