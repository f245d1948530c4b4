// Package identity holds the types that say who acted: the keys of tenants, the claims of tokens with the evidence that is stored, the lineage of
// credentials, and the rules for names of principals. The packages below it make and check what proves an identity: credential for API keys, logins and
// embed tokens, token for signed decisions, vouch for the statements of servers, and openid for identity providers.
package identity

import (
	"time"
)

// Algorithms of [Key].
const (
	AlgorithmEd25519 = "ed25519"
	AlgorithmHMAC    = "hmac-sha256"
	// AlgorithmWebAuthn is a passkey.
	AlgorithmWebAuthn = "webauthn"
)

// Key verifies tokens.
type Key struct {
	// ID is the id by which tokens name the key (kid).
	ID string `json:"id"`
	// Algorithm is ed25519, hmac-sha256 or webauthn.
	Algorithm string `json:"algorithm"`
	// Principal is the only principal for whom the key may sign; empty means that it may sign for everybody (e.g. the key of a portal).
	Principal string `json:"principal,omitempty"`
	// Maker is who made the credential with which the key was enrolled, for its principal; see [jig.Principal].
	Maker string `json:"maker,omitempty"`
	// Material is the 32 bytes of an Ed25519 public key, an HMAC secret of at least 32 bytes, or the public key of a passkey in DER form.
	Material []byte `json:"-"`
	// RelyingParty is the id of the relying party for which a passkey was made, e.g. jig.example.com. Origins are the addresses at which it may
	// be used, e.g. https://jig.example.com.
	RelyingParty string   `json:"rp_id,omitempty"`
	Origins      []string `json:"origins,omitempty"`
}

// Claim is the statement that a token proves: a principal takes one action on one subject.
type Claim struct {
	// Installation is the id of the installation, in claims that are not about a call; the digest of a call covers it.
	Installation string `json:"installation,omitempty"`

	Tenant    string `json:"tenant"`
	Principal string `json:"principal"`
	// Action is approve, deny, delegate, answer, reconcile, pause, resume, revoke or enrol.
	Action string `json:"action"`
	// SessionID and Call name the call that is decided. Subject names the target of any other action: a grant's id, tool:<name>, session:<id>,
	// tenant, key:<id>.
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
	// Maker is the principal who made the credential; see jig.Principal.
	Maker string `json:"maker,omitempty"`
	// Request identifies the request that carried the token. A token is valid once, and again only for a retry of the same request.
	Request string `json:"-"`
}
