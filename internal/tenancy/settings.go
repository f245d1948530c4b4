package tenancy

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/identity"
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

// Settings are the contents of a tenant's document of kind tenant, with the worker's defaults filled in.
type Settings struct {
	// Version is the document's content hash; empty when there is no document.
	Version string
	Signals SignalMode
	// Keys verify tokens.
	Keys []identity.Key
	// People are the principals that the tenant knows, with their groups and permissions.
	People []jig.Principal
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
	// Webhooks are the endpoints that receive notices about approvals.
	Webhooks []Webhook
}

// Owners approve changes to the tenant itself: its policies, people, keys and grants.
type Owners struct {
	Approvers jig.Approvers
	// Quorum is how many distinct owners must approve; 0 means 1.
	Quorum int
}

// ProofWanted reports whether decisions count only with a token.
func (s Settings) ProofWanted() bool { return s.Signals != SignalsTrusted }

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
