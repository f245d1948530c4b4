package workflows

import (
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
)

// TaskQueue is the default task queue of jig's workers.
const TaskQueue = "jig"

// Names that other programs use: they never change.
const (
	// PassWorkflow is the workflow type of an agent session, CallWorkflow that of a single call.
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
	// UpdateWait of a Call answers as soon as the call has its result or waits for a person.
	UpdateWait = "wait"

	QueryStatus = "status"
)

// SignalSettled is sent by activities to the workflow that holds a call to be unknown, when the call was settled late. Its payload is
// an activities.Settlement; other programs have no use for it.
const SignalSettled = "jig.settled"

// Signals between a session and its compositions; other programs have no use for them.
const (
	// signalWake tells a composition of a decision on one of its calls, or that an event came.
	signalWake = "jig.wake"
	// signalYield asks a composition to end as it stands, because another workflow is about to go on with it.
	signalYield = "jig.yield"
	// signalWaiting tells a session what waits in a composition, or a session, that answers one of its calls.
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

// Activity types that clients start by themselves, to read. Each takes one of the request types below.
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

// PassInput is the input of a run of Pass. A client sets Tenant and Start (a new session) or Tenant alone (a message to
// one that has ended); the rest is what a run hands to the next.
type PassInput struct {
	Tenant string        `json:"tenant"`
	Start  *StartSession `json:"start,omitempty"`
	// Pass is the number of this run's first pass; 0 in a run that a client started.
	Pass int `json:"pass,omitempty"`
	// Calling says that the pass's calls were admitted by an earlier run and some of them are still open.
	Calling bool `json:"calling,omitempty"`
	// Agent and Limits of the session, so that a run needs no query for them.
	Agent  string     `json:"agent,omitempty"`
	Limits jig.Limits `json:"limits,omitzero"`
	// Deadline of the session; zero when there is none.
	Deadline time.Time `json:"deadline,omitzero"`
	// Tools that the session has used, sorted: the search attribute JigTool.
	Tools []string `json:"tools,omitempty"`
	// Inbox holds signals that arrived too late for the run before.
	Inbox []Envelope `json:"inbox,omitempty"`
	// Shown is what the search attributes say.
	Shown Shown `json:"shown,omitzero"`
	// Parent is the session whose call this one answers, as its workflow's child; nil for any other session.
	Parent *ParentCall `json:"parent,omitempty"`
}

// ParentCall is a call that a session answers.
type ParentCall struct {
	SessionID string `json:"session_id"`
	Call      string `json:"call"`
	// Told says that the parent may hold this session to wait for people.
	Told bool `json:"told,omitempty"`
}

// Shown is what a session's search attributes say; Tools counts them.
type Shown struct {
	Status  jig.Status `json:"status,omitempty"`
	Pending int        `json:"pending,omitempty"`
	Pass    int        `json:"pass,omitempty"`
	Tools   int        `json:"tools,omitempty"`
}

// Envelope is a signal as it arrived, with the key under which it takes effect once.
type Envelope struct {
	Name    string          `json:"name"`
	Key     string          `json:"key"`
	Payload json.RawMessage `json:"payload"`
}

// PassResult is what a session's workflow ends with.
type PassResult struct {
	SessionID string     `json:"session_id"`
	Status    jig.Status `json:"status"`
	// Answer is cut to 32 KiB; the whole one is in the store.
	Answer    string     `json:"answer,omitempty"`
	Truncated bool       `json:"truncated,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	Passes    int        `json:"passes"`
	Error     *jig.Error `json:"error,omitempty"`
}

// The payloads and requests that activities read are theirs; programs know them by these names.
type (
	// StartSession is what a session is started with. Document and Input may be kept aside first, when they are large.
	StartSession = activities.StartSession
	// Decisions is the payload of the signals approve and deny and of the update decide: one decision, or several. In a
	// signal the answer is the signal's name; in the update each decision carries its own (default approve).
	Decisions = activities.Decisions
	// DecideResult is the answer of the updates decide, answer and reconcile.
	DecideResult = activities.DecideResult
	// Message is the payload of the signal message.
	Message = activities.Message
	// StatusRequest asks for a session's status.
	StatusRequest = activities.StatusRequest
	// ApprovalsRequest asks for a page of what waits in a tenant; SessionID narrows it.
	ApprovalsRequest = activities.ApprovalsRequest
	// ApprovalsPage is a page of what waits.
	ApprovalsPage = activities.ApprovalsPage
	// EventsRequest asks for the events after a sequence number, waiting up to Wait for the first.
	EventsRequest = activities.EventsRequest
	// EventsPage is a page of events, at most 128 KiB of them.
	EventsPage = activities.EventsPage
	// CatalogRequest asks for the tools that a tenant sees, a page at a time (After is the last name of the page before).
	CatalogRequest = activities.CatalogRequest
	// CatalogPage is a page of tools sorted by name.
	CatalogPage = activities.CatalogPage
	// EntityRequest asks how the latest extraction of an entity stands; the answer is a jig.EntityStatus.
	EntityRequest = activities.EntityRequest
	// ArtifactRequest asks for a piece of an artifact.
	ArtifactRequest = activities.ArtifactRequest
	// ArtifactChunk is a piece of an artifact, at most 128 KiB.
	ArtifactChunk = activities.ArtifactChunk
	// AuditRequest asks for rows of a tenant's audit chain.
	AuditRequest = activities.AuditRequest
	// AuditPage is a page of them.
	AuditPage = activities.AuditPage
	// PauseRequest holds back, or lets go on, what has not begun.
	PauseRequest = activities.PauseRequest
	// PauseResult says what holds now.
	PauseResult = activities.PauseResult
	// GrantsRequest asks for a page of standing approvals, or ends one.
	GrantsRequest = activities.GrantsRequest
	// GrantsPage is a page of standing approvals.
	GrantsPage = activities.GrantsPage
	// UploadRequest writes a piece (at most 128 KiB) of an artifact whose id the client made.
	UploadRequest = activities.UploadRequest
)

// CallInput is the input of a run of Call: one tool call from a person or a program, without a model.
type CallInput struct {
	Tenant string `json:"tenant"`
	// Tool names a tool or a registered execution spec; empty when Document is given.
	Tool string `json:"tool,omitempty"`
	// Document is an execution spec, DocumentArtifact one that was uploaded; DocumentName is its file name, for messages.
	Document         string          `json:"document,omitempty"`
	DocumentArtifact string          `json:"document_artifact,omitempty"`
	DocumentName     string          `json:"document_name,omitempty"`
	Input            json.RawMessage `json:"input,omitempty"`
	InputArtifact    string          `json:"input_artifact,omitempty"`
	Principal        jig.Principal   `json:"principal"`
	// Pairs are key=value inputs, converted by the tool's input schema.
	Pairs map[string]string `json:"pairs,omitempty"`
	// Parent is the session, and ParentCall its call, that started this one; both are empty for a start by a person or a program.
	// With a parent, the principal is the parent's.
	Parent     string `json:"parent,omitempty"`
	ParentCall string `json:"parent_call,omitempty"`
	// Source says how a call without a parent is started; api when empty.
	Source jig.Source `json:"source,omitempty"`
	// Calling and Inbox are what a run hands to the next.
	Calling bool       `json:"calling,omitempty"`
	Inbox   []Envelope `json:"inbox,omitempty"`
}

// CallResult is what a Call ends with, and what its update wait answers.
type CallResult struct {
	SessionID string `json:"session_id"`
	// ClientID is the id that the client chose for the session. The client sets it; workflows do not.
	ClientID string         `json:"client_id,omitempty"`
	Call     string         `json:"call"`
	Status   jig.CallStatus `json:"status"`
	// Result is present once the call is final; its data is cut to 32 KiB.
	Result *jig.ToolResult `json:"result,omitempty"`
}
