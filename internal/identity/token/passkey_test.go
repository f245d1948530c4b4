package token_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
)

// authenticator is a passkey in a browser.
type authenticator struct {
	key  identity.Key
	sign func(message []byte) []byte
}

func newPasskey(t *testing.T, algorithm string) authenticator {
	t.Helper()
	a := authenticator{key: identity.Key{
		ID: "ana-phone", Algorithm: identity.AlgorithmWebAuthn, Principal: "ana", RelyingParty: "jig.example.com", Origins: []string{"https://jig.example.com"},
	}}
	var public any
	switch algorithm {
	case "EdDSA":
		pub, private, err := ed25519.GenerateKey(rand.Reader)
		require.NoError(t, err)
		public, a.sign = pub, func(message []byte) []byte { return ed25519.Sign(private, message) }
	default:
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		public, a.sign = private.Public(), func(message []byte) []byte {
			hash := sha256.Sum256(message)
			signature, err := ecdsa.SignASN1(rand.Reader, private, hash[:])
			require.NoError(t, err)
			return signature
		}
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	a.key.Material = der
	return a
}

// client holds the data that a browser adds.
type client map[string]any

// asserts returns an assertion for some claims. change may change what the browser adds and the flags before they are signed.
func (a authenticator) asserts(t *testing.T, claims map[string]any, change func(client, *[]byte)) token.Assertion {
	t.Helper()
	text, err := json.Marshal(claims)
	require.NoError(t, err)
	challenge, err := token.Challenge(text)
	require.NoError(t, err)
	c := client{"type": "webauthn.get", "challenge": base64.RawURLEncoding.EncodeToString(challenge), "origin": "https://jig.example.com", "crossOrigin": false}
	relying := sha256.Sum256([]byte("jig.example.com"))
	data := append(relying[:], 0x05, 0, 0, 0, 7)
	if change != nil {
		change(c, &data)
	}
	clientData, err := json.Marshal(c)
	require.NoError(t, err)
	hash := sha256.Sum256(clientData)
	return token.Assertion{
		KeyID: a.key.ID, Claims: text, AuthenticatorData: data, ClientData: clientData, Signature: a.sign(append(append([]byte{}, data...), hash[:]...)),
	}
}

func tokenOf(t *testing.T, a token.Assertion) string {
	t.Helper()
	text, err := a.Token()
	require.NoError(t, err)
	return text
}

func TestPasskey_ProvesADecision(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"ES256", "EdDSA"} {
		a := newPasskey(t, algorithm)
		text := tokenOf(t, a.asserts(t, payload(nil), nil))
		who, evidence, err := token.Verify(text, []identity.Key{a.key}, claim(), monday)
		require.NoError(t, err, algorithm)
		require.Equal(t, "ana", who)
		require.Equal(t, "ana-phone", evidence.Key)
		require.NotEmpty(t, evidence.Token)
		other := claim()
		other.Digest = "d2"
		refused(t, text, []identity.Key{a.key}, other, monday, "another digest")
		refused(t, text, []identity.Key{a.key}, claim(), monday.Add(token.MaxLifetime+token.Leeway*2), "expired")
	}
}

// Every step of the verification matters.
func TestPasskey_RefusesWhatDoesNotVerify(t *testing.T) {
	t.Parallel()
	a := newPasskey(t, "ES256")
	keys := []identity.Key{a.key}
	for why, change := range map[string]func(client, *[]byte){
		"did not sign an assertion":             func(c client, _ *[]byte) { c["type"] = "webauthn.create" },
		"signed something else":                 func(c client, _ *[]byte) { c["challenge"] = base64.RawURLEncoding.EncodeToString(make([]byte, 32)) },
		"a page that is not one of its own":     func(c client, _ *[]byte) { c["origin"] = "https://jig.example.com.evil.com" },
		"was used on a page":                    func(c client, _ *[]byte) { c["crossOrigin"] = true },
		"another relying party":                 func(_ client, d *[]byte) { (*d)[0]++ },
		"belongs to another relying party":      func(_ client, d *[]byte) { *d = (*d)[:36] },
		"nobody touched the passkey":            func(_ client, d *[]byte) { (*d)[32] = 0x04 },
		"the passkey did not verify the person": func(_ client, d *[]byte) { (*d)[32] = 0x01 },
	} {
		refused(t, tokenOf(t, a.asserts(t, payload(nil), change)), keys, claim(), monday, why)
	}
	good := a.asserts(t, payload(nil), nil)
	swapped := good
	claims := payload(nil)
	claims["digest"] = "d2"
	var err error
	swapped.Claims, err = json.Marshal(claims)
	require.NoError(t, err)
	other := claim()
	other.Digest = "d2"
	refused(t, tokenOf(t, swapped), keys, other, monday, "signed something else")
	forged := good
	forged.Signature = newPasskey(t, "ES256").asserts(t, payload(nil), nil).Signature
	refused(t, tokenOf(t, forged), keys, claim(), monday, "not signed with its passkey")
	unknown := good
	unknown.KeyID = "ben-phone"
	refused(t, tokenOf(t, unknown), keys, claim(), monday, "not one of the tenant's")
	bens := a.key
	bens.Principal = "ben"
	refused(t, tokenOf(t, good), []identity.Key{bens}, claim(), monday, "does not speak for the principal")
	plain := signer(t, "ana").Key()
	plain.ID = "ana-phone"
	refused(t, tokenOf(t, good), []identity.Key{plain}, claim(), monday, "not one of the tenant's")
	refused(t, "passkey.e30", keys, claim(), monday, "damaged")
	refused(t, "passkey.!", keys, claim(), monday, "damaged")
}

func TestPasskeyPublic_AcceptsES256AndEdDSA(t *testing.T) {
	t.Parallel()
	larger, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(larger.Public())
	require.NoError(t, err)
	for _, bad := range [][]byte{nil, []byte("no key"), der} {
		_, err := token.PasskeyPublic(bad)
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
	}
}

func TestVerifyAgain_TakesTokensThatHaveExpired(t *testing.T) {
	t.Parallel()
	s := signer(t, "ana")
	d := jig.Decision{Call: "3.1", Answer: jig.AnswerApprove}
	want, err := token.ForDecision("acme", "ses_1", d, "d1")
	require.NoError(t, err)
	d.Token, err = token.Sign(want, s, monday, 0)
	require.NoError(t, err)
	who, evidence, err := token.VerifyAgain([]identity.Key{s.Key()}, "acme", "ses_1", d, "d1")
	require.NoError(t, err)
	require.Equal(t, "ana", who)
	require.Equal(t, s.ID(), evidence.Key)
	require.WithinDuration(t, monday.Add(token.DefaultLifetime), evidence.Until, 0)
	_, _, err = token.VerifyAgain([]identity.Key{s.Key()}, "acme", "ses_1", d, "d2")
	require.Error(t, err)
	for _, bad := range []string{"", "x", "passkey.x"} {
		d.Token = bad
		_, _, err = token.VerifyAgain([]identity.Key{s.Key()}, "acme", "ses_1", d, "d1")
		require.Error(t, err)
	}
}
