package activities

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
)

// Thin runs thin tools.
type Thin interface {
	// Run runs a call of the thin tool with this body and version. It never panics; failures are in the result's Error.
	Run(ctx context.Context, version string, body []byte, inv jig.Invocation, input json.RawMessage) jig.ToolResult
}

// isThin reports whether a tool is a thin tool: a document that runs as an activity.
func isThin(tool jig.Tool) bool { return tool.Implementation == jig.ImplementationThin }

// isDocument reports whether a tool is a document, not code.
func isDocument(tool jig.Tool) bool { return isSpec(tool) || isThin(tool) }

// runnable finds the implementation that runs a call as an activity: Go code, or the version of a thin tool that the call was admitted
// with. The error is UNAVAILABLE if this worker has neither: another worker may have it, and until then the call stays unchanged. A Go
// tool that the tenant no longer sees is found too; claim refuses it.
func (a *Activities) runnable(ctx context.Context, call jig.Call) (jig.Tool, error) {
	code, known := a.catalogue.Tool(call.Tool)
	tool, ok, err := a.tool(ctx, call.Tenant, call.Tool, call.Version)
	switch {
	case err != nil:
		return tool, jig.Errorf(jig.CodeUnavailable, "this worker cannot read the tool %s: %w", call.Tool, err)
	case ok && known && !isDocument(tool), !ok && known:
		return code, nil
	case !ok || !isThin(tool) || a.thin == nil:
		return tool, jig.Errorf(jig.CodeUnavailable, "this worker has no tool %s", call.Tool)
	}
	return tool, nil
}

// runTool runs a tool once, whether it is code or a thin tool.
func (a *Activities) runTool(ctx context.Context, tool jig.Tool, call jig.Call, inv jig.Invocation) jig.ToolResult {
	if !isThin(tool) {
		return a.catalogue.Run(ctx, tool.Name, call.Input, inv)
	}
	found, err := a.specAt(ctx, call.Tenant, tool.Name, tool.Version)
	if err != nil {
		e := *jig.AsError(err)
		e.NotExecuted = true
		return jig.Failure(&e)
	}
	return a.thin.Run(ctx, tool.Version, found.body, inv, call.Input)
}

// registered returns an error for a thin tool that is part of the request, because only registration checks what a thin tool does.
func registered(tool jig.Tool) error {
	if !isThin(tool) {
		return nil
	}
	return jig.Errorf(jig.CodeNotPermitted, "the thin tool %s must be registered before it is called", tool.Name).WithField("document").
		WithHint("jig catalog add FILE, or jig bundle install FOLDER; then call it by its name")
}
