package activities

import (
	"context"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/suggest"
)

// sees reports whether a tenant can see a Go tool.
func (a *Activities) sees(ctx context.Context, tenant string, tool jig.Tool) (bool, error) {
	if len(tool.Tenants) > 0 && !slices.Contains(tool.Tenants, tenant) {
		return false, nil
	}
	if tool.Bundle == "" {
		return true, nil
	}
	installed, err := a.bundleNames(ctx, tenant)
	return slices.Contains(installed, tool.Bundle), err
}

func (a *Activities) bundleNames(ctx context.Context, tenant string) ([]string, error) {
	if a.Bundles == nil {
		return nil, nil
	}
	return a.Bundles.BundleNames(ctx, tenant)
}

// code finds a Go tool that the tenant can see.
func (a *Activities) code(ctx context.Context, tenant, name string) (jig.Tool, bool, error) {
	tool, ok := a.Catalog.Tool(name)
	if !ok {
		return jig.Tool{}, false, nil
	}
	if seen, err := a.sees(ctx, tenant, tool); !seen || err != nil {
		return jig.Tool{}, false, err
	}
	return tool, true, nil
}

// codes returns the Go tools that a tenant can see, sorted by name.
func (a *Activities) codes(ctx context.Context, tenant string) ([]jig.Tool, error) {
	all := a.Catalog.Tools()
	list := make([]jig.Tool, 0, len(all))
	for _, tool := range all {
		seen, err := a.sees(ctx, tenant, tool)
		if err != nil {
			return nil, err
		}
		if seen {
			list = append(list, tool)
		}
	}
	return list, nil
}

// gone reports whether the tenant can no longer see a Go tool; noTool returns the error for that. A document stays usable until the
// sessions that started with it end.
func (a *Activities) gone(ctx context.Context, tenant string, tool jig.Tool) (bool, error) {
	if isDocument(tool) {
		return false, nil
	}
	seen, err := a.sees(ctx, tenant, tool)
	return err == nil && !seen, err
}

// maxNamed limits how many bytes of an unknown name an error message repeats.
const maxNamed = 80

// noTool returns the error for an unknown tool name. Its hint names only tools that the tenant can see.
func (a *Activities) noTool(ctx context.Context, tenant, name string) *jig.Error {
	e := jig.Errorf(jig.CodeToolNotFound, "there is no tool %q", jig.Cut(name, maxNamed))
	e.Hint = "see the catalog for the available tools"
	e.NotExecuted = true
	if a.Bundles == nil {
		return e
	}
	tools, err := a.tools(ctx, tenant)
	if err != nil { // a missing hint is no reason to fail
		return e
	}
	names := make([]string, len(tools))
	for i, tool := range tools {
		names[i] = tool.Name
	}
	return e.WithHint(suggest.Hint(name, names, "see the catalog for the available tools"))
}
