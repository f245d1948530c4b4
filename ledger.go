package jig

import (
	"encoding/json"
	"time"
)

// Admission is the request with which a pass submits its calls to the ledger: all of them with their verdicts, in one transaction.
type Admission struct {
	Tenant    string
	SessionID string
	Pass      int
	// Calls are in the order requested. A call whose verdict is run is reserved; one whose verdict is ask waits; one whose verdict is deny or
	// refuse has its result already.
	Calls []Call
	// Approvals are the approvals to open, one for each call whose verdict is ask.
	Approvals []Pending
}

// Window is the part of the open calls of a pass, or of a composition, that a workflow run handles at a time.
type Window struct {
	// Calls are open calls in the order requested: all that wait for a person, and at most the requested number of others. For a composition,
	// they are all of its open calls.
	Calls []Call
	// Approvals are the approvals of waiting calls, by call id.
	Approvals map[string]Pending
	// More reports that the pass has further open calls.
	More bool
}

// Reserve asks the ledger to begin an attempt.
type Reserve struct {
	Tenant    string
	SessionID string
	CallID    string
	// Version is the version of the tool that this worker would run.
	Version string
	// Meaning is the [Tool.Meaning] of that version. A grant used in place of an approval must have been given for the same meaning.
	Meaning string
	// Digest is the digest of the call that the worker is about to run, computed by the worker. It must equal the digest in the ledger and the
	// approved one.
	Digest string
	// MaxAttempts bounds the attempts of the call.
	MaxAttempts int
	// Attempt identifies the attempt, so that a worker whose reply was lost can ask again and gets the same fence; "" if it never asks
	// twice.
	Attempt string
	// ProofWanted reports that decisions must be proved. An approval that was merely claimed is withdrawn, and a new one is requested.
	ProofWanted bool
	// Child is the session that answers the call; empty for a call that runs as an activity or a composition.
	Child string
}

// ReserveOutcome is the ledger's answer to [Reserve].
type ReserveOutcome string

// The answers to Reserve.
const (
	// ReserveRun: the attempt may begin under the returned fence.
	ReserveRun ReserveOutcome = "run"
	// ReserveFinal: the call already has its result.
	ReserveFinal ReserveOutcome = "final"
	// ReserveUnknown: an earlier attempt began and nobody knows how it ended; a person must decide.
	ReserveUnknown ReserveOutcome = "unknown"
	// ReserveWaiting: there is no valid approval; the call waits for one.
	ReserveWaiting ReserveOutcome = "waiting"
)

// Reservation is the ledger's answer to [Reserve], with details.
type Reservation struct {
	Outcome ReserveOutcome
	Call    Call
	// Fence must be passed back with the [Completion].
	Fence int
	// InDoubt reports that an earlier attempt of a writing call began and may have taken effect.
	InDoubt bool
}

// Completion finalizes an attempt.
type Completion struct {
	Tenant    string
	SessionID string
	CallID    string
	Fence     int
	// Digest is the digest of what ran.
	Digest string
	// Status is succeeded, failed or canceled; unknown when nobody can know whether the effect happened; or reserved to return the call to
	// the ledger for another attempt.
	Status CallStatus
	// InDoubt reports, for a call returned as reserved, that its effect may have happened.
	InDoubt bool
	Result  ToolResult
	// Whole is the full result (JSON of a [ToolResult]) when Result was shortened; it is stored as ResultArtifact.
	Whole []byte
}

// Completed is a call after a [Completion].
type Completed struct {
	Call
	// Late reports that the call was unknown and this completion settled it. The workflow that waits for the call has not been notified yet.
	Late bool
}

// QuickCompletion records a first attempt at a read-only, idempotent call that has already run.
type QuickCompletion struct {
	CallID string
	// Version and Digest describe the call that ran; they must match the admitted call.
	Version, Digest string
	// Status is succeeded or failed.
	Status            CallStatus
	Result            ToolResult
	Started, Finished time.Time
}

// DecisionRequest is a [Decision] with the parts that the activity has to compute because the store cannot.
type DecisionRequest struct {
	Tenant    string
	SessionID string
	// Key identifies the signal or update. It is the same each time that signal or update is processed, so that it takes effect once.
	Key string
	// Principal is the principal who decides, with the groups and permissions from the tenant's settings. Claimed is set if the identity was
	// not proved.
	Principal Principal
	// Evidence is the proof of the principal; nil if there is none.
	Evidence *Evidence
	// ProofWanted reports that decisions must be proved: earlier approvals that were merely claimed do not count.
	ProofWanted bool
	Decision    Decision
	// Edited is the call as it would run with the decision's input: canonical and validated, with a new digest and ruling. Fresh is the same
	// call as people see it. Both are nil when the decision does not edit.
	Edited *Call
	Fresh  *Pending
	// EditedFrom is the digest of the call from which Edited and Patch were computed. If the call has another digest when the decision is
	// applied, nothing is decided and the error is a CONFLICT with [ReasonInputChanged]; the caller must compute them again.
	EditedFrom string
	// Patch is the change that the edit makes, as JSON Patch (RFC 6902).
	Patch json.RawMessage
	// Grant is the standing approval to create with the decision, already checked against the tenant's ceiling; nil for none.
	Grant *Grant
	// Refusal, when set, is recorded as decision.refused without further checks: the payload could not be read, an edit does not fit the
	// schema, or the token does not prove the decision.
	Refusal string
	Now     time.Time
}

