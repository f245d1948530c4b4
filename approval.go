package jig

import (
	"encoding/json"
	"fmt"
	"slices"
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
	// Terms are what the approval takes; those of the verdict ask.
	Terms Terms `json:"terms,omitzero"`
	// Base says that the tool's contract alone gave the verdict: no rule made it stricter.
	Base bool `json:"base,omitempty"`
	// Person says that no grant may answer: a rule that asks or denies cannot be evaluated.
	Person bool `json:"person,omitempty"`
	// Held says why nothing can be decided now: a policy cannot be read. The call neither runs nor asks until it can be; the
	// other fields say nothing then.
	Held string `json:"held,omitempty"`
}

// PolicyUnreadable is the policy version of calls that are held back because a policy cannot be read.
const PolicyUnreadable = "unreadable"

// PolicyState is a policy of a tenant as a worker has it.
type PolicyState struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Rules is how many rules it has; 0 when it cannot be read.
	Rules int `json:"rules"`
	// Error is why it cannot be read; while it is set, the tenant's calls are held back.
	Error string `json:"error,omitempty"`
}

// Unreadable says, on one line, that the policy cannot be read.
func (s PolicyState) Unreadable() string {
	return fmt.Sprintf("policy %s (version %s) cannot be read: %s", s.Name, ShortVersion(s.Version), s.Error)
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
	// Input is a Preview of at most PreviewBytes; Truncated says that there is more.
	Input     json.RawMessage `json:"input"`
	Truncated bool            `json:"truncated,omitempty"`
	Summary   string          `json:"summary"`
	Reasons   []string        `json:"reasons"`
	Digest    string          `json:"digest"`
	// RequestedBy is the principal on whose behalf the call is made, Agent the agent that made it.
	RequestedBy string `json:"requested_by,omitempty"`
	Agent       string `json:"agent,omitempty"`
	// ParentID is the session that started the one that asks, and ParentCall the call that did; both are empty without a parent.
	ParentID   string `json:"parent_session_id,omitempty"`
	ParentCall string `json:"parent_call,omitempty"`
	// Via is the call of the session that was looked at which waits for SessionID, its child or a child of that; empty for the
	// session's own calls.
	Via         string    `json:"via,omitempty"`
	RequestedAt time.Time `json:"requested_at"`
	// ExpiresAt is zero when it never does.
	ExpiresAt     time.Time `json:"expires_at"`
	PolicyVersion string    `json:"policy_version,omitempty"`
	// Terms are what it takes; nil for the plain ones: anybody, once.
	Terms *Terms `json:"terms,omitempty"`
	// Votes are the approvals so far, of an approval that takes several; Delegations whom people handed their word to.
	Votes       []Vote       `json:"votes,omitempty"`
	Delegations []Delegation `json:"delegations,omitempty"`
	// NextAt is when somebody is reminded, or further people may decide; zero when there is no such moment before it expires.
	NextAt time.Time `json:"next_at,omitzero"`
	// Question is what a person is asked, in a pending question.
	Question *Question `json:"question,omitempty"`
	// Grant is set on an approval that a standing one gave.
	Grant string `json:"grant,omitempty"`
}

// Consent is where the approval stands.
func (p Pending) Consent() Consent {
	c := Consent{RequestedBy: p.RequestedBy, RequestedAt: p.RequestedAt, Votes: p.Votes, Delegations: p.Delegations}
	if p.Terms != nil {
		c.Terms = *p.Terms
	}
	return c
}

// Proved is the approval without what was merely claimed: votes, and words that somebody handed on. So it stands where decisions
// must be proved, also when that was not so from the beginning.
func (p Pending) Proved() Pending {
	p.Votes = slices.DeleteFunc(slices.Clone(p.Votes), func(v Vote) bool { return v.Claimed })
	p.Delegations = slices.DeleteFunc(slices.Clone(p.Delegations), func(d Delegation) bool { return d.Claimed })
	return p
}

// Question is what an agent asks a person.
type Question struct {
	Text string `json:"question"`
	// Schema is what the answer must fit (JSON Schema); text when it is empty.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Options are answers to choose from.
	Options []json.RawMessage `json:"options,omitempty"`
}

// PreviewBytes bounds the arguments shown with an approval.
const PreviewBytes = 2048

// Answer is what a person says.
type Answer string

// The answers. Approve with changed input is an edit; delegate hands the decision to somebody else.
const (
	AnswerApprove  Answer = "approve"
	AnswerDeny     Answer = "deny"
	AnswerDelegate Answer = "delegate"
	AnswerExpire   Answer = "expire"
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
	// To is the principal that it is delegated to.
	To string `json:"to,omitempty"`
	// Grant asks for a standing approval of further calls, with the approval of this one.
	Grant *GrantRequest `json:"grant,omitempty"`
	// Token proves who decides; see the documentation of identity.
	Token string `json:"token,omitempty"`
}

// Reply answers a question.
type Reply struct {
	// Call is the call's id, e.g. "3.2".
	Call string `json:"call"`
	// Value is the answer; it must fit the question's schema.
	Value json.RawMessage `json:"value"`
	By    string          `json:"by,omitempty"`
	Note  string          `json:"note,omitempty"`
	Token string          `json:"token,omitempty"`
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
	Token  string          `json:"token,omitempty"`
}

// Ruled is what became of one decision or reconciliation.
type Ruled struct {
	Call string `json:"call"`
	// Outcome is accepted or refused.
	Outcome string `json:"outcome"`
	// Reason says why it was refused, in a sentence; of an accepted one, which approvals are missing.
	Reason string `json:"reason,omitempty"`
	// Status is where the call stands now, whoever decided it.
	Status CallStatus `json:"status,omitempty"`
	// Grant is the id of the standing approval that came along.
	Grant string `json:"grant,omitempty"`
}

// Outcomes of a decision.
const (
	DecisionAccepted = "accepted"
	DecisionRefused  = "refused"
)
