package jig

import (
	"encoding/json"
	"time"
)

// Admission is what the ledger is told of a pass: every call, with its verdict, in one transaction.
type Admission struct {
	Tenant    string
	SessionID string
	Pass      int
	// Calls in the order asked. A call of verdict run is reserved, ask waits, deny and refuse carry their result.
	Calls []Call
	// Approvals to open, one for each call that asks.
	Approvals []Pending
}

// Window is the part of a pass's calls that a workflow run takes in hand.
type Window struct {
	// Calls that are not final, in the order asked: those that wait for a person and at most the asked number of others.
	Calls []Call
	// Approvals of the calls that wait, by call id.
	Approvals map[string]Pending
	// More says that the pass has further open calls.
	More bool
}

// Reserve asks the ledger to let an attempt begin.
type Reserve struct {
	Tenant    string
	SessionID string
	CallID    string
	// Version is the version of the tool that this worker would run.
	Version string
	// Meaning is that of the tool's contract; a grant that stands for the approval must have been given for it.
	Meaning string
	// Digest is recomputed by the one who asks from what it is about to run; it must equal the row's, and the approved one's.
	Digest string
	// MaxAttempts bounds the attempts of the call.
	MaxAttempts int
	// Attempt names the attempt, so that one whose answer was lost may ask again and gets the same fence; "" when it never asks twice.
	Attempt string
	// ProofWanted says that decisions must be proved: an approval that was merely claimed is taken back, and the call asked about anew.
	ProofWanted bool
	// Child is the session that answers the call; empty for a call that runs as an activity or as a composition.
	Child string
}

// ReserveOutcome says what the ledger answered.
type ReserveOutcome string

// The answers to Reserve.
const (
	// ReserveRun: go ahead under the returned fence.
	ReserveRun ReserveOutcome = "run"
	// ReserveFinal: the call has its result already.
	ReserveFinal ReserveOutcome = "final"
	// ReserveUnknown: an earlier attempt began and nobody knows how it ended; a person must say.
	ReserveUnknown ReserveOutcome = "unknown"
	// ReserveWaiting: no valid approval; the call waits for one.
	ReserveWaiting ReserveOutcome = "waiting"
)

// Reservation is the ledger's answer.
type Reservation struct {
	Outcome ReserveOutcome
	Call    Call
	// Fence must be given back with the completion.
	Fence int
	// InDoubt says that an earlier attempt of a call that writes began, and may have taken effect.
	InDoubt bool
}

// Completion finalises an attempt.
type Completion struct {
	Tenant    string
	SessionID string
	CallID    string
	Fence     int
	// Digest is that of what ran.
	Digest string
	// Status is succeeded, failed or canceled; unknown when nobody can know whether the effect happened; reserved to give the call back
	// for another attempt.
	Status CallStatus
	// InDoubt says of a call that is given back that its effect may have happened.
	InDoubt bool
	Result  ToolResult
	// Whole is the uncut result (JSON of a ToolResult) when Result was cut down; it is stored as ResultArtifact.
	Whole []byte
}

// Completed is where a call stands after a completion.
type Completed struct {
	Call
	// Late says that the call was unknown, and the completion settled it: who waits for the call does not know yet.
	Late bool
}

// QuickCompletion is the record of a first attempt at a read-only, idempotent call that has run already.
type QuickCompletion struct {
	CallID string
	// Version and Digest are what ran; they must be what was admitted.
	Version, Digest string
	// Status is succeeded or failed.
	Status            CallStatus
	Result            ToolResult
	Started, Finished time.Time
}

// DecisionRequest is a decision with what the activity worked out from it, because the store cannot.
type DecisionRequest struct {
	Tenant    string
	SessionID string
	// Key is the same whenever the same signal or update is processed again, so that it takes effect once.
	Key string
	// Principal decides, with the groups and permissions that the tenant knows of; Claimed when nobody proved who it is.
	Principal Principal
	// Evidence is what proved it.
	Evidence *Evidence
	// ProofWanted says that decisions must be proved: what was merely claimed before does not count beside this one.
	ProofWanted bool
	Decision    Decision
	// Edited is the call as it would run with the decision's input (canonical, validated, with its new digest and ruling), and
	// Fresh what people are shown of it; nil when the decision does not edit.
	Edited *Call
	Fresh  *Pending
	// EditedFrom is the digest of the call that Edited and Patch were worked out from. When the call has another one by the time the
	// decision is applied, nothing is decided and the error is a CONFLICT with ReasonInputChanged: work them out again.
	EditedFrom string
	// Patch is what the edit changes, as JSON Patch (RFC 6902).
	Patch json.RawMessage
	// Grant is the standing approval that comes with it, checked against the tenant's ceiling; nil when none does.
	Grant *Grant
	// Refusal, when set, is recorded as decision.refused without looking further: a payload that could not be read, an edit
	// that does not fit the schema, a token that proves nothing.
	Refusal string
	Now     time.Time
}

