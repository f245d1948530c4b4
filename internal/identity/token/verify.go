package token

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/strictjson"
)

// Verify checks that a token proves the claim want, and returns the principal and the evidence. The token names the key, and the key
// determines the algorithm. Every field of the token must equal that field of want, including empty ones; only an empty principal in
// want matches any principal. A refusal is NOT_PERMITTED with the field token, and contains no part of the token.
func Verify(text string, keys []identity.Key, want identity.Claim, now time.Time) (principal string, evidence identity.Evidence, err error) {
	switch {
	case text == "":
		return "", identity.Evidence{}, refusal("there is no token", "sign the decision: `jig token` prints a token, or set JIG_SIGNING_KEY")
	case len(text) > MaxBytes:
		return "", identity.Evidence{}, refusal("the token is longer than 4 KiB", "send only the token, as it was printed")
	}
	var got payload
	var key identity.Key
	if strings.HasPrefix(text, passkeyPrefix) {
		if got, key, err = verifyPasskey(text, keys, now); err == nil {
			err = check(got, key, want)
		}
		if err != nil {
			return "", identity.Evidence{}, err
		}
		return got.Subject, identity.Evidence{Key: key.ID, Maker: key.Maker, Token: got.ID, Until: got.ExpiresAt.UTC()}, nil
	}
	parser := jwt.NewParser(
		jwt.WithStrictDecoding(), jwt.WithAudience(Audience), jwt.WithExpirationRequired(), jwt.WithNotBeforeRequired(), jwt.WithIssuedAt(),
		jwt.WithLeeway(Leeway), jwt.WithTimeFunc(func() time.Time { return now }),
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg(), jwt.SigningMethodHS256.Alg()}),
	)
	if _, err = parser.ParseWithClaims(text, &got, func(t *jwt.Token) (any, error) {
		var material any
		key, material, err = find(t, keys)
		return material, err
	}); err != nil {
		return "", identity.Evidence{}, explain(err)
	}
	if err = check(got, key, want); err != nil {
		return "", identity.Evidence{}, err
	}
	return got.Subject, identity.Evidence{Key: key.ID, Maker: key.Maker, Token: got.ID, Until: got.ExpiresAt.UTC()}, nil
}

// signedAt returns when a token says that it was signed. Nothing is verified.
func signedAt(text string) (time.Time, error) {
	var got payload
	if len(text) > MaxBytes {
		return time.Time{}, refusal("the token is longer than 4 KiB", "send only the token, as it was printed")
	}
	var err error
	if strings.HasPrefix(text, passkeyPrefix) {
		_, got, err = parsePasskey(text)
	} else {
		_, _, err = jwt.NewParser().ParseUnverified(text, &got)
	}
	if err != nil || got.IssuedAt == nil {
		return time.Time{}, refusal("the token does not say when it was signed", "sign again, with `jig token`")
	}
	return got.IssuedAt.UTC(), nil
}

// find returns the key that a token names, and the key material in the type that the key's algorithm needs. The token's header does not
// choose the algorithm (RFC 8725, section 3.1).
func find(t *jwt.Token, keys []identity.Key) (identity.Key, any, error) {
	const hint = "ask for the public key to be added to the tenant's document, or sign with a key that it lists"
	header, _, _ := strings.Cut(t.Raw, ".")
	if text, err := base64.RawURLEncoding.DecodeString(header); err != nil || strictjson.Check(text) != nil {
		return identity.Key{}, nil, refusal("the token's header is ambiguous", "name each parameter once, in UTF-8")
	}
	if _, critical := t.Header["crit"]; critical {
		return identity.Key{}, nil, refusal("the token demands an extension that is not known here", "sign without crit in the header")
	}
	kid, ok := t.Header["kid"].(string)
	at := slices.IndexFunc(keys, func(k identity.Key) bool { return k.ID == kid })
	if !ok || kid == "" || at < 0 {
		return identity.Key{}, nil, refusal("the token's key is not one of the tenant's", hint)
	}
	key := keys[at]
	own := method(key.Algorithm)
	if own == nil {
		return identity.Key{}, nil, refusal("the token's key has an algorithm that is not known", "it can be ed25519 or hmac-sha256; "+hint)
	}
	if t.Method.Alg() != own.Alg() {
		return identity.Key{}, nil, refusal("the token is not signed with its key's own algorithm", "sign with "+own.Alg())
	}
	switch {
	case key.Algorithm == identity.AlgorithmEd25519 && len(key.Material) == ed25519.PublicKeySize:
		return key, ed25519.PublicKey(key.Material), nil
	case key.Algorithm == identity.AlgorithmHMAC && len(key.Material) >= MinSecretBytes:
		return key, key.Material, nil
	}
	return identity.Key{}, nil, refusal("the token's key has the wrong length in the tenant's document", hint)
}

