package token

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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
		return jig.Errorf(jig.CodeInvalidInput, "%s", jig.Known(message)).WithField(field).WithHint(hint)
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

// MinSecretBytes is the minimum length of an HMAC secret: that of the hash (RFC 7518, section 3.2).
const MinSecretBytes = 32

// pemType is the PEM type of a PKCS#8 key (RFC 7468, section 10).
const pemType = "PRIVATE KEY"

// Signer signs tokens. Its zero value cannot sign; use [ParsePrivateKey].
type Signer struct {
	id, principal string
	// Exactly one of the two is set.
	private ed25519.PrivateKey
	secret  []byte
}

// ID returns the key's id, which tokens name.
func (s Signer) ID() string { return s.id }

// Principal returns the only principal that the key signs for; "" means any.
func (s Signer) Principal() string { return s.principal }

// String returns the key's id, so that printing a signer does not print its secret.
func (s Signer) String() string { return "signer " + s.id }

// GoString returns the same as String.
func (s Signer) GoString() string { return s.String() }

// Key returns the key that verifies what the signer signs. For an HMAC signer it contains the secret itself.
func (s Signer) Key() identity.Key {
	if s.private == nil {
		return identity.Key{ID: s.id, Algorithm: identity.AlgorithmHMAC, Principal: s.principal, Material: s.secret}
	}
	return identity.Key{ID: s.id, Algorithm: identity.AlgorithmEd25519, Principal: s.principal, Material: publicOf(s.private)}
}

// NewKey makes an Ed25519 key. It returns the private key as PEM (PKCS#8, "PRIVATE KEY"), as OpenSSL writes it, and the 32 bytes of
// the public key in base64, as a tenant's document stores it.
func NewKey() (private []byte, public string, err error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, "", jig.Errorf(jig.CodeInternal, "make a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		return nil, "", jig.Errorf(jig.CodeInternal, "encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), base64.StdEncoding.EncodeToString(pub), nil
}

// maxNameInID keeps a key's id, including its hash, within the 64 characters that documents allow.
const maxNameInID = 48

// KeyID returns the default id of a principal's key: the principal, "-", and the first 8 hex digits of the SHA-256 of the public
// key, e.g. "ana-3ac5c550". Characters that an id cannot contain become "-", and a long name is cut.
func KeyID(principal string, public []byte) string {
	name := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._:-", r)) {
			return r
		}
		return '-'
	}, principal)
	name = strings.Trim(name, "._:-")
	if name == "" {
		name = "key"
	}
	sum := sha256.Sum256(public)
	return name[:min(len(name), maxNameInID)] + "-" + hex.EncodeToString(sum[:4])
}

// ParsePrivateKey parses an Ed25519 key in PEM (PKCS#8); text around the block is ignored. An empty kid means [KeyID]. With an empty
// principal, the key signs for anybody. Errors are INVALID_INPUT and contain no part of the key.
func ParsePrivateKey(text []byte, kid, principal string) (Signer, error) {
	const hint = "make one with `jig key new`, or with `openssl genpkey -algorithm ed25519`"
	refuse := func(message string) (Signer, error) {
		return Signer{}, jig.Errorf(jig.CodeInvalidInput, "%s", jig.Known(message)).WithField("key").WithHint(hint)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return refuse("this is not a key in PEM")
	}
	if block.Type != pemType {
		return refuse("this PEM is not a PRIVATE KEY (PKCS#8, not encrypted)")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return refuse("the private key is damaged, or of an unknown kind")
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return refuse("the private key is not an Ed25519 key")
	}
	if kid == "" {
		kid = KeyID(principal, publicOf(private))
	}
	return Signer{id: kid, principal: principal, private: private}, nil
}

func publicOf(private ed25519.PrivateKey) []byte {
	return bytes.Clone(private[ed25519.SeedSize:]) // RFC 8032: the seed, then the public key
}
