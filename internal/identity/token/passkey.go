package token

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/canonical"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/strictjson"
)

// passkeyPrefix begins the tokens of passkeys. The rest is the base64url form of an [Assertion] in JSON.
const passkeyPrefix = "passkey."

// Assertion is a passkey's signature of a decision (WebAuthn, level 3, section 7.2). The challenge is the SHA-256 of the claims in RFC 8785 form.
// The claims are those of any other token.
type Assertion struct {
	KeyID             string          `json:"kid"`
	Claims            json.RawMessage `json:"claims"`
	AuthenticatorData []byte          `json:"authenticator_data"`
	ClientData        []byte          `json:"client_data_json"`
	Signature         []byte          `json:"signature"`
}

// Token returns the token of an assertion.
func (a Assertion) Token() (string, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return "", jig.Errorf(jig.CodeInvalidInput, "encode an assertion: %w", err)
	}
	return passkeyPrefix + base64.RawURLEncoding.EncodeToString(text), nil
}

// Challenge returns the challenge for some claims in JSON.
func Challenge(claims []byte) ([]byte, error) {
	form, err := canonical.JSON(claims)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the claims are not JSON: %w", err)
	}
	sum := sha256.Sum256(form)
	return sum[:], nil
}

// Flags of the authenticator data.
const (
	userPresent  = 1 << 0
	userVerified = 1 << 2
	// leastAuthenticatorData is the size of a hash, the flags and the counter.
	leastAuthenticatorData = sha256.Size + 1 + 4
)

// clientData holds the data that the browser adds to a challenge.
type clientData struct {
	Type        string `json:"type"`
	Challenge   string `json:"challenge"`
	Origin      string `json:"origin"`
	CrossOrigin bool   `json:"crossOrigin"` //nolint:tagliatelle // the name is WebAuthn's
}

// parsePasskey returns the assertion in a token, with its claims; nothing is verified.
func parsePasskey(text string) (Assertion, payload, error) {
	var a Assertion
	var claims payload
	raw, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimPrefix(text, passkeyPrefix))
	if err != nil || strictjson.UnmarshalKnown(raw, &a) != nil || json.Unmarshal(a.Claims, &claims) != nil {
		return a, claims, refusal("the token of the passkey is damaged", "sign again")
	}
	return a, claims, nil
}

// verifyPasskey verifies the token of a passkey, and returns its claims and its key.
func verifyPasskey(text string, keys []identity.Key, now time.Time) (payload, identity.Key, error) {
	a, claims, err := parsePasskey(text)
	if err != nil {
		return payload{}, identity.Key{}, err
	}
	at := slices.IndexFunc(keys, func(k identity.Key) bool { return k.ID == a.KeyID && k.Algorithm == identity.AlgorithmWebAuthn })
	if at < 0 {
		return payload{}, identity.Key{}, refusal("the token's passkey is not one of the tenant's", "sign with a passkey that is enrolled for you")
	}
	key := keys[at]
	if err := a.check(key); err != nil {
		return payload{}, identity.Key{}, err
	}
	if err := jwt.NewValidator(
		jwt.WithAudience(Audience), jwt.WithExpirationRequired(), jwt.WithNotBeforeRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(Leeway),
		jwt.WithTimeFunc(func() time.Time { return now }),
	).Validate(claims); err != nil {
		return payload{}, identity.Key{}, explain(err)
	}
	return claims, key, nil
}

// check takes the steps by which a relying party verifies an assertion, except for the counter: a token counts only once, so a copy of the passkey
// would not be noticed by it.
func (a Assertion) check(key identity.Key) error {
	var client clientData
	challenge, err := Challenge(a.Claims)
	if err != nil || strictjson.Unmarshal(a.ClientData, &client) != nil {
		return refusal("the token of the passkey is damaged", "sign again")
	}
	relying := sha256.Sum256([]byte(key.RelyingParty))
	switch {
	case client.Type != "webauthn.get":
		return refusal("the passkey did not sign an assertion", "sign again")
	case client.Challenge != base64.RawURLEncoding.EncodeToString(challenge):
		return refusal("the passkey signed something else than the token's claims", "sign again")
	case client.CrossOrigin || !slices.Contains(key.Origins, client.Origin):
		return refusal("the passkey was used on a page that is not one of its own", "decide at an address that the key lists under origins")
	case len(a.AuthenticatorData) < leastAuthenticatorData || !bytes.Equal(a.AuthenticatorData[:sha256.Size], relying[:]):
		return refusal("the passkey belongs to another relying party", "sign with a passkey for "+key.RelyingParty)
	case a.AuthenticatorData[sha256.Size]&userPresent == 0:
		return refusal("nobody touched the passkey", "sign again, with user presence")
	case a.AuthenticatorData[sha256.Size]&userVerified == 0:
		return refusal("the passkey did not verify the person", "sign again, with userVerification: required")
	}
	hash := sha256.Sum256(a.ClientData)
	if !signed(key.Material, append(slices.Clone(a.AuthenticatorData), hash[:]...), a.Signature) {
		return refusal("the token is not signed with its passkey", "sign again")
	}
	return nil
}

// signed reports whether a signature of a message is by the holder of a public key, ES256 or EdDSA.
func signed(public, message, signature []byte) bool {
	parsed, err := PasskeyPublic(public)
	if err != nil {
		return false
	}
	switch key := parsed.(type) {
	case *ecdsa.PublicKey:
		hash := sha256.Sum256(message)
		return ecdsa.VerifyASN1(key, hash[:], signature)
	case ed25519.PublicKey:
		return ed25519.Verify(key, message, signature)
	}
	return false
}

// PasskeyPublic parses the public key of a passkey: the DER form of SubjectPublicKeyInfo, as getPublicKey() of a browser returns it. Keys for ES256
// (P-256) and EdDSA (Ed25519) are accepted. The error is INVALID_INPUT.
func PasskeyPublic(der []byte) (any, error) {
	refused := jig.Errorf(jig.CodeInvalidInput, "this is not the public key of a passkey for ES256 or EdDSA").WithField("public_key").
		WithHint("give what getPublicKey() of the browser returns, in base64")
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, refused
	}
	switch key := parsed.(type) {
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() {
			return nil, refused
		}
	case ed25519.PublicKey:
	default:
		return nil, refused
	}
	return parsed, nil
}
