package tenancy

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/identity"
)

// SignalMode is the older way to say what decisions must prove; see [Settings.SetSignals].
type SignalMode string

// The modes. Trusted accepts the identity that a signal claims and records it as claimed. Signed requires a token with every decision, which
// may be of a portal's key. Off requires one of a person's own key and accepts only updates, no raw signals.
const (
	SignalsTrusted SignalMode = "trusted"
	SignalsSigned  SignalMode = "signed"
	SignalsOff     SignalMode = "off"
)

// Settings are the contents of a tenant's document of kind tenant, with the worker's defaults filled in.
type Settings struct {
	// Version is the document's content hash; empty when there is no document.
	Version string
	// Proof is the weakest proof with which decisions count.
	Proof jig.Proof
	// NoSignals refuses decisions that come as raw signals.
	NoSignals bool
	// SharedKeys lets keys that belong to no single principal, and secrets, prove as much as a person's own key.
	SharedKeys bool
	// Starts is the weakest proof with which sessions start, messages count and clients read: claimed or vouched.
	Starts jig.Proof
	// Keys verify tokens.
	Keys []identity.Key
	// People are the principals that the tenant knows, with their groups and permissions, including those of their roles.
	People []jig.Principal
	// Disabled lists the principals that must not act.
	Disabled []string
	// Directory lists everybody and every key, those that are disabled included.
	Directory Directory
	Roles     []Role
	// Logins are the people of the document by how identity providers name them, and LoginGroups maps groups of identity providers.
	Logins      map[Login]string
	LoginGroups []LoginGroup
	// Everybody lists the permissions held by every principal for whom a session acts; empty if the tenant has a document.
	Everybody []string
	// Reconcilers may settle calls whose outcome is unknown; nil means the people who could have approved the call.
	Reconcilers *jig.Approvers
	Grants      approval.GrantCeiling
	// Owners approve calls of operator tools; nil when the document names none.
	Owners *Owners
	// Operator is the principal of the key that the operator of the workers has in every tenant; empty when there is none. It counts as an
	// owner, so that a tenant that lost its keys can get new ones.
	Operator string
	// Webhooks are the endpoints that receive notices about approvals, and Messages the mailboxes and chats that are told in words.
	Webhooks []Webhook
	Messages []Message
}

// Message says who is told about approvals in words: either mailboxes or a chat.
type Message struct {
	// Mail lists the addresses of the mailboxes.
	Mail []string
	// ChatEnv is the environment variable with the address of a chat's incoming webhook, and ChatURL its value on this worker.
	ChatEnv, ChatURL string
	// Events are the kinds of notices that are sent; empty means all.
	Events []jig.NoticeKind
}

// Owners approve changes to the tenant itself: its policies, people, keys and grants.
type Owners struct {
	Approvers jig.Approvers
	// Quorum is how many distinct owners must approve; 0 means 1.
	Quorum int
}

// SetSignals sets what a mode demands of decisions.
func (s *Settings) SetSignals(m SignalMode) {
	s.Proof, s.NoSignals, s.SharedKeys = jig.ProofKey, m == SignalsOff, m == SignalsSigned
	if m == SignalsTrusted {
		s.Proof = jig.ProofClaimed
	}
}

// ProofWanted reports whether decisions count only with a proof.
func (s Settings) ProofWanted() bool { return !jig.ProofClaimed.AtLeast(s.Proof) }

// Vouched reports whether sessions start, messages count and clients read only with a server's statement about who asks.
func (s Settings) Vouched() bool { return !jig.ProofClaimed.AtLeast(s.Starts) }

// Key returns the key with an id; the zero value if there is none.
func (s Settings) Key(id string) identity.Key {
	for _, k := range s.Keys {
		if k.ID == id {
			return k
		}
	}
	return identity.Key{}
}

// ProofOf returns what a signature of a key proves.
func (s Settings) ProofOf(k identity.Key) jig.Proof {
	switch {
	case k.Algorithm == identity.AlgorithmWebAuthn:
		return jig.ProofPasskey
	case s.SharedKeys || k.Algorithm == identity.AlgorithmEd25519 && k.Principal != "":
		return jig.ProofKey
	}
	return jig.ProofVouched
}

// IsDisabled reports whether a principal must not act.
func (s Settings) IsDisabled(id string) bool { return slices.Contains(s.Disabled, id) }

// Person returns the principal as the tenant knows it. An unknown principal has no groups and no permissions.
func (s Settings) Person(id string) jig.Principal {
	for _, p := range s.People {
		if p.ID == id {
			return p
		}
	}
	return jig.Principal{ID: id}
}

// Webhook is an endpoint that receives notices about approvals, in the format of Standard Webhooks.
type Webhook struct {
	URL string `json:"url"`
	// Secret signs the messages; at least 24 bytes.
	Secret []byte `json:"-"`
	// Events are the kinds of notices that are sent; empty means all.
	Events []jig.NoticeKind `json:"events,omitempty"`
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
