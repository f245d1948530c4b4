package token_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
)

func TestSign_WritesWhatIsDocumented(t *testing.T) {
	t.Parallel()
	s := signer(t, "ana")
	c := claim()
	c.Principal = "" // the key's own
	text, err := token.Sign(c, s, monday.Add(300*time.Millisecond), 2*time.Minute)
	require.NoError(t, err)
	parts := strings.Split(text, ".")
	decode := func(part string) map[string]any {
		raw, err := base64.RawURLEncoding.DecodeString(part)
		require.NoError(t, err)
		var v map[string]any
		require.NoError(t, json.Unmarshal(raw, &v))
		return v
	}
	require.Equal(t, map[string]any{"alg": "EdDSA", "typ": "JWT", "kid": s.ID()}, decode(parts[0]))
	body := decode(parts[1])
	require.Len(t, body["jti"], 26)
	delete(body, "jti")
	begin := float64(monday.Unix())
	require.Equal(t, map[string]any{
		"sub": "ana", "aud": []any{"jig"}, "iat": begin, "nbf": begin, "exp": begin + 120, "installation": "ins_1", "tenant": "acme", "action": "approve",
		"session": "ses_1", "call": "3.1", "subject": "tool:mail.send", "digest": "d1", "content": "c1",
	}, body)
}

func TestSign_RefusesIncompleteClaims(t *testing.T) {
	t.Parallel()
	ana, everybody := signer(t, "ana"), signer(t, "")
	tests := map[string]struct {
		change   func(*identity.Claim)
		key      token.Signer
		lifetime time.Duration
		field    string
		code     jig.Code
	}{
		"no key":            {key: token.Signer{}, field: "key"},
		"too long":          {key: ana, lifetime: token.MaxLifetime + 1, field: "lifetime"},
		"negative":          {key: ana, lifetime: -time.Minute, field: "lifetime"},
		"less than seconds": {key: ana, lifetime: time.Millisecond, field: "lifetime"},
		"nobody":            {change: func(c *identity.Claim) { c.Principal = "" }, key: everybody, field: "principal"},
		"somebody else":     {change: func(c *identity.Claim) { c.Principal = "ben" }, key: ana, field: "principal", code: jig.CodeNotPermitted},
		"no tenant":         {change: func(c *identity.Claim) { c.Tenant = "" }, key: ana, field: "tenant"},
		"no action":         {change: func(c *identity.Claim) { c.Action = "" }, key: ana, field: "action"},
		"no call":           {change: func(c *identity.Claim) { c.Call, c.Subject = "", "" }, key: ana, field: "call"},
		"no session":        {change: func(c *identity.Claim) { c.SessionID, c.Subject = "", "" }, key: ana, field: "call"},
		"too large":         {change: func(c *identity.Claim) { c.Subject = strings.Repeat("x", token.MaxBytes) }, key: ana, field: "claim"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := claim()
			if tt.change != nil {
				tt.change(&c)
			}
			if tt.code == "" {
				tt.code = jig.CodeInvalidInput
			}
			text, err := token.Sign(c, tt.key, monday, tt.lifetime)
			require.Empty(t, text)
			e := jig.AsError(err)
			require.NotNil(t, e)
			require.Equal(t, tt.code, e.Code)
			require.Equal(t, tt.field, e.Field)
			require.NotEmpty(t, e.Hint)
		})
	}
}

func TestNewKey_ReadsBack(t *testing.T) {
	t.Parallel()
	private, public, err := token.NewKey()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(private), "-----BEGIN PRIVATE KEY-----\n"))
	material, err := base64.StdEncoding.DecodeString(public)
	require.NoError(t, err)
	s, err := token.ParsePrivateKey(append([]byte("# principal: ana\n"), private...), "", "ana")
	require.NoError(t, err)
	require.Equal(t, identity.Key{ID: token.KeyID("ana", material), Algorithm: identity.AlgorithmEd25519, Principal: "ana", Material: material}, s.Key())
	require.Equal(t, "ana-"+hash(string(material))[:8], s.ID())
	require.Equal(t, "ana", s.Principal())
	named, err := token.ParsePrivateKey(private, "mine", "")
	require.NoError(t, err)
	require.Equal(t, "mine", named.ID())
	other, _, err := token.NewKey()
	require.NoError(t, err)
	require.NotEqual(t, private, other)
}

func TestKeyID_FollowsFromPrincipalAndKey(t *testing.T) {
	t.Parallel()
	suffix := "-" + hash("public")[:8]
	for principal, name := range map[string]string{
		"ana": "ana", "ana@example.com": "ana-example.com", "größe": "gr--e", "..ci:1": "ci:1", "": "key", "@": "key", "李": "key",
		strings.Repeat("a", 100): strings.Repeat("a", 48),
	} {
		require.Equal(t, name+suffix, token.KeyID(principal, []byte("public")))
	}
}

func TestSigner_KeepsItsSecret(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("portal", 6)
	s := token.NewHMAC([]byte(secret), "portal", "")
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		require.Equal(t, "signer portal", fmt.Sprintf(format, s))
	}
	encoded, err := json.Marshal(map[string]any{"signer": s})
	require.NoError(t, err)
	require.JSONEq(t, `{"signer":{}}`, string(encoded))
}

func TestParseKey_Refuses(t *testing.T) {
	t.Parallel()
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(other)
	require.NoError(t, err)
	block := func(kind string, content []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
	}
	tests := map[string]struct {
		text []byte
		why  string
	}{
		"empty":     {nil, "not a key in PEM"},
		"text":      {[]byte("please"), "not a key in PEM"},
		"encrypted": {block("ENCRYPTED PRIVATE KEY", der), "not encrypted"},
		"damaged":   {block("PRIVATE KEY", der[:20]), "damaged"},
		"ECDSA":     {block("PRIVATE KEY", der), "not an Ed25519 key"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := token.ParsePrivateKey(tt.text, "k", "ana")
			require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
			require.Equal(t, "key", jig.AsError(err).Field)
			require.ErrorContains(t, err, tt.why)
		})
	}
}
