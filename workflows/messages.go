package workflows

import (
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
)

// TaskQueue is the default task queue of jig's workers.
const TaskQueue = "jig"

// These names are used by other programs and never change.
const (
	// PassWorkflow is the workflow type of an agent session, and CallWorkflow the one of a single call.
	PassWorkflow = "Pass"
	CallWorkflow = "Call"
	// CompositionWorkflow is the type of the workflow that answers a call of an execution spec.
	CompositionWorkflow = "Composition"
	// ExtractionWorkflow is the type of the workflow that answers a call which fills an entity.
	ExtractionWorkflow = "Extraction"
	SweepWorkflow      = "Sweep"

	SignalApprove   = "approve"
	SignalDeny      = "deny"
	SignalMessage   = "message"
	SignalReconcile = "reconcile"
	SignalEvent     = "event"
	SignalDelegate  = "delegate"
	SignalAnswer    = "answer"

	UpdateDecide    = "decide"
	UpdateReconcile = "reconcile"
	UpdateAnswer    = "answer"
	// UpdateWait, an update of a Call workflow, answers as soon as the call has its result or waits for a person.
	UpdateWait = "wait"

	QueryStatus = "status"
)

// SignalSettled tells a workflow that a call which it considers unknown was settled late. Only activities send it. Its payload is an
// [activities.Settlement].
const SignalSettled = "jig.settled"

// These signals pass between a session and the compositions and sessions that answer its calls. Other programs must not send them.
const (
	// signalWake tells a composition about a decision on one of its calls, or that an event arrived.
	signalWake = "jig.wake"
	// signalYield asks a composition to end in its current state, because another workflow will continue it.
	signalYield = "jig.yield"
	// signalWaiting tells a session which calls wait for a person in the composition or session that answers one of its calls.
	signalWaiting = "jig.waiting"
)

// Search attributes that every session carries.
const (
	AttrTenant  = "JigTenant"
	AttrAgent   = "JigAgent"
	AttrStatus  = "JigStatus"
	AttrTool    = "JigTool"
	AttrPass    = "JigPass"
	AttrPending = "JigPending"
)

// These activity types are started directly by clients, mostly to read. Each takes one of the request types below.
const (
	ReadStatus    = "jig.status"
	ReadApprovals = "jig.approvals"
	ReadEvents    = "jig.events"
	ReadCatalog   = "jig.catalog"
	ReadArtifact  = "jig.artifact"
	ReadEntity    = "jig.entity"
	WriteArtifact = "jig.upload"
	ReadGrants    = "jig.grants"
	ReadPauses    = "jig.pauses"
	ReadAudit     = "jig.audit"
	WritePause    = "jig.pause"
	WriteResume   = "jig.resume"
)

// PassInput is the input of a run of Pass. A client sets Tenant and Start to begin a session, or Tenant alone to send a message to
// a session that has ended. The other fields are passed from one run to the next.
type PassInput struct {
	Tenant string        `json:"tenant"`
	Start  *StartSession `json:"start,omitempty"`
	// Pass is the number of the first pass of this run. It is 0 in a run that a client started.
	Pass int `json:"pass,omitempty"`
	// Calling reports that an earlier run admitted the calls of this pass and that some of them are still open.
	Calling bool `json:"calling,omitempty"`
	// Agent and Limits belong to the session. They are passed on so that a run need not query them.
	Agent  string     `json:"agent,omitempty"`
	Limits jig.Limits `json:"limits,omitzero"`
	// Deadline is the deadline of the session, or zero if it has none.
	Deadline time.Time `json:"deadline,omitzero"`
	// Tools lists the tools that the session has used, sorted. It is the value of the search attribute JigTool.
	Tools []string `json:"tools,omitempty"`
	// Inbox holds signals that arrived too late for the previous run.
	Inbox []Envelope `json:"inbox,omitempty"`
	// Said counts the byte-identical messages and events of the earlier runs.
	Said map[string]int `json:"said,omitempty"`
	// Shown holds the current values of the search attributes.
	Shown Shown `json:"shown,omitzero"`
	// Parent identifies the call that this session answers as the child of another session's workflow. It is nil for any other session.
	Parent *ParentCall `json:"parent,omitempty"`
}

// ParentCall identifies a call that is answered by a session.
type ParentCall struct {
	SessionID string `json:"session_id"`
	Call      string `json:"call"`
	// Told reports that the parent may still show this session as waiting for people.
	Told bool `json:"told,omitempty"`
}

// Shown holds the values of a session's search attributes. Tools is a count.
type Shown struct {
	Status  jig.Status `json:"status,omitempty"`
	Pending int        `json:"pending,omitempty"`
	Pass    int        `json:"pass,omitempty"`
	Tools   int        `json:"tools,omitempty"`
}

// Envelope is a signal as it arrived, with a key that makes sure that it takes effect only once.
type Envelope struct {
	Name    string          `json:"name"`
	Key     string          `json:"key"`
	Payload json.RawMessage `json:"payload"`
}

