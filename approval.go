package jig

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verdict is the policy's decision about a call.
type Verdict string

// The verdicts, from the mildest to the strictest. VerdictRefuse is for calls that never reach policy: unknown tools, invalid input,
// duplicates.
const (
	VerdictRun    Verdict = "run"
	VerdictAsk    Verdict = "ask"
	VerdictDeny   Verdict = "deny"
	VerdictRefuse Verdict = "refuse"
)

// PolicyState is the state of a tenant's policy on one worker.
type PolicyState struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Rules is the number of rules; 0 when the policy cannot be read.
	Rules int `json:"rules"`
	// Error says why the policy cannot be read. While it is set, the tenant's calls are held back.
	Error string `json:"error,omitempty"`
}

// Unreadable returns a one-line message saying that the policy cannot be read.
func (s PolicyState) Unreadable() string {
	return fmt.Sprintf("policy %s (version %s) cannot be read: %s", s.Name, ShortVersion(s.Version), s.Error)
}

// PendingKind says what a waiting call waits for.
type PendingKind string

// The kinds of pending calls.
const (
	PendingApproval  PendingKind = "approval"
	PendingReconcile PendingKind = "reconcile"
	PendingQuestion  PendingKind = "question"
)

// Pending is a call that waits for a person, as it is shown to them.
type Pending struct {
	Tenant    string      `json:"tenant,omitempty"`
	SessionID string      `json:"session_id,omitempty"`
	Kind      PendingKind `json:"kind"`
	Call      string      `json:"call"`
	Tool      string      `json:"tool"`
	// Input is an [Excerpt] of at most ExcerptBytes; Truncated reports that values were cut.
	Input     json.RawMessage `json:"input"`
	Truncated bool            `json:"truncated,omitempty"`
	Summary   string          `json:"summary"`
	// Preview describes what the call will change; nil if its tool has no previews. Lists shorten it.
	Preview *Preview `json:"preview,omitempty"`
	Reasons []string `json:"reasons"`
	Digest  string   `json:"digest"`
	// RequestedBy is the principal on whose behalf the call is made. Agent is the agent that made the call.
	RequestedBy string `json:"requested_by,omitempty"`
	Agent       string `json:"agent,omitempty"`
	// ParentID is the session that started this one, and ParentCall is the call that did so. Both are empty when there is no parent.
	ParentID   string `json:"parent_session_id,omitempty"`
	ParentCall string `json:"parent_call,omitempty"`
	// Via is the call, in the session being viewed, that waits for SessionID (its child session or a descendant). It is empty for the
	// session's own calls.
	Via         string    `json:"via,omitempty"`
	RequestedAt time.Time `json:"requested_at"`
	// ExpiresAt is zero when the approval never expires.
	ExpiresAt     time.Time `json:"expires_at"`
	PolicyVersion string    `json:"policy_version,omitempty"`
	// Terms are the conditions for the approval; nil means the default: one approval by anybody.
	Terms *Terms `json:"terms,omitempty"`
	// Votes are the approvals given so far when several are needed. Delegations say who handed their decision to whom.
	Votes       []Vote       `json:"votes,omitempty"`
	Delegations []Delegation `json:"delegations,omitempty"`
	// Askers are those on whose word the call rests, as they were known when it was admitted. Nobody is added later.
	Askers []Asker `json:"askers,omitempty"`
	// Edits are the changes that people made to the arguments, oldest first. Lists leave out large patches.
	Edits []Edit `json:"edits,omitempty"`
	// NextAt is the time of the next reminder or escalation; zero when there is no further one before the approval expires.
	NextAt time.Time `json:"next_at,omitzero"`
	// Question is the question to the person; it is set when Kind is [PendingQuestion].
	Question *Question `json:"question,omitempty"`
	// Attempt is the number of the attempt whose outcome is unknown, starting at 1; after a restore from a backup it counts from 1000. It
	// is set when Kind is [PendingReconcile].
	Attempt int `json:"attempt,omitempty"`
	// Grant is the id of the standing approval that approved the call; empty when people decide about it.
	Grant string `json:"grant,omitempty"`
	// Decided says how the call was decided; nil while it waits.
	Decided *Decided `json:"decided,omitempty"`
}

