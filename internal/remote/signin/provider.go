package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
)

const (
	// fetchTimeout bounds a request to the server or to the provider.
	fetchTimeout = 20 * time.Second
	// maxFetched bounds a document, in bytes, and maxRedirects the redirects to it.
	maxFetched   = 1 << 20
	maxRedirects = 5
)

// Options say where to log in.
type Options struct {
	// Server is the address of the server.
	Server string
	// Tenant chooses among the identity providers of the server; empty if there is only one.
	Tenant string
	// Audience is the audience that the user expects. Default: the server's address.
	Audience string
}

// Provider is the identity provider of a server, as the command line uses it.
type Provider struct {
	server, issuer, audience string
	// audienceParameter is the parameter that names the audience, which options contain; empty for none.
	audienceParameter string
	options           []oauth2.AuthCodeOption
	config            oauth2.Config
	metadata
	http *http.Client
}

// metadata is the part of a provider's metadata that go-oidc does not expose.
type metadata struct {
	Revocation string `json:"revocation_endpoint"`
	// NamesIssuer reports that authorization responses name the issuer (RFC 9207).
	NamesIssuer bool `json:"authorization_response_iss_parameter_supported"`
}

// Discover asks the server for its identity provider, and the provider for its endpoints.
//
// A malicious server could ask for tokens that are meant for another server, and use them there. So the audience must be the server's own address
// or the one that the user expects.
func Discover(ctx context.Context, o Options) (*Provider, error) {
	server, err := ServerAddress(o.Server)
	if err != nil {
		return nil, err
	}
	p := &Provider{server: server, http: newHTTP()}
	d, err := p.describe(ctx, o.Tenant)
	if err != nil {
		return nil, err
	}
	p.audience = d.Resource
	if own, _ := ServerAddress(d.Resource); d.Resource != o.Audience && (o.Audience != "" || own != server) { //nolint:errcheck // then it is empty
		return nil, jig.Errorf(jig.CodeNotPermitted, "the server at %s wants access tokens for %q", server, d.Resource).WithField("audience").
			WithHint("if that names this server, give it with --audience")
	}
	issuer := d.AuthorizationServers[0]
	if !secure(issuer) {
		return nil, jig.Errorf(jig.CodeNotPermitted, "the address of the server's identity provider does not use https").WithField("issuer")
	}
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.http), issuer)
	if err != nil {
		return nil, jig.Errorf(jig.CodeUnavailable, "the identity provider %s cannot be reached: %w", issuer, err)
	}
	if err := found.Claims(&p.metadata); err != nil {
		return nil, jig.Errorf(jig.CodeUnavailable, "the identity provider %s cannot be reached: %w", issuer, err)
	}
	endpoint := found.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInParams // a public client has no secret
	for _, address := range []string{endpoint.AuthURL, endpoint.TokenURL, endpoint.DeviceAuthURL, p.Revocation} {
		if address != "" && !secure(address) {
			return nil, jig.Errorf(jig.CodeNotPermitted, "an endpoint of the identity provider %s does not use https", issuer).WithField("issuer")
		}
	}
	p.issuer = issuer
	p.config = oauth2.Config{ClientID: d.CommandLine.ClientID, Endpoint: endpoint, Scopes: d.CommandLine.Scopes}
	if name := d.CommandLine.AudienceParameter; name == "resource" || name == "audience" {
		p.audienceParameter = name
		p.options = []oauth2.AuthCodeOption{oauth2.SetAuthURLParam(name, p.audience)}
	}
	return p, nil
}

// newHTTP returns a client for requests to the server and to the provider. It follows redirects of GET requests to addresses with https, but not of
// requests that send codes or tokens.
func newHTTP() *http.Client {
	return &http.Client{Timeout: fetchTimeout, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if via[0].Method != http.MethodGet || !secure(r.URL.String()) || len(via) > maxRedirects {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// describe fetches the server's protected resource metadata.
func (p *Provider) describe(ctx context.Context, tenant string) (api.ProtectedResource, error) {
	address := p.server + api.GetProtectedResource.Path
	if tenant != "" {
		address += "?" + url.Values{"tenant": {tenant}}.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return api.ProtectedResource{}, fmt.Errorf("ask the server: %w", err)
	}
	answer, err := p.http.Do(request)
	if err != nil {
		return api.ProtectedResource{}, jig.Errorf(jig.CodeUnavailable, "the server at %s does not answer: %w", p.server, inner(err)).
			WithHint("check JIG_URL, and whether `jig server` runs there")
	}
	defer func() { _ = answer.Body.Close() }()
	var found api.ProtectedResource
	var refused api.Problem
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxFetched))
	if err == nil {
		err = errors.Join(json.Unmarshal(text, &found), json.Unmarshal(text, &refused))
	}
	switch {
	case err == nil && answer.StatusCode == http.StatusOK && len(found.AuthorizationServers) > 0 && found.CommandLine.ClientID != "":
		return found, nil
	case err == nil && refused.Code != "":
		return found, refused.Err(&api.Values{}, 0)
	}
	return api.ProtectedResource{}, jig.Errorf(jig.CodeUnavailable, "the server at %s answered %s, but not as a jig server does", p.server, answer.Status).
		WithHint("is JIG_URL the address of a jig server?")
}

// login returns the login with a token.
func (p *Provider) login(token *oauth2.Token) (Login, error) {
	if !strings.EqualFold(token.Type(), "bearer") {
		return Login{}, jig.Errorf(jig.CodeNotPermitted, "the identity provider did not send a bearer token")
	}
	return Login{
		Server: p.server, Issuer: p.issuer, ClientID: p.config.ClientID, TokenURL: p.config.Endpoint.TokenURL, RevocationURL: p.Revocation,
		Audience: p.audience, AudienceParameter: p.audienceParameter, AccessToken: token.AccessToken, RefreshToken: token.RefreshToken, ExpiresAt: token.Expiry.UTC(),
	}, nil
}

// ServerAddress returns the normalized address of a server, under which its login is stored. The address must use https, or http on this machine;
// otherwise the error is INVALID_INPUT.
func ServerAddress(address string) (string, error) {
	u, err := url.Parse(strings.TrimRight(address, "/"))
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", jig.Errorf(jig.CodeInvalidInput, "%q is not the address of a server", address).WithField("url").WithHint("write it as https://jig.example.com")
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if !secure(u.String()) {
		return "", jig.Errorf(jig.CodeInvalidInput, "%q is not an https address, so others could read the credential", address).WithField("url").
			WithHint("use https; http is for servers on this machine")
	}
	return u.String(), nil
}

// secure reports whether an address uses https, or http on this machine.
func secure(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// inner returns the cause of a failed request, without the address that the error contains.
func inner(err error) error {
	var inURL *url.Error
	if errors.As(err, &inURL) {
		return inURL.Err
	}
	return err
}

// refusal returns the error for a failed request to the provider's token endpoint.
func refusal(ctx context.Context, issuer string, err error) error {
	var answer *oauth2.RetrieveError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("wait for the identity provider: %w", ctx.Err())
	case errors.As(err, &answer) && answer.Response.StatusCode/100 == 4 && answer.Response.StatusCode != http.StatusTooManyRequests:
		return jig.Errorf(jig.CodeNotPermitted, "the identity provider %s refused: %s", issuer, answer.ErrorCode).WithReason("login")
	}
	return jig.Errorf(jig.CodeUnavailable, "the identity provider %s cannot be reached: %w", issuer, inner(err))
}
