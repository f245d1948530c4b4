package token_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
)

// monday is the time at which tests sign tokens.
var monday = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// signer returns a signer with a new key of a principal.
func signer(tb testing.TB, principal string) token.Signer {
	tb.Helper()
	private, _, err := token.NewKey()
	require.NoError(tb, err)
	s, err := token.ParsePrivateKey(private, "", principal)
	require.NoError(tb, err)
	return s
}

func hmacSigner(tb testing.TB, principal string) token.Signer {
	tb.Helper()
	return token.NewHMAC([]byte(strings.Repeat("portal", 6)), "portal", principal)
}

// claim returns a claim with every field set.
func claim() identity.Claim {
	return identity.Claim{
		Installation: "ins_1", Tenant: "acme", Principal: "ana", Action: "approve", SessionID: "ses_1", Call: "3.1", Subject: "tool:mail.send",
		Digest: "d1", Content: "c1",
	}
}

func sign(tb testing.TB, c identity.Claim, s token.Signer) string {
	tb.Helper()
	text, err := token.Sign(c, s, monday, 0)
	require.NoError(tb, err)
	return text
}

// refused checks that a token is refused for a reason.
func refused(t *testing.T, text string, keys []identity.Key, want identity.Claim, now time.Time, why string) {
	t.Helper()
	who, evidence, err := token.Verify(text, keys, want, now)
	require.Error(t, err)
	require.Empty(t, who)
	require.Zero(t, evidence)
	e := jig.AsError(err)
	require.Equal(t, jig.CodeNotPermitted, e.Code)
	require.Equal(t, "token", e.Field)
	require.NotEmpty(t, e.Hint)
	require.Contains(t, e.Message, why)
	for part := range strings.SplitSeq(text, ".") {
		require.True(t, len(part) < 8 || !strings.Contains(e.Error(), part), "the error repeats the token: %s", e)
	}
}

func TestVerify_AcceptsWhatWasSigned(t *testing.T) {
	t.Parallel()
	tests := map[string]token.Signer{
		"ed25519 of one principal": signer(t, "ana"),
		"ed25519 of everybody":     signer(t, ""),
		"hmac of one principal":    hmacSigner(t, "ana"),
		"hmac of everybody":        hmacSigner(t, ""),
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := sign(t, claim(), s)
			keys := []identity.Key{signer(t, "ana").Key(), s.Key()}
			who, evidence, err := token.Verify(text, keys, claim(), monday.Add(time.Minute))
			require.NoError(t, err)
			require.Equal(t, "ana", who)
			require.Equal(t, s.ID(), evidence.Key)
			require.NotEmpty(t, evidence.Token)
			require.Equal(t, monday.Add(token.DefaultLifetime), evidence.Until)

			anybody := claim()
			anybody.Principal = ""
			who, again, err := token.Verify(text, keys, anybody, monday)
			require.NoError(t, err)
			require.Equal(t, "ana", who)
			require.Equal(t, evidence, again)

			_, other, err := token.Verify(sign(t, claim(), s), keys, claim(), monday)
			require.NoError(t, err)
			require.NotEqual(t, evidence.Token, other.Token, "every token has an id of its own")
		})
	}
}

func TestVerify_EveryFieldIsBound(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		field func(*identity.Claim) *string
		why   string
	}{
		"installation": {func(c *identity.Claim) *string { return &c.Installation }, "another installation"},
		"tenant":       {func(c *identity.Claim) *string { return &c.Tenant }, "another tenant"},
		"principal":    {func(c *identity.Claim) *string { return &c.Principal }, "another principal"},
		"action":       {func(c *identity.Claim) *string { return &c.Action }, "another action"},
		"session":      {func(c *identity.Claim) *string { return &c.SessionID }, "another session"},
		"call":         {func(c *identity.Claim) *string { return &c.Call }, "another call"},
		"subject":      {func(c *identity.Claim) *string { return &c.Subject }, "another subject"},
		"digest":       {func(c *identity.Claim) *string { return &c.Digest }, "another digest"},
		"content":      {func(c *identity.Claim) *string { return &c.Content }, "another content"},
	}
	var fields map[string]any
	raw, err := json.Marshal(claim())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &fields))
	require.Len(t, tests, len(fields), "the test does not change every field of Claim")
	portal := hmacSigner(t, "")
	text, keys := sign(t, claim(), portal), []identity.Key{portal.Key()}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := claim()
			*tt.field(&want) += "x"
			refused(t, text, keys, want, monday, tt.why)
			if name == "principal" {
				return // an empty principal matches any principal
			}
			want = claim()
			*tt.field(&want) = ""
			refused(t, text, keys, want, monday, tt.why)

			less := claim()
			*tt.field(&less) = ""
			if without, err := token.Sign(less, portal, monday, 0); err == nil {
				refused(t, without, keys, claim(), monday, tt.why)
			}
		})
	}
}