// Decided is a decision about a call that waited, and what became of the call.
type Decided struct {
	// Outcome is approved, granted (by a standing approval), denied, expired, withdrawn, answered or reconciled.
	Outcome string `json:"outcome"`
	// InPart reports an approval that did not suffice: others had to approve too.
	InPart bool      `json:"in_part,omitempty"`
	At     time.Time `json:"at"`
	// By is who decided; empty when nobody did. Claimed, Proof and Key are as in [Vote].
	By      string `json:"by,omitempty"`
	Claimed bool   `json:"claimed,omitempty"`
	Proof   Proof  `json:"proof,omitempty"`
	Key     string `json:"key,omitempty"`
	// Grant is the id of the standing approval with which the call was approved.
	Grant  string `json:"grant,omitempty"`
	Reason string `json:"reason,omitempty"`
	Note   string `json:"note,omitempty"`
	// Edited reports that the arguments were changed with the decision, and Patch is the change as JSON Patch (RFC 6902).
	Edited bool            `json:"edited,omitempty"`
	Patch  json.RawMessage `json:"patch,omitempty"`
	// Status is the state of the call now, Result the summary of its result, and Error its error. They are empty if the call's session was deleted.
	Status CallStatus `json:"status,omitempty"`
	Result string     `json:"result,omitempty"`
	Error  *Error     `json:"error,omitempty"`
}

// Edit is a change that a person made to the arguments of a call that waits.
type Edit struct {
	By      string    `json:"by"`
	Claimed bool      `json:"claimed,omitempty"`
	At      time.Time `json:"at"`
	Note    string    `json:"note,omitempty"`
	// Patch leads from the arguments before to those after, as JSON Patch (RFC 6902). Truncated reports that it is left out because it has more
	// than ExcerptBytes.
	Patch     json.RawMessage `json:"patch,omitempty"`
	Truncated bool            `json:"truncated,omitempty"`
}

// Question is a question that an agent asks a person.
type Question struct {
	Text string `json:"question"`
	// Schema is the JSON Schema that the answer must fit; empty means text.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Options are answers to choose from.
	Options []json.RawMessage `json:"options,omitempty"`
}

// ChangedBy begins a reason of a [Pending] that says what a person changed in the arguments, e.g. "changed by ana: cents: 120000 → 100000". UndoOf
// begins one that says which call is undone, and Because what follows in it: "undoes 1.1/reserve, because: the shop is closed".
const (
	ChangedBy = "changed by "
	UndoOf    = "undoes "
	Because   = ", because: "
)

// Changes returns the reasons that say what a call undoes and what people changed in the arguments. They come before all others, the earliest first.
func Changes(reasons []string) []string {
	n := 0
	for n < len(reasons) && (strings.HasPrefix(reasons[n], ChangedBy) || n == 0 && strings.HasPrefix(reasons[n], UndoOf)) {
		n++
	}
	return slices.Clone(reasons[:n])
}

// ExcerptBytes bounds the arguments shown with an approval, in bytes.
const ExcerptBytes = 2048

// Answer is a person's answer to an approval.
type Answer string

// The answers. Approving with changed input is an edit; delegate hands the decision to somebody else.
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
	// Digest, when given, must match the digest of the waiting call.
	Digest string `json:"digest,omitempty"`
	// Input, when given, replaces the arguments. It is validated, and policy judges the call again.
	Input json.RawMessage `json:"input,omitempty"`
	Note  string          `json:"note,omitempty"`
	// Reason is shown to the model when the answer is deny.
	Reason string `json:"reason,omitempty"`
	// To is the principal to whom the decision is delegated. Undo takes a delegation back that counts for no vote yet.
	To   string `json:"to,omitempty"`
	Undo bool   `json:"undo,omitempty"`
	// Grant asks for a standing approval of further calls, in addition to approving this one.
	Grant *GrantRequest `json:"grant,omitempty"`
	// GrantID names a standing approval that covers the call. The people who gave it approve the call, which uses it once.
	GrantID string `json:"grant_id,omitempty"`
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

// ReconcileOutcome says how a person settles a call whose outcome is unknown.
type ReconcileOutcome string

// The outcomes.
const (
	OutcomeHappened    ReconcileOutcome = "happened"
	OutcomeNotHappened ReconcileOutcome = "not_happened"
	OutcomeGiveUp      ReconcileOutcome = "give_up"
)

// Reconciliation settles a call whose outcome is unknown.
type Reconciliation struct {
	Call    string           `json:"call"`
	Outcome ReconcileOutcome `json:"outcome"`
	// Attempt is the attempt that the person makes a statement about, as in [Pending]; 0 means the first. A statement about any attempt but
	// the one in doubt is refused, because it says nothing about that one.
	Attempt int `json:"attempt,omitempty"`
	// Result is the effect's return value, if the effect happened: the Data of a [ToolResult].
	Result json.RawMessage `json:"result,omitempty"`
	By     string          `json:"by,omitempty"`
	Note   string          `json:"note,omitempty"`
	Token  string          `json:"token,omitempty"`
}

