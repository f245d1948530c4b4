package api

import (
	"net/http"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity/credential"
)

// tools lists the operations on tools and on the large values that their calls leave.
func tools() []Any { return []Any{ListTools, GetTool, TestTool, StreamToolTest, GetArtifact} }

// ListTools lists the tools and the names of the registered documents.
var ListTools = reading[struct{}, client.Catalog](Tools, "list-tools", "/v1/tools", "List the tools and the names of the registered documents")

// ToolPath names a tool in the path.
type ToolPath struct {
	Tool string `path:"tool" names:"tool" maxLength:"64" doc:"The name of the tool"`
}

// GetTool gets the contract of a tool.
var GetTool = reading[ToolPath, jig.Tool](Tools, "get-tool", "/v1/tools/{tool}", "Get the contract of a tool", http.StatusNotFound)

// realCall is a text that several operations share.
const realCall = "A test is a real call of the tool, as the principal of the credential and under the same rules, previews and approvals as call-tool. " +
	"It also needs the scope run. "

// TestTool tests a tool by calling it.
var TestTool = Op[CallToolRequest, CalledCall]{Operation: Operation{
	Name: "test-tool", Method: http.MethodPost, Path: "/v1/tools/{tool}/test", Tag: Tools, Scope: credential.ScopeAuthor, Record: RecordCall, Also: Running(),
	Summary: "Test a tool by calling it",
	Details: realCall + "The response comes when the call has its result or waits for a person, or after 60 seconds at the latest. The header " +
		"Prefer: wait=SECONDS shortens that time.",
	Fails: []int{404, 409},
}}

// StreamToolTestRequest tests a tool.
type StreamToolTestRequest struct {
	Idempotent
	ToolPath
	Body CallToolBody
}

// StreamToolTest tests a tool by calling it, and streams the events of the call.
var StreamToolTest = Op[StreamToolTestRequest, struct{}]{Operation: Operation{
	Name: "stream-tool-test", Method: http.MethodPost, Path: "/v1/tools/{tool}/test/stream", Tag: Tools, Scope: credential.ScopeAuthor, Record: RecordCall,
	Summary: "Test a tool by calling it, and stream the events of the call",
	Details: realCall + "The response is a stream of server-sent events. The first one, call, names the session and the call. The events tool.* of the " +
		"call follow as they are written, with their sequence numbers as ids. If the call has run, the last event, run, is the call as list-runs " +
		"returns it. After an interruption, continue with get-events of the session and the last id. A refused request gets a status and a problem instead.",
	Fails: []int{404, 409},
}}

// ArtifactPath names an artifact in the path.
type ArtifactPath struct {
	Artifact string `path:"artifact" names:"artifact" maxLength:"128" doc:"The id of the artifact"`
}

// GetArtifact downloads a large value that is stored separately.
var GetArtifact = Op[ArtifactPath, struct{}]{Operation: Operation{
	Name: "get-artifact", Method: http.MethodGet, Path: "/v1/artifacts/{artifact}", Tag: Calls, Scope: credential.ScopeRead,
	Summary: "Download a large value that is stored separately",
	Details: "The response is always an attachment of type application/octet-stream, so that no browser shows it as a page of this server.",
	Fails:   []int{404},
}}