// check compares a verified token with its key and with the wanted claim.
func check(got payload, key identity.Key, want identity.Claim) error {
	const again = "sign again, with `jig token`"
	claim := got.claim()
	switch {
	case got.IssuedAt == nil:
		return refusal("the token does not say when it was signed", again)
	case !got.ExpiresAt.After(got.IssuedAt.Time) || got.ExpiresAt.Sub(got.IssuedAt.Time) > MaxLifetime:
		return refusal("the token lives longer than 15 minutes, or not at all", "sign with a shorter lifetime")
	case got.ID == "":
		return refusal("the token has no id", again)
	case got.Subject == "":
		return refusal("the token does not name who decides", again)
	case key.Principal != "" && claim.Principal != key.Principal:
		return refusal("the token's key does not speak for the principal that it names", "sign with a key of that principal")
	case want.Principal != "" && claim.Principal != want.Principal:
		return refusal("the token is another principal's", "leave out who decides, or name the token's principal")
	case claim.Installation != want.Installation:
		return refusal("the token is for another installation of jig", "sign for the installation that GET /v1/me names, with jig's own commands if you can")
	case claim.Tenant != want.Tenant:
		return refusal("the token is for another tenant", "sign for this tenant")
	case claim.Action != want.Action:
		return refusal("the token allows another action", "sign for the action that you send")
	case claim.SessionID != want.SessionID:
		return refusal("the token is for another session", "sign for this session")
	case claim.Call != want.Call:
		return refusal("the token is for another call", "sign for this call")
	case claim.Subject != want.Subject:
		return refusal("the token is for another subject", "sign for this subject")
	case claim.Digest != want.Digest:
		return refusal("the token is for another digest than that of the waiting call", "look again and sign again: the call changed since")
	case claim.Content != want.Content:
		return refusal("the token is for another content: the decision's content is not what was signed",
			"sign again with the same input, recipient, grant, value, outcome, result, note and reason as the decision has")
	}
	return nil
}

// explain translates an error of the JWT library, whose own message may contain parts of the token.
func explain(err error) error {
	var refused *jig.Error
	const again = "sign again, with `jig token`"
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, jwt.ErrTokenMalformed):
		return refusal("the token is not a JSON Web Token, or it is cut off", "send the token whole, as it was printed")
	case errors.Is(err, jwt.ErrTokenUnverifiable):
		return refusal("the token is signed with a method that is not accepted", "sign with EdDSA or HS256")
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return refusal("the token is not signed with its key", again)
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return refusal("the token lacks one of aud, exp and nbf", again)
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return refusal("the token is not for jig", "sign with aud [\"jig\"]")
	case errors.Is(err, jwt.ErrTokenExpired):
		return refusal("the token has expired", again)
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return refusal("the token is not valid yet", "set the clock of the machine that signs, or wait")
	}
	return refusal("the token is not valid", again)
}

func refusal(message, hint string) *jig.Error {
	return jig.Errorf(jig.CodeNotPermitted, "%s", jig.Known(message)).WithField("token").WithHint(hint)
}

// VerifyDecision verifies the token of a decision.
func VerifyDecision(keys []identity.Key, tenant, session string, d jig.Decision, digest string, now time.Time) (string, identity.Evidence, error) {
	want, err := ForDecision(tenant, session, d, digest)
	return verifyFor(d.Token, keys, want, err, now)
}

// VerifyAgain verifies the token of a decision that was accepted before, as it would have been verified when it was signed.
func VerifyAgain(keys []identity.Key, tenant, session string, d jig.Decision, digest string) (string, identity.Evidence, error) {
	at, err := signedAt(d.Token)
	if err != nil {
		return "", identity.Evidence{}, err
	}
	return VerifyDecision(keys, tenant, session, d, digest, at)
}

// VerifyReply verifies the token of an answer.
func VerifyReply(keys []identity.Key, tenant, session string, r jig.Reply, digest string, now time.Time) (string, identity.Evidence, error) {
	want, err := ForReply(tenant, session, r, digest)
	return verifyFor(r.Token, keys, want, err, now)
}

// VerifyReconciliation verifies the token of a reconciliation.
func VerifyReconciliation(keys []identity.Key, tenant, session string, r jig.Reconciliation, digest string, now time.Time) (string, identity.Evidence, error) {
	want, err := ForReconciliation(tenant, session, r, digest)
	return verifyFor(r.Token, keys, want, err, now)
}

// VerifySubject verifies the token of an action that concerns no call.
func VerifySubject(keys []identity.Key, text, installation, tenant, action, subject, reason string, now time.Time) (string, identity.Evidence, error) {
	want, err := ForSubject(installation, tenant, action, subject, reason)
	return verifyFor(text, keys, want, err, now)
}

// VerifyEnrolment checks that a token proves that its sender holds a key and wants it to sign for the key's principal. The token need not be
// valid now, because the enrolment may have waited for an approval.
func VerifyEnrolment(key identity.Key, text, installation, tenant string) error {
	at, err := signedAt(text)
	if err != nil {
		return err
	}
	want, err := ForSubject(installation, tenant, ActionEnrol, "key:"+key.ID, "")
	_, _, err = verifyFor(text, []identity.Key{key}, want, err, at)
	return err
}

func verifyFor(text string, keys []identity.Key, want identity.Claim, err error, now time.Time) (string, identity.Evidence, error) {
	if err != nil {
		return "", identity.Evidence{}, err
	}
	return Verify(text, keys, want, now)
}
