package openid

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/strictjson"
)

// Identity holds the claims of an identity provider about a person.
type Identity struct {
	Tenant          string
	Issuer, Subject string
	// Name is for people to read. It identifies nobody.
	Name   string
	Groups []string
	// ExpiresAt is when the token ends.
	ExpiresAt time.Time
}

// Providers are the identity providers of a server.
type Providers struct {
	bindings []Binding
	issuers  map[string]*issuer
}

// New returns the providers of some bindings. transport may be nil.
func New(bindings []Binding, transport http.RoundTripper) *Providers {
	if transport == nil {
		transport = http.DefaultTransport
	}
	p := &Providers{bindings: bindings, issuers: map[string]*issuer{}}
	for _, b := range bindings {
		if p.issuers[b.Issuer] == nil {
			p.issuers[b.Issuer] = newIssuer(b.Issuer, transport)
		}
	}
	return p
}

// Bindings lists the bindings.
func (p *Providers) Bindings() []Binding { return slices.Clone(p.bindings) }

// skew is by how much the clocks of an issuer and a server may differ.
const skew = time.Minute

// maxToken bounds a token, in bytes.
const maxToken = 12 << 10

// header and claims are the parts of a token that this package judges itself.
type (
	header struct {
		Type string `json:"typ"`
	}
	claims struct {
		Issuer    string       `json:"iss"`
		Audience  audience     `json:"aud"`
		Subject   string       `json:"sub"`
		NotBefore *json.Number `json:"nbf"`
		Nonce     string       `json:"nonce"`
		// CodeHash and TokenHash are only in id tokens.
		CodeHash  string `json:"c_hash"`
		TokenHash string `json:"at_hash"`
	}
)

// audience is a text or a list of texts.
type audience []string

// UnmarshalJSON implements [json.Unmarshaler].
func (a *audience) UnmarshalJSON(b []byte) error {
	*a = textsOf(b)
	return nil
}

// AccessToken checks an access token. A token that does not count is NOT_PERMITTED, and the message says why, for the log of the server. If the
// issuer's keys cannot be fetched, the error is UNAVAILABLE.
func (p *Providers) AccessToken(ctx context.Context, raw string) (Identity, error) {
	var h header
	var c claims
	parts := strings.Split(raw, ".")
	if len(raw) > maxToken || len(parts) != 3 || decode(parts[0], &h) != nil || decode(parts[1], &c) != nil {
		return Identity{}, refused("it is not a JWT")
	}
	fits := slices.DeleteFunc(p.Bindings(), func(b Binding) bool { return b.Issuer != c.Issuer || !slices.Contains(c.Audience, b.Audience) })
	switch {
	case len(fits) == 0:
		return Identity{}, refused("its issuer and audience are bound to no tenant")
	case len(fits) > 1:
		return Identity{}, refused("its audiences are bound to several tenants")
	}
	b := fits[0]
	switch kind := strings.ToLower(strings.TrimPrefix(strings.ToLower(h.Type), "application/")); {
	case c.Nonce != "" || c.CodeHash != "" || c.TokenHash != "":
		return Identity{}, refused("it is an id token")
	case kind != "at+jwt" && !b.AnyType:
		return Identity{}, refused("its type is not at+jwt (the binding's any_type accepts others)")
	case slices.Contains(c.Audience, b.ClientID) && b.ClientID != "":
		return Identity{}, refused("it is also for the client of the login, as id tokens are")
	}
	return p.verify(ctx, b, b.Audience, raw, nil)
}

// verify checks a token's signature, algorithm, issuer, audience and times. own is called with the token if these are right; it may be nil.
func (p *Providers) verify(ctx context.Context, b Binding, audience, raw string, own func(*oidc.IDToken) error) (Identity, error) {
	_, keys, err := p.issuers[b.Issuer].discover(ctx)
	if err != nil {
		return Identity{}, jig.Errorf(jig.CodeUnavailable, "%w", err)
	}
	watched := &watchedKeys{keys: keys}
	token, err := oidc.NewVerifier(b.Issuer, watched, &oidc.Config{ClientID: audience, SupportedSigningAlgs: b.Algorithms}).Verify(ctx, raw)
	switch {
	case watched.failed != nil:
		return Identity{}, jig.Errorf(jig.CodeUnavailable, "the keys of the issuer %s cannot be read: %w", b.Issuer, watched.failed)
	case err != nil:
		return Identity{}, refused(err.Error())
	}
	var all map[string]json.RawMessage
	var c claims
	if err := token.Claims(&all); err != nil || token.Claims(&c) != nil {
		return Identity{}, refused("its claims cannot be read")
	}
	if c.NotBefore != nil {
		seconds, err := c.NotBefore.Float64()
		if err != nil || seconds > float64(time.Now().Add(skew).Unix()) {
			return Identity{}, refused("it is not valid yet")
		}
	}
	if c.Subject == "" || len(c.Subject) > 255 || strings.ContainsFunc(c.Subject, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return Identity{}, refused("its subject is not usable")
	}
	tenant := b.tenantOf(all)
	if tenant == "" {
		return Identity{}, refused("its tenant claim names no tenant of the binding")
	}
	if own != nil {
		if err := own(token); err != nil {
			return Identity{}, err
		}
	}
	return Identity{
		Tenant: tenant, Issuer: b.Issuer, Subject: c.Subject, Name: jig.Cut(textOf(all[b.NameClaim]), maxName), Groups: textsOf(all[b.GroupsClaim]),
		ExpiresAt: token.Expiry.UTC(),
	}, nil
}

// maxName bounds the name of a person, in bytes.
const maxName = 200

// watchedKeys tells keys that cannot be fetched from signatures that are wrong.
type watchedKeys struct {
	keys   oidc.KeySet
	failed error
}

// VerifySignature implements [oidc.KeySet]. It waits for patience at most if the keys must be fetched.
func (w *watchedKeys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	payload, err := w.keys.VerifySignature(ctx, jwt)
	if isUnfetched(err) {
		w.failed = err
	}
	return payload, err //nolint:wrapcheck // the verifier wraps it
}

func decode(part string, into any) error {
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err //nolint:wrapcheck // the caller says what is wrong
	}
	return strictjson.Unmarshal(text, into)
}

func refused(why string) error {
	return jig.Errorf(jig.CodeNotPermitted, "the token is not valid: %s", why).WithReason("token")
}
