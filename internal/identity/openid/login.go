package openid

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/jig-run/jig"
)

// AttemptLifetime is how long a person may take at the identity provider.
const AttemptLifetime = 10 * time.Minute

// maxReturn bounds the address to which a login returns, in bytes. It travels in a cookie.
const maxReturn = 1000

// attempt is a login that a browser has begun. The browser keeps it in a cookie, so any server can complete it. The state and the nonce that the
// provider gets are hashes of the cookie. The provider signs the nonce, so a cookie that was changed meanwhile does not fit the id token.
type attempt struct {
	// Verifier is the secret of PKCE, and makes the cookie unique.
	Verifier string `json:"verifier"`
	Issuer   string `json:"issuer"`
	Audience string `json:"audience"`
	Callback string `json:"callback"`
	ReturnTo string `json:"return_to"`
	Begun    int64  `json:"begun"`
}

// LoggedIn is a completed login.
type LoggedIn struct {
	Identity
	// ReturnTo is the path to which the browser goes.
	ReturnTo string
	// Attempt identifies the attempt. Only one login may come of it.
	Attempt []byte
}

// BeginLogin begins a login with a browser. The browser must keep the cookie and go to the address. tenant may be empty if there is only one
// provider for logins. callback is the address to which the provider sends the browser back, and returnTo the path to which it goes after that.
func (p *Providers) BeginLogin(ctx context.Context, tenant, callback, returnTo string) (cookie, address string, err error) {
	b, err := p.loginOf(tenant)
	if err != nil {
		return "", "", err
	}
	if !LocalPath(returnTo) {
		return "", "", jig.Errorf(jig.CodeInvalidInput, "the address to return to is not a path of this server").WithField("return_to").WithHint("use e.g. /v1/me")
	}
	client, _, err := p.client(ctx, b, callback)
	if err != nil {
		return "", "", err
	}
	a := attempt{
		Verifier: oauth2.GenerateVerifier(), Issuer: b.Issuer, Audience: b.Audience, Callback: callback, ReturnTo: returnTo, Begun: time.Now().Unix(),
	}
	text, err := json.Marshal(a)
	if err != nil {
		return "", "", err //nolint:wrapcheck // cannot happen: it is a struct of texts
	}
	cookie = base64.RawURLEncoding.EncodeToString(text)
	return cookie, client.AuthCodeURL(derived("state", cookie), oauth2.S256ChallengeOption(a.Verifier), oidc.Nonce(derived("nonce", cookie))), nil
}

// FinishLogin completes a login with the query with which the provider sent the browser back. A login that does not count is NOT_PERMITTED with
// the reason login; the message says why, for the log of the server.
func (p *Providers) FinishLogin(ctx context.Context, cookie string, query url.Values) (LoggedIn, error) {
	text, err := base64.RawURLEncoding.DecodeString(cookie)
	var a attempt
	if err != nil || json.Unmarshal(text, &a) != nil || !LocalPath(a.ReturnTo) {
		return LoggedIn{}, notLoggedIn("the browser has begun no login")
	}
	at := slices.IndexFunc(p.bindings, func(b Binding) bool { return b.key() == [2]string{a.Issuer, a.Audience} && b.ClientID != "" })
	age := time.Since(time.Unix(a.Begun, 0))
	switch {
	case subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(derived("state", cookie))) == 0:
		return LoggedIn{}, notLoggedIn("the state is not that of the browser's attempt")
	case at < 0:
		return LoggedIn{}, notLoggedIn("its identity provider is not configured any more")
	case age < -skew, age > AttemptLifetime:
		return LoggedIn{}, notLoggedIn("it took too long")
	case query.Has("iss") && query.Get("iss") != a.Issuer:
		return LoggedIn{}, notLoggedIn("the response comes from another identity provider")
	case query.Has("error"):
		return LoggedIn{}, notLoggedIn("the identity provider did not sign the person in")
	}
	b := p.bindings[at]
	client, metadata, err := p.client(ctx, b, a.Callback)
	if err != nil {
		return LoggedIn{}, err
	}
	if metadata.NamesIssuer && !query.Has("iss") {
		return LoggedIn{}, notLoggedIn("the answer does not name its identity provider")
	}
	raw, err := p.exchange(ctx, b, client, query.Get("code"), a.Verifier)
	if err != nil {
		return LoggedIn{}, err
	}
	who, err := p.verify(ctx, b, b.ClientID, raw, func(token *oidc.IDToken) error { return fits(b, token, derived("nonce", cookie)) })
	if jig.CodeOf(err) == jig.CodeNotPermitted {
		return LoggedIn{}, notLoggedIn(jig.AsError(err).Message)
	}
	sum := sha256.Sum256([]byte("attempt\x00" + cookie))
	return LoggedIn{Identity: who, ReturnTo: a.ReturnTo, Attempt: sum[:]}, err
}

