package jig

import (
	"encoding/json"
	"time"
)

// Verdict is what policy says of a call.
type Verdict string

// The verdicts, from the mildest to the strictest. Refuse is given to calls that never reach policy: unknown tools, invalid input, duplicates.
const (
	VerdictRun    Verdict = "run"
	VerdictAsk    Verdict = "ask"
	VerdictDeny   Verdict = "deny"
	VerdictRefuse Verdict = "refuse"
)

// Ruling is a verdict with its reasons, so that a person can be told why.
type Ruling struct {
	Verdict Verdict  `json:"verdict"`
	Reasons []string `json:"reasons"`
	// PolicyVersion is <name>@<content hash> of the policy that spoke; of the base rules alone, their hash.
	PolicyVersion string `json:"policy_version"`
	// Expires is how long the approval waits that the verdict asks for; the agent's setting when it is zero. In JSON:
	// nanoseconds.
	Expires time.Duration `json:"expires,omitempty"`
}

// PendingKind says what a waiting call waits for.
type PendingKind string

// The kinds of waiting.
const (
	PendingApproval  PendingKind = "approval"
	PendingReconcile PendingKind = "reconcile"
	PendingQuestion  PendingKind = "question"
)

// ApprovalStatus is where an approval stands.
type ApprovalStatus string

// The states of an approval. An approved one is consumed when its call begins.
const (
	ApprovalOpen     ApprovalStatus = "open"
	ApprovalApproved ApprovalStatus = "approved"
	ApprovalDenied   ApprovalStatus = "denied"
	ApprovalExpired  ApprovalStatus = "expired"
	ApprovalCanceled ApprovalStatus = "canceled"
	ApprovalConsumed ApprovalStatus = "consumed"
)

// Pending is a call that waits for a person, as it is shown to them.
type Pending struct {
	Tenant    string      `json:"tenant,omitempty"`
	SessionID string      `json:"session_id,omitempty"`
	Kind      PendingKind `json:"kind"`
	Call      string      `json:"call"`
	Tool      string      `json:"tool"`
	// Input is a preview of at most PreviewBytes; Truncated says that there is more.
	Input     json.RawMessage `json:"input"`
	Truncated bool            `json:"truncated,omitempty"`
	Summary   string          `json:"summary"`
	Reasons   []string        `json:"reasons"`
	Digest    string          `json:"digest"`
	// RequestedBy is the principal on whose behalf the call is made.
	RequestedBy string    `json:"requested_by,omitempty"`
	RequestedAt time.Time `json:"requested_at"`
	ExpiresAt   time.Time `json:"expires_at"`
}

// PreviewBytes bounds the arguments shown with an approval.
const PreviewBytes = 2048

// Answer is what a person says.
type Answer string

// The answers. Edit is approve with changed input.
const (
	AnswerApprove Answer = "approve"
	AnswerDeny    Answer = "deny"
	AnswerExpire  Answer = "expire"
)

// Decision is a person's answer to one approval.
type Decision struct {
	// Call is the call's id, e.g. "3.2".
	Call string `json:"call"`
	// By is the principal who decides.
	By     string `json:"by,omitempty"`
	Answer Answer `json:"answer,omitempty"`
	// Digest, when given, must match what is waiting.
	Digest string `json:"digest,omitempty"`
	// Input, when given, replaces the arguments; it is validated and put through policy again.
	Input json.RawMessage `json:"input,omitempty"`
	Note  string          `json:"note,omitempty"`
	// Reason is told to the model when the answer is deny.
	Reason string `json:"reason,omitempty"`
}

// ReconcileOutcome is a person's word on an effect whose outcome is unknown.
type ReconcileOutcome string

// The outcomes.
const (
	OutcomeHappened    ReconcileOutcome = "happened"
	OutcomeNotHappened ReconcileOutcome = "not_happened"
	OutcomeGiveUp      ReconcileOutcome = "give_up"
)

// Reconciliation answers an unknown outcome.
type Reconciliation struct {
	Call    string           `json:"call"`
	Outcome ReconcileOutcome `json:"outcome"`
	// Result is what the effect gave back, when it happened; a ToolResult's data.
	Result json.RawMessage `json:"result,omitempty"`
	By     string          `json:"by,omitempty"`
	Note   string          `json:"note,omitempty"`
}

// Ruled is what became of one decision or reconciliation.
type Ruled struct {
	Call string `json:"call"`
	// Outcome is accepted or refused.
	Outcome string `json:"outcome"`
	// Reason says why it was refused, in a sentence.
	Reason string `json:"reason,omitempty"`
	// Status is where the call stands now, whoever decided it.
	Status CallStatus `json:"status,omitempty"`
}

// Outcomes of a decision.
const (
	DecisionAccepted = "accepted"
	DecisionRefused  = "refused"
)