// ReasonInputChanged says that a call's input was changed by somebody else while an edit of it was worked out.
const ReasonInputChanged = "input_changed"

// ReconcileRequest is a person's word on an unknown outcome; see DecisionRequest for the fields they share.
type ReconcileRequest struct {
	Tenant         string
	SessionID      string
	Key            string
	Principal      Principal
	Evidence       *Evidence
	Reconciliation Reconciliation
	// Reconcilers may say what became of an effect; nil: those who could have approved the call.
	Reconcilers *Approvers
	ProofWanted bool
	Refusal     string
	Now         time.Time
}

// ReplyRequest is a person's answer to a question; see DecisionRequest for the fields they share. The value was found to fit the
// question's schema.
type ReplyRequest struct {
	Tenant    string
	SessionID string
	Key       string
	Principal Principal
	Evidence  *Evidence
	Reply     Reply
	// Digest is that of the question that the value was checked against.
	Digest      string
	ProofWanted bool
	Refusal     string
	Now         time.Time
}

// Lapse is what time did to an approval.
type Lapse struct {
	// Status is where the call stands.
	Status CallStatus
	// Ask is the approval as it stands, while it waits.
	Ask *Pending
	// OnExpiry says what else ends, when the approval expired.
	OnExpiry ExpiryOutcome
}

// PassState is what settling a pass needs to know.
type PassState struct {
	Session Session
	Turn    Turn
	// Counts of the pass's calls by status.
	Counts map[CallStatus]int
	// Unread counts the user messages that arrived since the pass's prompt was built.
	Unread int
	// MessagePass is the pass under way when the latest user message arrived; 0 when there was none but the task.
	MessagePass int
}

// End is how a session (or a pass) comes to its end in the store: the status working means that it goes on.
type End struct {
	Tenant    string
	SessionID string
	Pass      int
	Status    Status
	Reason    string
	Answer    string
	Error     *Error
	// Since, unless it is zero, is when the session changed last as far as the caller knows: one that changed after it is left alone.
	Since time.Time
}

// CallCounts is the tally of a session's calls, by status.
type CallCounts map[CallStatus]int

// CallView is a call as the status shows it.
type CallView struct {
	Call    string     `json:"call"`
	Tool    string     `json:"tool"`
	Status  CallStatus `json:"status"`
	Summary string     `json:"summary,omitempty"`
	// Child is the session that the call started.
	Child      string `json:"child_session_id,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	Error      *Error `json:"error,omitempty"`
}

// SessionView is what `status` shows.
type SessionView struct {
	SessionID string `json:"session_id"`
	// ClientID is the id that the client chose for the session; empty when jig made the session's id.
	ClientID string     `json:"client_id,omitempty"`
	Agent    string     `json:"agent"`
	Status   Status     `json:"status"`
	Pass     int        `json:"pass"`
	Pending  []Pending  `json:"pending"`
	Calls    []CallView `json:"calls"`
	Answer   string     `json:"answer,omitempty"`
	// AnswerArtifact holds the answer when it is too large to be shown whole.
	AnswerArtifact string `json:"answer_artifact,omitempty"`
	// Output is what the call of a session without a model gave, once the session has ended. OutputArtifact holds the whole
	// result when it is too large to be shown whole.
	Output         json.RawMessage `json:"output,omitempty"`
	OutputArtifact string          `json:"output_artifact,omitempty"`
	Reason         string          `json:"reason,omitempty"`
	Error          *Error          `json:"error,omitempty"`
	Counts         CallCounts      `json:"counts,omitempty"`
	Tokens         int64           `json:"tokens,omitempty"`
	Todo           json.RawMessage `json:"todo,omitempty"`
	// Paused are the pauses that hold the session's calls back.
	Paused []Pause `json:"paused,omitempty"`
	// Held says which policies cannot be read and so hold back the calls that have not begun.
	Held []string `json:"held,omitempty"`
	// UpdatedAt is when the store changed the session last.
	UpdatedAt time.Time `json:"-"`
}
