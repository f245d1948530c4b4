package activities

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/argument"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/suggest"
	"github.com/jig-run/jig/spec"
)

// DocumentSpec is the kind of execution specs of every sort (composition, prompt, task). They share one namespace because they are
// called in the same way.
const DocumentSpec = bundle.KindSpec

// DocumentEntityType is the kind of entity types.
const DocumentEntityType = string(spec.KindEntityType)

// The kinds of child workflows that run a call. The kind follows from Tool.Implementation.
const (
	// ChildComposition runs an execution spec, or undoes a session.
	ChildComposition = "composition"
	// ChildExtraction fills an entity.
	ChildExtraction = "extraction"
	// ChildAgent runs an agent in a session of its own.
	ChildAgent = "agent"
)

// childOf returns the kind of child workflow that runs a tool. It returns "" for a tool that runs as an activity.
func childOf(tool jig.Tool) string {
	switch {
	case tool.Implementation == ChildAgent, tool.Implementation == ChildExtraction:
		return tool.Implementation
	case tool.Implementation == implementationUndo, spec.Kind(tool.Implementation).RunsSteps():
		return ChildComposition
	}
	return ""
}

// startsExtraction is the implementation of a tool that runs as an activity and starts an extraction in a separate session, for its caller.
const startsExtraction = "extraction_start"

// runsSteps reports whether the calls of a tool make calls of other tools, or start a session that does so for their caller.
func runsSteps(tool jig.Tool) bool {
	return isSpec(tool) || childOf(tool) == ChildExtraction || tool.Implementation == startsExtraction
}

// isSpec reports whether the calls of a tool run as workflows that make the calls of steps.
func isSpec(tool jig.Tool) bool { return childOf(tool) == ChildComposition }

// isDocument reports whether a tool is a document, not code.
func isDocument(tool jig.Tool) bool {
	return !slices.Contains([]string{"", "go", jig.ImplementationPerson, ChildAgent, ChildExtraction, startsExtraction, implementationUndo}, tool.Implementation)
}

// contract is a tool's contract, together with the code or the document that answers its calls.
type contract struct {
	tool jig.Tool
	// body is the document of an execution spec.
	body []byte
	// run runs a call once. It is nil for an execution spec whose calls run as workflows.
	run func(ctx context.Context, input []byte, inv jig.Invocation) jig.ToolResult
	// preview describes what a call will change. It is nil for a tool without previews.
	preview plan.Preview
}

// contractKey names a version of a document. Versions never change, so what is cached under a key never becomes stale.
type contractKey struct{ tenant, name, version string }

// maxContracts is the maximum number of cached documents.
const maxContracts = 1000

// tool finds a tool's contract; see find.
func (a *Activities) tool(ctx context.Context, tenant, name, version string) (jig.Tool, bool, error) {
	found, ok, err := a.find(ctx, tenant, name, version)
	return found.tool, ok, err
}

// find finds a Go tool that the tenant can see, or a version of an execution spec. It returns false if there is none.
func (a *Activities) find(ctx context.Context, tenant, name, version string) (contract, bool, error) {
	if tool, ok, err := a.goTool(ctx, tenant, name); ok || err != nil {
		return a.goContract(tool), ok, err
	}
	if version == "" {
		return contract{}, false, nil
	}
	found, err := a.specAt(ctx, tenant, name, version)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return contract{}, false, nil
	}
	return found, err == nil, err
}

// goContract returns a Go tool, which the catalog runs.
func (a *Activities) goContract(tool jig.Tool) contract {
	c := contract{tool: tool, run: func(ctx context.Context, input []byte, inv jig.Invocation) jig.ToolResult {
		return a.Catalog.Run(ctx, tool.Name, input, inv)
	}}
	if tool.Previews {
		c.preview = func(ctx context.Context, input []byte, inv jig.Invocation, _ plan.Read) (jig.Preview, error) {
			return a.Catalog.Preview(ctx, tool.Name, input, inv)
		}
	}
	return c
}

