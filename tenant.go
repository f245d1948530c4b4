package jig

import (
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// SignalMode says what decisions of a tenant must prove.
type SignalMode string

// The modes. Trusted accepts what a signal claims and records it as claimed; signed wants a token with every decision; off
// wants a token and takes no raw signal at all, only updates.
const (
	SignalsTrusted SignalMode = "trusted"
	SignalsSigned  SignalMode = "signed"
	SignalsOff     SignalMode = "off"
)

// TenantSettings are what a tenant's document of kind tenant says, with the worker's defaults filled in.
type TenantSettings struct {
	// Version is the document's content hash; empty when there is none.
	Version string
	Signals SignalMode
	// Keys verify tokens.
	Keys []Key
	// People are those whom the tenant knows: their groups and permissions.
	People []Principal
	// Everybody are permissions that whoever a session acts for holds; none where the tenant has a document.
	Everybody []string
	// Reconcilers may say what became of an effect that is in doubt; nil: those who could have approved the call.
	Reconcilers *Approvers
	Grants      GrantCeiling
	// Owners approve the calls of operator tools; nil when the document names none.
	Owners *Owners
	// Operator is the principal of the key that the operator of the workers has in every tenant; empty when there is none. It
	// counts as one of the owners, so that a tenant that lost its keys can get new ones.
	Operator string
	// Webhooks are told of what happens to approvals.
	Webhooks []Webhook
}

// Owners are those who approve what changes the tenant itself: its policies, people, keys and grants.
type Owners struct {
	Approvers Approvers
	// Quorum is how many distinct owners must approve; 0 is 1.
	Quorum int
}

// ProofWanted reports whether decisions count only with a token.
func (s TenantSettings) ProofWanted() bool { return s.Signals != SignalsTrusted }

// Person returns what the tenant knows of a principal; one that it does not know is in no group and holds nothing.
func (s TenantSettings) Person(id string) Principal {
	for _, p := range s.People {
		if p.ID == id {
			return p
		}
	}
	return Principal{ID: id}
}

// Algorithms of keys.
const (
	AlgorithmEd25519 = "ed25519"
	AlgorithmHMAC    = "hmac-sha256"
)

// Key verifies tokens.
type Key struct {
	// ID is named by tokens (kid).
	ID string `json:"id"`
	// Algorithm is ed25519 or hmac-sha256.
	Algorithm string `json:"algorithm"`
	// Principal is the only one that the key speaks for; with an empty one it speaks for everybody (a portal's key).
	Principal string `json:"principal,omitempty"`
	// Material is the 32 bytes of an Ed25519 public key, or an HMAC secret of at least 32 bytes.
	Material []byte `json:"-"`
}

// Claim is what a token proves: that a principal does one thing to one subject.
type Claim struct {
	Tenant    string `json:"tenant"`
	Principal string `json:"principal"`
	// Action is approve, deny, delegate, answer, reconcile, pause, resume or revoke.
	Action string `json:"action"`
	// SessionID and Call name what is decided; Subject what else is acted on: a grant's id, tool:<name>, session:<id>, tenant.
	SessionID string `json:"session_id,omitempty"`
	Call      string `json:"call,omitempty"`
	Subject   string `json:"subject,omitempty"`
	// Digest is that of what was shown.
	Digest string `json:"digest,omitempty"`
	// Content is the SHA-256, in hex, of the RFC 8785 form of what the decision brings along (changed input, a value, whom it
	// is delegated to, a grant); empty when it brings nothing (package token makes it).
	Content string `json:"content,omitempty"`
}

// Evidence is what proved a claim; the zero value is a bare claim.
type Evidence struct {
	Key   string    `json:"key,omitempty"`
	Token string    `json:"token,omitempty"`
	Until time.Time `json:"until,omitzero"`
	// Request is what the token came with: it proves something once, and again only when the same request is tried again.
	Request string `json:"-"`
}

// Webhook is told of what happens to approvals, as Standard Webhooks.
type Webhook struct {
	URL string `json:"url"`
	// Secret signs the messages: at least 24 bytes.
	Secret []byte `json:"-"`
	// Events are the kinds that it is told of; all when empty.
	Events []NoticeKind `json:"events,omitempty"`
}

// Readable reports whether others on the network can read messages to the webhook: its address is http and not of this machine.
func (w Webhook) Readable() bool {
	u, err := url.Parse(w.URL)
	if err != nil || u.Scheme != "http" {
		return false
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return !ip.Unmap().IsLoopback()
	}
	return !strings.EqualFold(u.Hostname(), "localhost")
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
)

// NoticeKinds lists them.
func NoticeKinds() []NoticeKind {
	return []NoticeKind{NoticeRequested, NoticeReminder, NoticeEscalated, NoticeDelegated, NoticeDecided, NoticeExpired}
}

// Notice is word of an approval for people who are not looking. It is stored in the transaction that it tells of and sent
// at least once; ID stays the same over all attempts.
type Notice struct {
	ID     string     `json:"id"`
	Tenant string     `json:"tenant"`
	Kind   NoticeKind `json:"kind"`
	At     time.Time  `json:"at"`
	// Approval is what waits, or waited.
	Approval Pending `json:"approval"`
	// Approvers may decide from now on: of an escalation, whom it reached; of a delegation, to whom.
	Approvers *Approvers `json:"approvers,omitempty"`
	// Status, By and Reason say what became of it, when it was decided or expired.
	Status CallStatus `json:"status,omitempty"`
	By     string     `json:"by,omitempty"`
	Reason string     `json:"reason,omitempty"`
}
