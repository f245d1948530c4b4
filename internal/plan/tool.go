package plan

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
)

// Tool is an execution spec as a tool that can be called.
type Tool struct {
	// Contract is the tool's contract, with the version of the document.
	Contract jig.Tool
	// Run runs a call once, as an activity. It is nil for a spec whose calls run as workflows.
	Run func(ctx context.Context, input []byte, inv jig.Invocation) jig.ToolResult
	// Preview describes what a call will change. It is nil for a spec without a preview.
	Preview Preview
}

// Preview describes what a call will change. read makes the one call that the document may ask for.
type Preview func(ctx context.Context, input []byte, inv jig.Invocation, read Read) (jig.Preview, error)

// Read calls a tool that only reads, with the rights of the previewed call, and returns the data of its result.
type Read func(ctx context.Context, tool string, input json.RawMessage) (json.RawMessage, error)
