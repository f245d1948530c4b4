package jig

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"
)

// AuditKind says what an audit row is about.
type AuditKind string

// The kinds of audit rows.
const (
	AuditApproved   AuditKind = "approved"
	AuditVoted      AuditKind = "voted"
	AuditDenied     AuditKind = "denied"
	AuditEdited     AuditKind = "edited"
	AuditDelegated  AuditKind = "delegated"
	AuditRefused    AuditKind = "refused"
	AuditExpired    AuditKind = "expired"
	AuditWithdrawn  AuditKind = "withdrawn"
	AuditAnswered   AuditKind = "answered"
	AuditReconciled AuditKind = "reconciled"
	AuditInDoubt    AuditKind = "in_doubt"
	AuditGranted    AuditKind = "granted"
	AuditGrantUsed  AuditKind = "grant_used"
	AuditRevoked    AuditKind = "revoked"
	AuditPaused     AuditKind = "paused"
	AuditResumed    AuditKind = "resumed"
	AuditDocument   AuditKind = "document"
	AuditBundle     AuditKind = "bundle"
	// AuditViolation is an attempt to reach what is another tenant's, or another principal's result; Reason is ReasonIDORViolation, Subject the id.
	AuditViolation AuditKind = "violation"
)

// AuditEntry is what an audit row says: who decided what, proved or claimed, on the strength of what, and when.
type AuditEntry struct {
	Kind   AuditKind `json:"kind"`
	Tenant string    `json:"tenant"`
	At     time.Time `json:"at"`
	// By is who acted; empty when time did (an expiry).
	By string `json:"by,omitempty"`
	// Claimed says that nobody proved who By is; Evidence is what did.
	Claimed   bool      `json:"claimed,omitempty"`
	Evidence  *Evidence `json:"evidence,omitempty"`
	SessionID string    `json:"session_id,omitempty"`
	Call      string    `json:"call,omitempty"`
	Tool      string    `json:"tool,omitempty"`
	// Digest is that of what was shown, ApprovedDigest that of what may run: they differ when the input was changed.
	Digest         string `json:"digest,omitempty"`
	ApprovedDigest string `json:"approved_digest,omitempty"`
	PolicyVersion  string `json:"policy_version,omitempty"`
	// Shown is what the person was shown: summary, reasons and arguments, as in the pending approval.
	Shown *Shown `json:"shown,omitempty"`
	// Patch is the change of the arguments, as JSON Patch (RFC 6902).
	Patch json.RawMessage `json:"patch,omitempty"`
	// Subject is what else was acted on: a grant, a pause, a document.
	Subject string `json:"subject,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Note    string `json:"note,omitempty"`
	// Status is where the call stood afterwards.
	Status CallStatus `json:"status,omitempty"`
}

// Shown is what a person saw of a call. Input is the preview of at most PreviewBytes.
type Shown struct {
	Summary   string          `json:"summary,omitempty"`
	Reasons   []string        `json:"reasons,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Truncated bool            `json:"truncated,omitempty"`
}

// AuditRow is a link of a tenant's chain: row N follows N-1.
type AuditRow struct {
	N int64 `json:"n"`
	// Prev and Hash are SHA-256, in hex.
	Prev string `json:"prev"`
	Hash string `json:"hash"`
	// Entry is an AuditEntry, to the byte as it was hashed.
	Entry string `json:"entry"`
}

// AuditGenesis is what the first row of a tenant's chain follows.
func AuditGenesis(tenant string) [sha256.Size]byte {
	return sha256.Sum256([]byte("jig audit " + tenant))
}

// AuditHash is the hash of a row: SHA-256 over the hash before it, its number as eight bytes (big endian), and the entry.
func AuditHash(prev [sha256.Size]byte, n int64, entry string) [sha256.Size]byte {
	b := make([]byte, 0, sha256.Size+8+len(entry))
	b = append(b, prev[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(n)) //nolint:gosec // counts from 1
	return sha256.Sum256(append(b, entry...))
}