// loginOf returns the binding with which people of a tenant log in.
func (p *Providers) loginOf(tenant string) (Binding, error) {
	return p.only(tenant, "client_id", func(b Binding) string { return b.ClientID })
}

// CommandLine returns the binding with which people of a tenant log in with the command line. tenant may be empty if there is only one.
func (p *Providers) CommandLine(tenant string) (Binding, error) {
	return p.only(tenant, "command_line_client_id", func(b Binding) string { return b.CommandLineClientID })
}

// only returns the only binding of a tenant that has a client. member is the client's member in the file.
func (p *Providers) only(tenant, member string, client func(Binding) string) (Binding, error) {
	fits := slices.DeleteFunc(p.Bindings(), func(b Binding) bool {
		return client(b) == "" || tenant != "" && b.Tenant != tenant && !slices.Contains(b.Tenants, tenant)
	})
	switch len(fits) {
	case 0:
		return Binding{}, jig.Errorf(jig.CodeNotFound, "no identity provider is configured for these logins").WithHint("add " + member + " to a binding in JIG_OIDC_FILE")
	case 1:
		return fits[0], nil
	}
	return Binding{}, jig.Errorf(jig.CodeInvalidInput, "several identity providers are configured for logins").WithField("tenant").WithHint("add tenant=NAME to the address")
}

// metadata is what a provider says about itself and go-oidc does not read.
type metadata struct {
	ClientAuthentication []string `json:"token_endpoint_auth_methods_supported"`
	// NamesIssuer says that answers name the issuer (RFC 9207).
	NamesIssuer bool `json:"authorization_response_iss_parameter_supported"`
}

// client returns the server's client at the issuer of a binding.
func (p *Providers) client(ctx context.Context, b Binding, callback string) (*oauth2.Config, metadata, error) {
	provider, _, err := p.issuers[b.Issuer].discover(ctx)
	var m metadata
	if err == nil {
		err = provider.Claims(&m)
	}
	if err != nil {
		return nil, m, jig.Errorf(jig.CodeUnavailable, "%w", err)
	}
	endpoint := provider.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInParams
	if b.secret != "" && (len(m.ClientAuthentication) == 0 || slices.Contains(m.ClientAuthentication, "client_secret_basic")) {
		endpoint.AuthStyle = oauth2.AuthStyleInHeader
	}
	return &oauth2.Config{
		ClientID: b.ClientID, ClientSecret: b.secret, Endpoint: endpoint, RedirectURL: callback,
		Scopes: append([]string{oidc.ScopeOpenID, "profile"}, b.Scopes...),
	}, m, nil
}

// exchange returns the id token for a code.
func (p *Providers) exchange(ctx context.Context, b Binding, client *oauth2.Config, code, verifier string) (string, error) {
	token, err := client.Exchange(oidc.ClientContext(ctx, p.issuers[b.Issuer].client), code, oauth2.VerifierOption(verifier))
	var answer *oauth2.RetrieveError
	switch {
	case errors.As(err, &answer) && answer.Response.StatusCode/100 == 4:
		return "", notLoggedIn("the identity provider refused the code: " + answer.ErrorCode)
	case err != nil:
		return "", jig.Errorf(jig.CodeUnavailable, "the issuer %s cannot be reached: %w", b.Issuer, err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok || len(raw) > maxToken {
		return "", notLoggedIn("the identity provider sent no id token")
	}
	return raw, nil
}

// fits returns an error if an id token is not the one of an attempt, or is for somebody else.
func fits(b Binding, token *oidc.IDToken, nonce string) error {
	var more struct {
		Party string `json:"azp"`
	}
	if err := token.Claims(&more); err != nil {
		return refused("its claims cannot be read")
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(nonce)) == 0:
		return refused("its nonce is not that of the browser's attempt")
	case more.Party != "" && more.Party != b.ClientID, len(token.Audience) > 1 && more.Party == "":
		return refused("it was made for another client")
	}
	return nil
}

// derived returns a value that follows from a cookie and does not tell it.
func derived(label, cookie string) string {
	sum := sha256.Sum256([]byte(label + "\x00" + cookie))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// LocalPath reports whether an address is a path of this server: nothing that a browser takes for another host.
func LocalPath(address string) bool {
	u, err := url.Parse(address)
	return err == nil && len(address) <= maxReturn && u.Scheme == "" && u.Host == "" && strings.HasPrefix(address, "/") && !strings.HasPrefix(address, "//") &&
		!strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == '\\' || r >= 0x7f })
}

func notLoggedIn(why string) error {
	return jig.Errorf(jig.CodeNotPermitted, "the login is not valid: %s", why).WithReason("login").WithHint("begin again at /v1/login")
}