// Ruled is the result of one decision or reconciliation.
type Ruled struct {
	Call string `json:"call"`
	// Outcome is accepted or refused.
	Outcome string `json:"outcome"`
	// Reason says in one sentence why the decision was refused. If it was accepted, Reason lists the approvals that are still missing.
	Reason string `json:"reason,omitempty"`
	// Template is Reason with the values in it set apart, as in an [Error]; empty if it has none.
	Template string `json:"template,omitempty" hidden:"true"`
	// Code says why the decision was refused: CONFLICT, or NOT_PERMITTED for somebody who is not entitled, EXPIRED, or NOT_FOUND if there is no such
	// call.
	Code Code `json:"code,omitempty"`
	// Status is the state of the call now, no matter who decided it.
	Status CallStatus `json:"status,omitempty"`
	// Grant is the id of the standing approval that was created with the decision, or that approved the call.
	Grant string `json:"grant,omitempty"`
}

// Outcomes of a decision.
const (
	DecisionAccepted = "accepted"
	DecisionRefused  = "refused"
)

// PendingFilter narrows a list of waiting calls. Empty fields do not filter.
type PendingFilter struct {
	// Tool is the name of a tool, or category.* for all tools of a category.
	Tool        string      `json:"tool,omitempty"`
	Kind        PendingKind `json:"kind,omitempty"`
	SessionID   string      `json:"session_id,omitempty"`
	Agent       string      `json:"agent,omitempty"`
	RequestedBy string      `json:"requested_by,omitempty"`
	// For keeps calls that this principal may decide and has not decided yet. The engine applies it, because it knows the groups of people.
	For string `json:"for,omitempty"`
	// Before and After bound the time of the request, exclusively: older than Before, newer than After.
	Before time.Time `json:"before,omitzero"`
	After  time.Time `json:"after,omitzero"`
}

// Preview describes what a call will change, for the people who decide about it. The call's tool computes it before they are asked, and
// again before the call runs; see tools.WithPreview. It is part of the call's digest.
type Preview struct {
	// Title says in one line what will happen.
	Title string `json:"title,omitempty"`
	// Changes lists what will change: each entry is a line, or a heading with a diff below it.
	Changes []string `json:"changes,omitempty"`
	// Markdown says more. It is shown as text: no program follows its links or loads its images.
	Markdown string `json:"markdown,omitempty"`
	// Precondition names the state that the preview was computed from, such as a version or an etag. The tool gets it as
	// [Invocation.Precondition] and promises to act only on exactly that state. A preview without it promises nothing about what
	// happens between the approval and the call.
	Precondition string `json:"precondition,omitempty"`
	// Missing says why there is no preview; the other fields are then empty.
	Missing string `json:"missing,omitempty"`
}

// Binding describes in one line what an approval of the previewed call promises.
func (p Preview) Binding() string {
	switch {
	case p.Missing != "":
		return "there is no preview of what the call will change: " + p.Missing
	case p.Precondition != "":
		return "exactly this happens, or nothing: the tool acts only on " + p.Precondition
	}
	return "this is computed again before the call runs, but the tool does not promise that nothing changes in between"
}

// NoticeKind says what a notice is about.
type NoticeKind string

// The kinds of notices.
const (
	NoticeRequested NoticeKind = "approval.requested"
	NoticeReminder  NoticeKind = "approval.reminder"
	NoticeEscalated NoticeKind = "approval.escalated"
	NoticeDelegated NoticeKind = "approval.delegated"
	NoticeDecided   NoticeKind = "approval.decided"
	NoticeExpired   NoticeKind = "approval.expired"
	NoticeWithdrawn NoticeKind = "approval.withdrawn"
)

// NoticeKinds lists the kinds of notices.
func NoticeKinds() []NoticeKind {
	return []NoticeKind{NoticeRequested, NoticeReminder, NoticeEscalated, NoticeDelegated, NoticeDecided, NoticeExpired, NoticeWithdrawn}
}

// Notice tells people about an approval while they are not looking. It is stored in the same transaction as the change that it reports, and
// sent at least once; ID stays the same across all attempts.
type Notice struct {
	ID     string     `json:"id"`
	Tenant string     `json:"tenant"`
	Kind   NoticeKind `json:"kind"`
	At     time.Time  `json:"at"`
	// Approval is the approval that waits or waited. Policy versions are as people see them.
	Approval Pending `json:"approval"`
	// URL is the address of the approval at the server; empty if the worker does not know the server's address.
	URL string `json:"url,omitempty"`
	// Approvers may decide from now on: the people whom an escalation added, or the delegate. If an approval was withdrawn, they are those who
	// had approved.
	Approvers *Approvers `json:"approvers,omitempty"`
	// Status, By and Reason describe the outcome, once it was decided or has expired.
	Status CallStatus `json:"status,omitempty"`
	By     string     `json:"by,omitempty"`
	Reason string     `json:"reason,omitempty"`
	// Proof says how the identity of By was proved. Key is as in [Vote].
	Proof Proof  `json:"proof,omitempty"`
	Key   string `json:"key,omitempty"`
}