// specAt reads a version of an execution spec.
func (a *Activities) specAt(ctx context.Context, tenant, name, version string) (contract, error) {
	return a.contracts.Get(contractKey{tenant, name, version}, func(contract, bool) (contract, error) {
		body, err := a.Store.DocumentAt(ctx, tenant, DocumentSpec, name, version)
		if err != nil {
			return contract{}, err
		}
		loaded, err := a.Composer.Load(name, body)
		return contract{tool: loaded.Contract, body: body, run: loaded.Run, preview: loaded.Preview}, err
	})
}

// specs returns the execution specs that a tenant sees now, as tools, sorted by name. A spec that can no longer be read (because it
// uses an older version of the language) is left out and logged.
func (a *Activities) specs(ctx context.Context, tenant string) ([]jig.Tool, error) {
	current, err := a.Store.CurrentDocuments(ctx, tenant, DocumentSpec)
	if err != nil {
		return nil, err
	}
	list := make([]jig.Tool, 0, len(current))
	for _, d := range current {
		found, err := a.specAt(ctx, tenant, d.Name, d.Version)
		if jig.CodeOf(err) == jig.CodeUnavailable {
			return nil, err
		}
		if err != nil {
			a.Logger.WarnContext(ctx, "an execution spec cannot be read", slog.String("tenant", tenant), slog.String("name", d.Name),
				slog.String("version", d.Version), slog.String("error", err.Error()))
			continue
		}
		list = append(list, found.tool)
	}
	return list, nil
}

// tools returns all tools that a tenant may see, Go tools and execution specs, sorted by name. If both have the same name, the Go tool
// wins.
func (a *Activities) tools(ctx context.Context, tenant string) ([]jig.Tool, error) {
	list, err := a.goTools(ctx, tenant)
	if err != nil {
		return nil, err
	}
	specs, err := a.specs(ctx, tenant)
	if err != nil || len(specs) == 0 {
		return list, err
	}
	taken := make(map[string]bool, len(list))
	for _, tool := range list {
		taken[tool.Name] = true
	}
	for _, tool := range specs {
		if !taken[tool.Name] {
			list = append(list, tool)
		}
	}
	slices.SortFunc(list, func(x, y jig.Tool) int { return strings.Compare(x.Name, y.Name) })
	return list, nil
}

// completed returns an input with defaults, and with its paths and URLs in canonical form. It checks the result against the tool's schema and
// returns every violation in one error.
func (a *Activities) completed(tool jig.Tool, input json.RawMessage) (json.RawMessage, error) {
	input, err := argument.Canonical(tool.InputSchema, withDefaults(tool.InputSchema, input))
	if err != nil {
		return nil, err
	}
	if isDocument(tool) {
		return input, a.Schemas.Validate(tool.InputSchema, input)
	}
	return input, a.Catalog.Validate(tool.Name, input)
}

// canSee reports whether a tenant can see a Go tool.
func (a *Activities) canSee(ctx context.Context, tenant string, tool jig.Tool) (bool, error) {
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

// goTool finds a Go tool that the tenant can see.
func (a *Activities) goTool(ctx context.Context, tenant, name string) (jig.Tool, bool, error) {
	tool, ok := a.Catalog.Tool(name)
	if !ok {
		return jig.Tool{}, false, nil
	}
	if seen, err := a.canSee(ctx, tenant, tool); !seen || err != nil {
		return jig.Tool{}, false, err
	}
	return tool, true, nil
}

// goTools returns the Go tools that a tenant can see, sorted by name.
func (a *Activities) goTools(ctx context.Context, tenant string) ([]jig.Tool, error) {
	all := a.Catalog.Tools()
	list := make([]jig.Tool, 0, len(all))
	for _, tool := range all {
		seen, err := a.canSee(ctx, tenant, tool)
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
	seen, err := a.canSee(ctx, tenant, tool)
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
