package jig

import (
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// SignalMode says what proof a tenant requires for decisions.
type SignalMode string

// The modes. Trusted accepts the identity that a signal claims and records it as claimed. Signed requires a token with every decision. Off
// requires a token and accepts only updates, no raw signals.
const (
	SignalsTrusted SignalMode = "trusted"
	SignalsSigned  SignalMode = "signed"
	SignalsOff     SignalMode = "off"
)

// TenantSettings are the contents of a tenant's document of kind tenant, with the worker's defaults filled in.
type TenantSettings struct {
	// Version is the document's content hash; empty when there is no document.
	Version string
	Signals SignalMode
	// Keys verify tokens.
	Keys []Key
	// People are the principals that the tenant knows, with their groups and permissions.
	People []Principal
	// Everybody lists the permissions held by every principal for whom a session acts; empty if the tenant has a document.
	Everybody []string
	// Reconcilers may settle calls whose outcome is unknown; nil means the people who could have approved the call.
	Reconcilers *Approvers
	Grants      GrantCeiling
	// Owners approve calls of operator tools; nil when the document names none.
	Owners *Owners
	// Operator is the principal of the key that the operator of the workers has in every tenant; empty when there is none. It counts as an
	// owner, so that a tenant that lost its keys can get new ones.
	Operator string
	// Webhooks are the endpoints that receive notices about approvals.
	Webhooks []Webhook
}

// Owners approve changes to the tenant itself: its policies, people, keys and grants.
type Owners struct {
	Approvers Approvers
	// Quorum is how many distinct owners must approve; 0 means 1.
	Quorum int
}

// ProofWanted reports whether decisions count only with a token.
func (s TenantSettings) ProofWanted() bool { return s.Signals != SignalsTrusted }

// Person returns the principal as the tenant knows it. An unknown principal has no groups and no permissions.
func (s TenantSettings) Person(id string) Principal {
	for _, p := range s.People {
		if p.ID == id {
			return p
		}
	}
	return Principal{ID: id}
}

// Algorithms of [Key].
const (
	AlgorithmEd25519 = "ed25519"
	AlgorithmHMAC    = "hmac-sha256"
)

// Key verifies tokens.
type Key struct {
	// ID is the id by which tokens name the key (kid).
	ID string `json:"id"`
	// Algorithm is ed25519 or hmac-sha256.
	Algorithm string `json:"algorithm"`
	// Principal is the only principal for whom the key may sign; empty means that it may sign for everybody (e.g. the key of a portal).
	Principal string `json:"principal,omitempty"`
	// Material is the 32 bytes of an Ed25519 public key, or an HMAC secret of at least 32 bytes.
	Material []byte `json:"-"`
}

// Claim is the statement that a token proves: a principal takes one action on one subject.
type Claim struct {
	Tenant    string `json:"tenant"`
	Principal string `json:"principal"`
	// Action is approve, deny, delegate, answer, reconcile, pause, resume or revoke.
	Action string `json:"action"`
	// SessionID and Call name the call that is decided. Subject names the target of any other action: a grant's id, tool:<name>, session:<id>,
	// tenant.
	SessionID string `json:"session_id,omitempty"`
	Call      string `json:"call,omitempty"`
	Subject   string `json:"subject,omitempty"`
	// Digest is the digest of the call as it was shown.
	Digest string `json:"digest,omitempty"`
	// Content is the SHA-256, in hex, of the decision's content in RFC 8785 form (changed input, a value, a delegate, a grant); empty when the
	// decision has none of these. Package token computes it.
	Content string `json:"content,omitempty"`
}

// Evidence is the proof of a claim; the zero value means that nothing was proved.
type Evidence struct {
	Key   string    `json:"key,omitempty"`
	Token string    `json:"token,omitempty"`
	Until time.Time `json:"until,omitzero"`
	// Request identifies the request that carried the token. A token is valid once, and again only for a retry of the same request.
	Request string `json:"-"`
}

// Webhook is an endpoint that receives notices about approvals, in the format of Standard Webhooks.
type Webhook struct {
	URL string `json:"url"`
	// Secret signs the messages; at least 24 bytes.
	Secret []byte `json:"-"`
	// Events are the kinds of notices that are sent; empty means all.
	Events []NoticeKind `json:"events,omitempty"`
}

// Readable reports whether others on the network could read messages to the webhook: its URL uses http and is not on this machine.
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

// NoticeKinds lists the kinds of notices.
func NoticeKinds() []NoticeKind {
	return []NoticeKind{NoticeRequested, NoticeReminder, NoticeEscalated, NoticeDelegated, NoticeDecided, NoticeExpired}
}

// Notice tells people about an approval while they are not looking. It is stored in the same transaction as the change that it reports, and
// sent at least once; ID stays the same across all attempts.
type Notice struct {
	ID     string     `json:"id"`
	Tenant string     `json:"tenant"`
	Kind   NoticeKind `json:"kind"`
	At     time.Time  `json:"at"`
	// Approval is the approval that waits or waited.
	Approval Pending `json:"approval"`
	// Approvers may decide from now on: the people whom an escalation added, or the delegate.
	Approvers *Approvers `json:"approvers,omitempty"`
	// Status, By and Reason describe the outcome, once it was decided or has expired.
	Status CallStatus `json:"status,omitempty"`
	By     string     `json:"by,omitempty"`
	Reason string     `json:"reason,omitempty"`
}