func TestVerify_BoundsTheTimes(t *testing.T) {
	t.Parallel()
	s := signer(t, "ana")
	text, keys := sign(t, claim(), s), []identity.Key{s.Key()}
	end := monday.Add(token.DefaultLifetime)
	for _, at := range []time.Time{monday.Add(-token.Leeway), monday, end, end.Add(token.Leeway - time.Second)} {
		_, _, err := token.Verify(text, keys, claim(), at)
		require.NoError(t, err, at)
	}
	refused(t, text, keys, claim(), end.Add(token.Leeway), "expired")
	refused(t, text, keys, claim(), monday.Add(-token.Leeway-time.Second), "not valid yet")
	longest, err := token.Sign(claim(), s, monday.Add(999*time.Millisecond), token.MaxLifetime)
	require.NoError(t, err)
	_, _, err = token.Verify(longest, keys, claim(), monday.Add(time.Second))
	require.NoError(t, err)
}

// forge makes a token with arbitrary claims and an arbitrary header.
func forge(t *testing.T, method jwt.SigningMethod, secret any, header, claims map[string]any) string {
	t.Helper()
	forged := jwt.NewWithClaims(method, jwt.MapClaims(claims))
	for name, value := range header {
		forged.Header[name] = value
	}
	text, err := forged.SignedString(secret)
	require.NoError(t, err)
	return text
}

// payload returns what Sign writes for claim(), with changes. A nil value removes a member.
func payload(changes map[string]any) map[string]any {
	all := map[string]any{
		"sub": "ana", "aud": []string{"jig"}, "jti": "t1",
		"iat": monday.Unix(), "nbf": monday.Unix(), "exp": monday.Add(5 * time.Minute).Unix(), "installation": "ins_1",
		"tenant": "acme", "action": "approve", "session": "ses_1", "call": "3.1", "subject": "tool:mail.send", "digest": "d1", "content": "c1",
	}
	for name, value := range changes {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	return all
}

func TestVerify_RefusesForgedPayloads(t *testing.T) {
	t.Parallel()
	s := hmacSigner(t, "")
	keys, kid := []identity.Key{s.Key()}, map[string]any{"kid": s.ID()}
	_, _, err := token.Verify(forge(t, jwt.SigningMethodHS256, s.Key().Material, kid, payload(nil)), keys, claim(), monday)
	require.NoError(t, err, "the payload without changes is accepted")
	tests := map[string]struct {
		changes map[string]any
		why     string
	}{
		"too long-lived":       {map[string]any{"exp": monday.Add(15*time.Minute + time.Second).Unix()}, "15 minutes"},
		"for ever":             {map[string]any{"exp": math.MaxInt64}, "the token"},
		"beyond all numbers":   {map[string]any{"exp": json.Number("1e300")}, "the token"},
		"ends as it begins":    {map[string]any{"exp": monday.Unix()}, "not at all"},
		"signed later":         {map[string]any{"iat": monday.Add(time.Minute).Unix()}, "not valid yet"},
		"begins later":         {map[string]any{"nbf": monday.Add(time.Minute).Unix()}, "not valid yet"},
		"signed long ago":      {map[string]any{"iat": monday.Add(-time.Hour).Unix()}, "15 minutes"},
		"without exp":          {map[string]any{"exp": nil}, "lacks"},
		"without nbf":          {map[string]any{"nbf": nil}, "lacks"},
		"without iat":          {map[string]any{"iat": nil}, "when it was signed"},
		"without aud":          {map[string]any{"aud": nil}, "lacks"},
		"for another service":  {map[string]any{"aud": []string{"billing"}}, "not for jig"},
		"without id":           {map[string]any{"jti": nil}, "no id"},
		"without principal":    {map[string]any{"sub": nil}, "who decides"},
		"a number for a text":  {map[string]any{"call": 3.1}, "claims cannot be read"},
		"a text for a time":    {map[string]any{"exp": "soon"}, "claims cannot be read"},
		"without all bindings": {map[string]any{"tenant": nil, "action": nil, "session": nil, "call": nil, "subject": nil}, "another tenant"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, forge(t, jwt.SigningMethodHS256, s.Key().Material, kid, payload(tt.changes)), keys, claim(), monday, tt.why)
		})
	}
}

