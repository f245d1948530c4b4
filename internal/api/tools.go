package api

import (
	"encoding/json"
	"net/http"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
)

// tools lists the operations on tools and on the large values that their calls leave.
func tools() []Any { return []Any{ListTools, GetTool, TestTool, StreamToolTest, GetArtifact} }

// ListTools lists the tools and the names of the registered documents.
var ListTools = reading[struct{}, protocol.Catalog](Tools, "list-tools", "/v1/tools", "List the tools and the names of the registered documents")

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
	Media:   EventStream,
	Form:    "Server-sent events: call with session_id, call and status; events tool.* as get-events returns them; run with a run as list-runs returns it.",
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
	Media: Binary, Summary: "Download a large value that is stored separately",
	Details: "The response is always an attachment of type application/octet-stream, so that no browser shows it as a page of this server.",
	Fails:   []int{404},
}}

// calls lists the operations on single calls.
func calls() []Any { return []Any{GetCall, ListRuns, CallTool, RunComposition} }

// CalledCall is the present state of a call.
type CalledCall struct {
	protocol.CallResult
	Held string `json:"held,omitempty" enum:"no_worker" doc:"no_worker if no worker answers; the call runs as soon as one does"`
}

// CallPath names a call of a session.
type CallPath struct {
	SessionPath
	Call string `query:"call" names:"call" required:"true" maxLength:"512" doc:"The id of the call, e.g. 3.2 or 3.2/page"`
}

// GetCall gets a call with its whole input and result.
var GetCall = Op[CallPath, protocol.CallRecord]{Operation: Operation{
	Name: "get-call", Method: http.MethodGet, Path: "/v1/sessions/{session}/call", Tag: Calls, Scope: credential.ScopeRead, Embed: EmbedTool,
	Summary: "Get a call with its whole input and result", Fails: []int{404, 409},
}}

// RunsRequest asks for the calls of a session that have run.
type RunsRequest struct {
	SessionPath
	After int64 `query:"after" minimum:"0" doc:"next_after of the previous page"`
	Limit int   `query:"limit" minimum:"1" maximum:"50" default:"20" doc:"The maximum number of runs on a page"`
}

// ToolRun is a call that has run, in the flat form of interfaces that know no events. It is derived from the log and the ledger and never stored.
type ToolRun struct {
	ID         string          `json:"id" doc:"The ids of the session and of the call, separated by a slash"`
	Tenant     string          `json:"tenant_id"`
	Tool       string          `json:"tool_slug"`
	User       *string         `json:"user_id" doc:"The principal that the session acts for"`
	Input      json.RawMessage `json:"input"`
	Output     json.RawMessage `json:"output" doc:"The result of a successful call, always an object: any other value is in its member value, and the id of a separately stored value is in its member artifact"`
	Status     string          `json:"status" enum:"success,error"`
	Error      *string         `json:"error"`
	DurationMS int64           `json:"duration_ms" doc:"How long the last attempt took"`
	Source     string          `json:"source" enum:"web,agent,api" doc:"agent if an agent made the call, web if a person made it in a browser, otherwise api"`
	Chat       *string         `json:"chat_id" doc:"The session, if an agent made the call"`
	Session    string          `json:"session_id"`
}

// ToolRunList is a page of calls that have run.
type ToolRunList struct {
	Runs  []ToolRun `json:"runs"`
	After int64     `json:"next_after" doc:"The value of after for the next request. If it is unchanged, there is nothing new yet."`
}

// ListRuns lists the calls of a session that have run.
var ListRuns = Op[RunsRequest, ToolRunList]{Operation: Operation{
	Name: "list-runs", Method: http.MethodGet, Path: "/v1/sessions/{session}/runs", Tag: Calls, Scope: credential.ScopeRead,
	Summary: "List the calls of a session that have run, as flat objects, in the order in which they ended",
	Details: "Each run is derived from the events tool.started and tool.completed, tool.failed or tool.cancelled of a call. Calls that have not started " +
		"or have not ended are left out. A page may have fewer runs than limit even if more follow, but it is empty only at the end.",
	Fails: []int{404},
}}

// CallToolRequest calls a tool.
type CallToolRequest struct {
	CallHeaders
	ToolPath
	Body CallToolBody
}

// CallToolBody is the body of a request that calls a tool.
type CallToolBody struct {
	Origin
	ID    string            `json:"id,omitempty" doc:"An id of your own for the session of the call, unique in the tenant"`
	Input json.RawMessage   `json:"input,omitempty" doc:"The arguments, an object that fits the tool's schema"`
	Pairs map[string]string `json:"pairs,omitempty" doc:"More arguments, as strings that the tool's schema converts"`
}

// CallTool calls a tool without a model.
var CallTool = Op[CallToolRequest, CalledCall]{Operation: Operation{
	Name: "call-tool", Method: http.MethodPost, Path: "/v1/tools/{tool}/calls", Tag: Calls, Scope: credential.ScopeRun, Embed: EmbedTool,
	Record: RecordCall, Also: Running(),
	Summary: "Call a tool without a model",
	Details: "The call is admitted, approved, recorded and run once, like a call of an agent. With the header Prefer: wait=SECONDS, the response comes when " +
		"the call has its result or waits for a person. Repeated requests are recognized as for sessions.",
	Fails: []int{404, 409},
}}

// RunRequest runs a tool or a composition.
type RunRequest struct {
	CallHeaders
	Body struct {
		Origin
		ID           string            `json:"id,omitempty" doc:"An id of your own for the session of the call, unique in the tenant"`
		Name         string            `json:"name,omitempty" names:"tool" maxLength:"64" doc:"The name of a tool or a registered composition"`
		Document     string            `json:"document,omitempty" doc:"The document of a composition that is not registered, instead of a name"`
		DocumentName string            `json:"document_name,omitempty" maxLength:"512" doc:"The file name of the document, for messages"`
		Input        json.RawMessage   `json:"input,omitempty" doc:"The arguments, an object that fits the schema"`
		Pairs        map[string]string `json:"pairs,omitempty" doc:"More arguments, as strings that the schema converts"`
		Unchecked    bool              `json:"unchecked,omitempty" doc:"Start it without checking it first"`
	} `nameHint:"RunComposition"`
}

// RunComposition runs a tool or a composition.
var RunComposition = Op[RunRequest, CalledCall]{Operation: Operation{
	Name: "run-composition", Method: http.MethodPost, Path: "/v1/calls", Tag: Calls, Scope: credential.ScopeRun, Record: RecordCall, Also: Running(),
	Summary: "Run a tool, a registered composition, or the document of an unregistered one",
	Details: "This works like call-tool, and also runs compositions whose names are not names of tools.",
	Fails:   []int{404, 409},
}}