// ReasonInputChanged says that somebody else changed a call's input while an edit was being prepared.
const ReasonInputChanged = "input_changed"

// ReconcileRequest is a [Reconciliation] with the parts that the activity adds; see [DecisionRequest] for the fields they share.
type ReconcileRequest struct {
	Tenant         string
	SessionID      string
	Key            string
	Principal      Principal
	Evidence       *Evidence
	Reconciliation Reconciliation
	// Reconcilers are the people who may reconcile; nil means those who could have approved the call.
	Reconcilers *Approvers
	ProofWanted bool
	Refusal     string
	Now         time.Time
}

// ReplyRequest is a [Reply] with the parts that the activity adds; see [DecisionRequest] for the fields they share. The value has already
// been validated against the question's schema.
type ReplyRequest struct {
	Tenant    string
	SessionID string
	Key       string
	Principal Principal
	Evidence  *Evidence
	Reply     Reply
	// Digest is the digest of the question against which the value was validated.
	Digest      string
	ProofWanted bool
	Refusal     string
	Now         time.Time
}

// Lapse reports how an approval changed because time passed.
type Lapse struct {
	// Status is the state of the call.
	Status CallStatus
	// Ask is the current approval, while the call waits.
	Ask *Pending
	// OnExpiry says what else ends, if the approval expired.
	OnExpiry ExpiryOutcome
}

// PassState holds the data needed to settle a pass.
type PassState struct {
	Session Session
	Turn    Turn
	// Counts holds the number of the pass's calls in each status.
	Counts map[CallStatus]int
	// Unread counts the user messages that arrived after the pass's prompt was built.
	Unread int
	// MessagePass is the pass that was running when the latest user message arrived; 0 when the task is the only message.
	MessagePass int
}

// End records in the store how a session or a pass ended. The status working means that the session continues.
type End struct {
	Tenant    string
	SessionID string
	Pass      int
	Status    Status
	Reason    string
	Answer    string
	Error     *Error
	// Since, unless zero, is the last known time at which the session changed. If it has changed since then, nothing is done.
	Since time.Time
}

// CallCounts holds the number of a session's calls in each status.
type CallCounts map[CallStatus]int

// CallView is a call as the session's status shows it.
type CallView struct {
	Call    string     `json:"call"`
	Tool    string     `json:"tool"`
	Status  CallStatus `json:"status"`
	Summary string     `json:"summary,omitempty"`
	// Child is the session that the call started; empty when it started none.
	Child      string `json:"child_session_id,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	Error      *Error `json:"error,omitempty"`
}

// SessionView is the state of a session as the command `status` shows it.
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
	// AnswerArtifact is the artifact with the full answer when it is too large to be shown.
	AnswerArtifact string `json:"answer_artifact,omitempty"`
	// Output is the result data of a session that is a single call without a model; it is set once the session has ended. OutputArtifact is
	// the artifact with the whole result when it is too large to be shown.
	Output         json.RawMessage `json:"output,omitempty"`
	OutputArtifact string          `json:"output_artifact,omitempty"`
	Reason         string          `json:"reason,omitempty"`
	Error          *Error          `json:"error,omitempty"`
	Counts         CallCounts      `json:"counts,omitempty"`
	Tokens         int64           `json:"tokens,omitempty"`
	Todo           json.RawMessage `json:"todo,omitempty"`
	// Paused lists the pauses that hold back the session's calls.
	Paused []Pause `json:"paused,omitempty"`
	// Held lists the policies that cannot be read; because of them, calls that have not begun are held back.
	Held []string `json:"held,omitempty"`
	// UpdatedAt is when the session last changed in the store.
	UpdatedAt time.Time `json:"-"`
}

// MayRetry reports whether jig may repeat a call that failed with err without asking a person. A writing call may be repeated if nothing
// happened (NotExecuted) or if the tool is idempotent; the repetition uses the same idempotency key and input. Other calls may always be
// repeated. Whether a repetition is useful is a separate question: see [Code.Retryable].
func MayRetry(writes, idempotent bool, err *Error) bool {
	return !writes || idempotent || err != nil && err.NotExecuted
}