func TestVerify_RefusesForgedHeaders(t *testing.T) {
	t.Parallel()
	ana, portal := signer(t, "ana"), hmacSigner(t, "")
	public := ana.Key()
	keys := []identity.Key{public, portal.Key()}
	anas := map[string]any{"kid": ana.ID()}
	whole := sign(t, claim(), ana)
	parts := strings.Split(whole, ".")
	other := sign(t, claim(), portal)
	long := make([]byte, token.MaxBytes+1)
	none := forge(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, anas, payload(nil))
	tests := map[string]struct{ text, why string }{
		"the public key as a secret": {forge(t, jwt.SigningMethodHS256, public.Material, anas, payload(nil)), "own algorithm"},
		"the public key in base64":   {forge(t, jwt.SigningMethodHS256, []byte(base64.StdEncoding.EncodeToString(public.Material)), anas, payload(nil)), "own algorithm"},
		"another hash":               {forge(t, jwt.SigningMethodHS384, portal.Key().Material, map[string]any{"kid": "portal"}, payload(nil)), "not signed"},
		"none":                       {none, "not signed"},
		"none with a signature":      {none + parts[2], "not signed"},
		"unknown method":             {segment(`{"alg":"X1","kid":"portal"}`) + "." + parts[1] + "." + parts[2], "method that is not accepted"},
		"no method":                  {segment(`{"kid":"portal"}`) + "." + parts[1] + "." + parts[2], "method that is not accepted"},
		"no kid":                     {forge(t, jwt.SigningMethodHS256, portal.Key().Material, nil, payload(nil)), "not one of the tenant's"},
		"empty kid":                  {forge(t, jwt.SigningMethodHS256, portal.Key().Material, map[string]any{"kid": ""}, payload(nil)), "not one of the tenant's"},
		"kid of a wrong type":        {forge(t, jwt.SigningMethodHS256, portal.Key().Material, map[string]any{"kid": 1}, payload(nil)), "not one of the tenant's"},
		"unknown kid":                {sign(t, claim(), signer(t, "ana")), "not one of the tenant's"},
		"another key under the kid":  {sign(t, claim(), rename(t, ana.ID(), "")), "not signed with its key"},
		"a kid in capitals":          {sign(t, claim(), rename(t, strings.ToUpper(ana.ID()), "")), "not one of the tenant's"},
		"crit":                       {forge(t, jwt.SigningMethodHS256, portal.Key().Material, map[string]any{"kid": "portal", "crit": []string{"b64"}}, payload(nil)), "extension"},
		"signature cut off":          {whole[:len(whole)-1], "the token"},
		"signature missing":          {parts[0] + "." + parts[1] + ".", "not signed"},
		"two parts":                  {parts[0] + "." + parts[1], "not a JSON Web Token"},
		"four parts":                 {whole + ".x", "not a JSON Web Token"},
		"another token's signature":  {parts[0] + "." + parts[1] + "." + strings.Split(other, ".")[2], "not signed"},
		"another payload":            {parts[0] + "." + strings.Split(other, ".")[1] + "." + parts[2], "not signed"},
		"payload null":               {parts[0] + "." + segment("null") + "." + parts[2], "not signed"},
		"header null":                {segment("null") + "." + parts[1] + "." + parts[2], "method that is not accepted"},
		"a key in the header":        {forge(t, jwt.SigningMethodHS256, []byte("mine"), map[string]any{"kid": "portal", "jwk": map[string]any{"k": "bWluZQ"}}, payload(nil)), "not signed"},
		"text":                       {"please", "not a JSON Web Token"},
		"empty":                      {"", "no token"},
		"too long":                   {string(long), "4 KiB"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, tt.text, keys, claim(), monday, tt.why)
		})
	}
}

