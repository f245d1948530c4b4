package plan

import (
	"context"

	"github.com/jig-run/jig"
)

// Tool is an execution spec as a tool that can be called.
type Tool struct {
	// Contract is the tool's contract, with the version of the document.
	Contract jig.Tool
	// Run runs a call once, as an activity. It is nil for a spec whose calls run as workflows.
	Run func(ctx context.Context, input []byte, inv jig.Invocation) jig.ToolResult
}
