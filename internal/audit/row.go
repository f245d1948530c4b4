package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
)

// Kind says what an audit row is about.
type Kind string

// The kinds of audit rows.
const (
	AuditApproved   Kind = "approved"
	AuditVoted      Kind = "voted"
	AuditDenied     Kind = "denied"
	AuditEdited     Kind = "edited"
	AuditDelegated  Kind = "delegated"
	AuditRefused    Kind = "refused"
	AuditExpired    Kind = "expired"
	AuditWithdrawn  Kind = "withdrawn"
	AuditAnswered   Kind = "answered"
	AuditReconciled Kind = "reconciled"
	AuditInDoubt    Kind = "in_doubt"
	AuditGranted    Kind = "granted"
	AuditGrantUsed  Kind = "grant_used"
	AuditRevoked    Kind = "revoked"
	AuditPaused     Kind = "paused"
	AuditResumed    Kind = "resumed"
	AuditDocument   Kind = "document"
	// AuditSchedule is something that somebody did to a schedule. Reason says what, and Subject is schedule:<name>.
	AuditSchedule Kind = "schedule"
	AuditBundle   Kind = "bundle"
	// AuditViolation is an attempt to reach another tenant's data or another principal's result. Reason is [jig.ReasonIDORViolation] and
	// Subject is the id.
	AuditViolation Kind = "violation"
	// AuditCanceled and AuditTerminated are ends of sessions and compositions that jig cannot refuse: by a request to cancel the workflow, or
	// without a chance for the workflow to end by itself, because it was terminated or deleted, or because its time was over.
	AuditCanceled   Kind = "canceled"
	AuditTerminated Kind = "terminated"
	// AuditReset is a reset of a session's workflow. Subject is the id of the new run.
	AuditReset Kind = "reset"
)

// Entry is the content of an audit row: who decided what, when, and with what proof.
type Entry struct {
	Kind   Kind      `json:"kind"`
	Tenant string    `json:"tenant"`
	At     time.Time `json:"at"`
	// By is the principal who acted; empty when an approval expired because nobody acted.
	By string `json:"by,omitempty"`
	// Claimed reports that the identity of By was not proved; otherwise Proof says how it was, and Evidence is the proof.
	Claimed   bool               `json:"claimed,omitempty"`
	Proof     jig.Proof          `json:"proof,omitempty"`
	Evidence  *identity.Evidence `json:"evidence,omitempty"`
	SessionID string             `json:"session_id,omitempty"`
	Call      string             `json:"call,omitempty"`
	Tool      string             `json:"tool,omitempty"`
	// Digest is the digest of the call as it was shown; ApprovedDigest is the digest of the call that may run. They differ when the input was
	// changed.
	Digest         string `json:"digest,omitempty"`
	ApprovedDigest string `json:"approved_digest,omitempty"`
	PolicyVersion  string `json:"policy_version,omitempty"`
	// Shown holds the parts of the call that the person saw, as in the pending approval.
	Shown *Shown `json:"shown,omitempty"`
	// Patch is the change to the arguments, as JSON Patch (RFC 6902).
	Patch json.RawMessage `json:"patch,omitempty"`
	// Subject is anything else that was acted on: a grant, a pause, a document.
	Subject string `json:"subject,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Note    string `json:"note,omitempty"`
	// Status is the state of the call after the action.
	Status jig.CallStatus `json:"status,omitempty"`
}

// Outcome says how an entry decided a call that waited for a person.
type Outcome string

// The outcomes. A standing approval has granted a call.
const (
	OutcomeApproved   Outcome = "approved"
	OutcomeGranted    Outcome = "granted"
	OutcomeDenied     Outcome = "denied"
	OutcomeExpired    Outcome = "expired"
	OutcomeWithdrawn  Outcome = "withdrawn"
	OutcomeAnswered   Outcome = "answered"
	OutcomeReconciled Outcome = "reconciled"
)

// Outcomes lists the outcomes.
func Outcomes() []Outcome {
	return []Outcome{OutcomeApproved, OutcomeGranted, OutcomeDenied, OutcomeExpired, OutcomeWithdrawn, OutcomeAnswered, OutcomeReconciled}
}

// Outcome returns how the entry decided a call; "" if it did not. inPart reports an approval that does not suffice: others must approve too.
func (e Entry) Outcome() (outcome Outcome, inPart bool) {
	switch e.Kind { //nolint:exhaustive // the others decide nothing
	case AuditApproved:
		return OutcomeApproved, false
	case AuditVoted, AuditEdited:
		return OutcomeApproved, e.Status == jig.CallWaiting
	case AuditGrantUsed:
		return OutcomeGranted, false
	case AuditDenied:
		return OutcomeDenied, false
	case AuditExpired:
		return OutcomeExpired, false
	case AuditWithdrawn:
		return OutcomeWithdrawn, false
	case AuditAnswered:
		return OutcomeAnswered, false
	case AuditReconciled:
		return OutcomeReconciled, false
	}
	return "", false
}

// By returns an entry that says who acted, with what proof, and that person's note. The caller fills in the rest.
func By(who jig.Principal, evidence *identity.Evidence, note string) Entry {
	return Entry{By: who.ID, Claimed: who.Claimed, Proof: who.Proof, Evidence: evidence, Note: note}
}

// Shown holds the parts of a call that a person saw. Input is an [jig.Excerpt] of at most ExcerptBytes.
type Shown struct {
	Kind        jig.PendingKind `json:"kind,omitempty"`
	Agent       string          `json:"agent,omitempty"`
	RequestedBy string          `json:"requested_by,omitempty"`
	RequestedAt time.Time       `json:"requested_at,omitzero"`

	Summary   string          `json:"summary,omitempty"`
	Preview   *jig.Preview    `json:"preview,omitempty"`
	Reasons   []string        `json:"reasons,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Truncated bool            `json:"truncated,omitempty"`
}

// ShownOf returns the parts of a call that a person sees.
func ShownOf(p jig.Pending) *Shown {
	return &Shown{
		Kind: p.Kind, Agent: p.Agent, RequestedBy: p.RequestedBy, RequestedAt: p.RequestedAt, Summary: p.Summary, Preview: p.Preview, Reasons: p.Reasons,
		Input: p.Input, Truncated: p.Truncated,
	}
}

// Row is one link in a tenant's hash chain: row N follows row N-1.
type Row struct {
	N int64 `json:"n"`
	// Prev and Hash are SHA-256, in hex.
	Prev string `json:"prev"`
	Hash string `json:"hash"`
	// Entry is an [Entry] in JSON, byte for byte as it was hashed.
	Entry string `json:"entry"`
}

// Genesis returns the hash that precedes the first row of a tenant's chain.
func Genesis(tenant string) [sha256.Size]byte {
	return sha256.Sum256([]byte("jig audit " + tenant))
}

// Hash returns the hash of a row: SHA-256 over the previous hash, the row's number as eight bytes (big endian), and the entry.
func Hash(prev [sha256.Size]byte, n int64, entry string) [sha256.Size]byte {
	b := make([]byte, 0, sha256.Size+8+len(entry))
	b = append(b, prev[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(n)) //nolint:gosec // row numbers start at 1
	return sha256.Sum256(append(b, entry...))
}
