package token

import (
	"crypto/rand"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/strictjson"
)

// Lifetimes of tokens, and the tolerated difference between clocks.
const (
	DefaultLifetime = 5 * time.Minute
	MaxLifetime     = 15 * time.Minute
	Leeway          = 30 * time.Second
)

// MaxBytes is the maximum length of a token.
const MaxBytes = 4 << 10

// Audience keeps tokens that were made for another service from being accepted here.
const Audience = "jig"

// payload holds a token's claims.
type payload struct {
	jwt.RegisteredClaims
	// Installation is set in tokens that are not about a call.
	Installation string `json:"installation,omitempty"`

	Tenant  string `json:"tenant"`
	Action  string `json:"action"`
	Session string `json:"session,omitempty"`
	Call    string `json:"call,omitempty"`
	About   string `json:"subject,omitempty"` // not "sub", which holds the principal
	Digest  string `json:"digest,omitempty"`
	Content string `json:"content,omitempty"`
}

// UnmarshalJSON implements [json.Unmarshaler]. It refuses what two readers might understand differently.
func (p *payload) UnmarshalJSON(text []byte) error {
	type plain payload
	if strictjson.Unmarshal(text, (*plain)(p)) != nil {
		return refusal("the token's claims cannot be read", "give each claim once, in its own case, or sign with `jig token`")
	}
	return nil
}

func (p payload) claim() identity.Claim {
	return identity.Claim{
		Installation: p.Installation, Tenant: p.Tenant, Principal: p.Subject, Action: p.Action, SessionID: p.Session, Call: p.Call, Subject: p.About,
		Digest: p.Digest, Content: p.Content,
	}
}

// method returns the only method that a key may sign with, or nil for an unknown algorithm.
func method(algorithm string) jwt.SigningMethod {
	switch algorithm {
	case identity.AlgorithmEd25519:
		return jwt.SigningMethodEdDSA
	case identity.AlgorithmHMAC:
		return jwt.SigningMethodHS256
	}
	return nil
}

// Sign makes a token that proves the claim from now on for lifetime ([DefaultLifetime] if it is zero). The token is signed with EdDSA or
// HS256, depending on the key. A claim without a principal gets the key's principal. The error is INVALID_INPUT for a claim that no
// token can prove, and NOT_PERMITTED for a principal that the key does not sign for.
func Sign(claim identity.Claim, key Signer, now time.Time, lifetime time.Duration) (string, error) {
	if lifetime == 0 {
		lifetime = DefaultLifetime
	}
	if claim.Principal == "" {
		claim.Principal = key.principal
	}
	if err := signable(claim, key, lifetime); err != nil {
		return "", err
	}
	now = now.Truncate(time.Second)
	t := jwt.NewWithClaims(method(key.Key().Algorithm), payload{
		RegisteredClaims: jwt.RegisteredClaims{
			Subject: claim.Principal, Audience: jwt.ClaimStrings{Audience}, ID: rand.Text(),
			IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(lifetime)),
		},
		Installation: claim.Installation, Tenant: claim.Tenant, Action: claim.Action, Session: claim.SessionID, Call: claim.Call, About: claim.Subject,
		Digest: claim.Digest, Content: claim.Content,
	})
	t.Header["kid"] = key.id
	var secret any = key.secret
	if key.private != nil {
		secret = key.private
	}
	text, err := t.SignedString(secret)
	if err != nil {
		return "", jig.Errorf(jig.CodeInternal, "sign a token: %w", err)
	}
	if len(text) > MaxBytes {
		return "", jig.Errorf(jig.CodeInvalidInput, "the token would have %d bytes; at most %d are allowed", len(text), MaxBytes).
			WithField("claim").WithHint("shorten the names in it")
	}
	return text, nil
}

func signable(claim identity.Claim, key Signer, lifetime time.Duration) error {
	refuse := func(field, message, hint string) error {
		return jig.Errorf(jig.CodeInvalidInput, "%s", message).WithField(field).WithHint(hint)
	}
	switch {
	case key.id == "" || key.private == nil && key.secret == nil:
		return refuse("key", "there is no key to sign with", "make one with `jig key new`")
	case lifetime < time.Second || lifetime > MaxLifetime:
		return refuse("lifetime", "a token cannot be valid for "+lifetime.String(), "use 1s to "+MaxLifetime.String())
	case claim.Principal == "":
		return refuse("principal", "the token does not name who decides", "name a principal; the key speaks for everybody")
	case key.principal != "" && claim.Principal != key.principal:
		return jig.Errorf(jig.CodeNotPermitted, "the key %s signs for %s, not for %s", key.id, key.principal, claim.Principal).
			WithField("principal").WithHint("sign with a key of " + claim.Principal)
	case claim.Tenant == "":
		return refuse("tenant", "the token does not say for which tenant it is", "name the tenant")
	case claim.Action == "":
		return refuse("action", "the token has no action", "name the action, e.g. approve")
	case claim.Subject == "" && (claim.SessionID == "" || claim.Call == ""):
		return refuse("call", "the token names neither a call nor a subject", "name a session and a call, or a subject")
	}
	return nil
}