// PassResult is the result of a session's workflow.
type PassResult struct {
	SessionID string     `json:"session_id"`
	Status    jig.Status `json:"status"`
	// Answer is cut to 32 KiB. The store has the complete answer.
	Answer    string     `json:"answer,omitempty"`
	Truncated bool       `json:"truncated,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	Passes    int        `json:"passes"`
	Error     *jig.Error `json:"error,omitempty"`
}

// These are the payloads and requests that package activities defines. Other programs use them under these names.
type (
	// StartSession describes a new session. If Document or Input is large, the client can store it first and pass a reference instead.
	StartSession = activities.StartSession
	// Decisions is the payload of the signals approve and deny and of the update decide: one decision or several. For a signal, the
	// signal's name is the answer. In the update, each decision carries its own answer (default: approve).
	Decisions = activities.Decisions
	// DecideResult is the answer of the updates decide, answer and reconcile.
	DecideResult = activities.DecideResult
	// Message is the payload of the signal message.
	Message = activities.Message
	// StatusRequest asks for a session's status.
	StatusRequest = activities.StatusRequest
	// ApprovalsRequest asks for a page of the calls in a tenant that wait for a person. SessionID limits it to one session.
	ApprovalsRequest = activities.ApprovalsRequest
	// ApprovalsPage is a page of calls that wait for a person.
	ApprovalsPage = activities.ApprovalsPage
	// EventsRequest asks for the events after a sequence number. It waits up to Wait for the first one.
	EventsRequest = activities.EventsRequest
	// EventsPage is a page of events, at most 128 KiB.
	EventsPage = activities.EventsPage
	// CatalogRequest asks for a page of the tools that a tenant sees. After is the last name of the previous page.
	CatalogRequest = activities.CatalogRequest
	// CatalogPage is a page of tools, sorted by name.
	CatalogPage = activities.CatalogPage
	// EntityRequest asks for the state of the latest extraction of an entity. The answer is a [jig.EntityStatus].
	EntityRequest = activities.EntityRequest
	// ArtifactRequest asks for a piece of an artifact.
	ArtifactRequest = activities.ArtifactRequest
	// ArtifactChunk is a piece of an artifact, at most 128 KiB.
	ArtifactChunk = activities.ArtifactChunk
	// AuditRequest asks for rows of a tenant's audit chain.
	AuditRequest = activities.AuditRequest
	// AuditPage is a page of rows of a tenant's audit chain.
	AuditPage = activities.AuditPage
	// PauseRequest pauses or resumes calls that have not begun.
	PauseRequest = activities.PauseRequest
	// PauseResult lists the pauses that are in force now.
	PauseResult = activities.PauseResult
	// GrantsRequest asks for a page of grants, or revokes one.
	GrantsRequest = activities.GrantsRequest
	// GrantsPage is a page of grants.
	GrantsPage = activities.GrantsPage
	// UploadRequest writes a piece (at most 128 KiB) of an artifact. The client chooses the artifact's id.
	UploadRequest = activities.UploadRequest
)

// CallInput is the input of a run of Call: one tool call from a person or a program, without a model.
type CallInput struct {
	Tenant string `json:"tenant"`
	// Tool names a tool or a registered execution spec. It is empty when a document is given.
	Tool string `json:"tool,omitempty"`
	// Document is an execution spec, and DocumentArtifact the id of one that was uploaded. DocumentName is its file name, for messages.
	Document         string          `json:"document,omitempty"`
	DocumentArtifact string          `json:"document_artifact,omitempty"`
	DocumentName     string          `json:"document_name,omitempty"`
	Input            json.RawMessage `json:"input,omitempty"`
	InputArtifact    string          `json:"input_artifact,omitempty"`
	Principal        jig.Principal   `json:"principal"`
	// Pairs are key=value inputs. They are converted according to the tool's input schema.
	Pairs map[string]string `json:"pairs,omitempty"`
	// Parent is the session that started this one, and ParentCall the call of that session. Both are empty when a person or a
	// program started it. With a parent, the principal is the parent's.
	Parent     string `json:"parent,omitempty"`
	ParentCall string `json:"parent_call,omitempty"`
	// Source says how a call without a parent was started. Empty means api.
	Source jig.Source `json:"source,omitempty"`
	// Calling and Inbox are passed from one run to the next.
	Calling bool       `json:"calling,omitempty"`
	Inbox   []Envelope `json:"inbox,omitempty"`
	// Said has the same meaning as in [PassInput].
	Said map[string]int `json:"said,omitempty"`
}

// CallResult is the result of a Call workflow and the answer of its update wait.
type CallResult struct {
	SessionID string `json:"session_id"`
	// ClientID is the id that the client chose for the session. The client sets it; workflows do not.
	ClientID string         `json:"client_id,omitempty"`
	Call     string         `json:"call"`
	Status   jig.CallStatus `json:"status"`
	// Result is set once the call is final. Its data is cut to 32 KiB.
	Result *jig.ToolResult `json:"result,omitempty"`
}