func segment(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// rename returns a signer with a new key under an existing key id of another key.
func rename(t *testing.T, kid, principal string) token.Signer {
	t.Helper()
	private, _, err := token.NewKey()
	require.NoError(t, err)
	s, err := token.ParsePrivateKey(private, kid, principal)
	require.NoError(t, err)
	return s
}

func TestVerify_KeySpeaksForItsPrincipal(t *testing.T) {
	t.Parallel()
	private, _, err := token.NewKey()
	require.NoError(t, err)
	// The owner of a key that the tenant's document binds to another principal loads it without a principal and signs as ana.
	everybody, err := token.ParsePrivateKey(private, "ben-1", "")
	require.NoError(t, err)
	bens, err := token.ParsePrivateKey(private, "ben-1", "ben")
	require.NoError(t, err)
	want := claim()
	refused(t, sign(t, claim(), everybody), []identity.Key{bens.Key()}, want, monday, "does not speak for")
	want.Principal = ""
	refused(t, sign(t, claim(), everybody), []identity.Key{bens.Key()}, want, monday, "does not speak for")
}

func TestVerify_RefusesUnusableKeys(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		algorithm string
		material  []byte
		why       string
	}{
		"short public key":  {identity.AlgorithmEd25519, make([]byte, ed25519.PublicKeySize-1), "wrong length"},
		"long public key":   {identity.AlgorithmEd25519, make([]byte, ed25519.PrivateKeySize), "wrong length"},
		"no public key":     {identity.AlgorithmEd25519, nil, "wrong length"},
		"short secret":      {identity.AlgorithmHMAC, make([]byte, token.MinSecretBytes-1), "wrong length"},
		"empty secret":      {identity.AlgorithmHMAC, []byte{}, "wrong length"},
		"unknown algorithm": {"rsa", make([]byte, 32), "not known"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var text string
			header := map[string]any{"kid": "k"}
			if tt.algorithm == identity.AlgorithmHMAC {
				text = forge(t, jwt.SigningMethodHS256, tt.material, header, payload(nil))
			} else {
				_, private, err := ed25519.GenerateKey(nil)
				require.NoError(t, err)
				text = forge(t, jwt.SigningMethodEdDSA, private, header, payload(nil))
			}
			key := identity.Key{ID: "k", Algorithm: tt.algorithm, Material: tt.material}
			refused(t, text, []identity.Key{key}, claim(), monday, tt.why)
		})
	}
}

func TestVerify_EveryByteCounts(t *testing.T) {
	t.Parallel()
	s := signer(t, "ana")
	text, keys := sign(t, claim(), s), []identity.Key{s.Key()}
	for i := range text {
		for _, c := range []byte("A.-") {
			if text[i] == c {
				continue
			}
			changed := text[:i] + string(c) + text[i+1:]
			_, _, err := token.Verify(changed, keys, claim(), monday)
			require.Error(t, err, "byte %d as %c", i, c)
		}
		_, _, err := token.Verify(text[:i], keys, claim(), monday)
		require.Error(t, err, "cut at %d", i)
	}
}

// FuzzVerify verifies arbitrary tokens, which must all be refused. No seed is a complete valid token, because every fuzzing process has
// its own keys.
func FuzzVerify(f *testing.F) {
	ana, ben := signer(f, "ana"), signer(f, "ben")
	keys := []identity.Key{ana.Key(), {ID: "odd", Algorithm: "rsa"}, {ID: "short", Algorithm: identity.AlgorithmEd25519}}
	text := sign(f, claim(), ana)
	f.Add(strings.Replace(text, ".", "..", 1))
	f.Add(text[:len(text)/2])
	c := claim()
	c.Principal = "ben"
	f.Add(sign(f, c, ben))
	for _, header := range []string{`null`, `{}`, `{"alg":"none"}`, `{"alg":1}`, `{"alg":"HS256","kid":"short"}`, `{"alg":"EdDSA","kid":"short"}`, `{"alg":"HS256","kid":"odd"}`} {
		for _, body := range []string{`null`, `[]`, `{"exp":1e400}`, `{"exp":null,"aud":[1]}`, `{"aud":"jig"}`} {
			f.Add(fmt.Sprintf("%s.%s.", segment(header), segment(body)))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		who, evidence, err := token.Verify(text, keys, claim(), monday)
		require.Error(t, err)
		require.Equal(t, jig.CodeNotPermitted, jig.CodeOf(err))
		require.Empty(t, who)
		require.Zero(t, evidence)
	})
}

// A signed token must not say two things: a gateway that inspects tokens could read the other one.
func TestVerify_AmbiguousTokenIsRefused(t *testing.T) {
	t.Parallel()
	s := hmacSigner(t, "")
	whole, err := json.Marshal(payload(nil))
	require.NoError(t, err)
	const header = `{"alg":"HS256","kid":"portal"}`
	for name, row := range map[string]struct{ header, body, why string }{
		"a claim twice":               {header, `{"sub":"ben",` + string(whole[1:]), "claims cannot be read"},
		"a claim in another case too": {header, `{"Action":"deny",` + string(whole[1:]), "claims cannot be read"},
		"not UTF-8":                   {header, "{\"x\":\"caf\xe9\"," + string(whole[1:]), "claims cannot be read"},
		"the key twice":               {`{"alg":"HS256","kid":"other","kid":"portal"}`, string(whole), "header is ambiguous"},
	} {
		text := segment(row.header) + "." + segment(row.body)
		signature, err := jwt.SigningMethodHS256.Sign(text, s.Key().Material)
		require.NoError(t, err)
		_, _, err = token.Verify(text+"."+base64.RawURLEncoding.EncodeToString(signature), []identity.Key{s.Key()}, claim(), monday)
		require.ErrorContains(t, err, row.why, name)
		require.Equal(t, jig.CodeNotPermitted, jig.CodeOf(err), name)
	}
}

// FuzzSignedPayload signs any header and payload with a genuine key.
func FuzzSignedPayload(f *testing.F) {
	s := hmacSigner(f, "")
	keys := []identity.Key{s.Key()}
	whole, err := json.Marshal(payload(nil))
	require.NoError(f, err)
	f.Add(`{"alg":"HS256","kid":"portal"}`, string(whole))
	f.Add(`{"alg":"HS256","kid":"portal"}`, `{"exp":1e300,"nbf":-1e300,"iat":null,"aud":["jig"]}`)
	f.Add(`{"alg":"EdDSA","kid":"portal"}`, `null`)
	f.Add(`{"alg":"none","kid":"portal","crit":null}`, `[]`)
	f.Fuzz(func(t *testing.T, header, body string) {
		text := segment(header) + "." + segment(body)
		signature, err := jwt.SigningMethodHS256.Sign(text, s.Key().Material)
		require.NoError(t, err)
		who, evidence, err := token.Verify(text+"."+base64.RawURLEncoding.EncodeToString(signature), keys, claim(), monday)
		if err != nil {
			require.Equal(t, jig.CodeNotPermitted, jig.CodeOf(err))
			require.Empty(t, who)
			return
		}
		require.Equal(t, "ana", who)
		require.Equal(t, "portal", evidence.Key)
		require.NotEmpty(t, evidence.Token)
		require.WithinDuration(t, monday, evidence.Until, token.MaxLifetime+2*token.Leeway)
	})
}
