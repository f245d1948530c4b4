package openid

import (
	"encoding/json"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/strictjson"
)

// Binding makes the tokens of an issuer for an audience count in a tenant.
type Binding struct {
	// Issuer is the identity provider's URL, exactly as in its tokens.
	Issuer string `json:"issuer"`
	// Audience is this server, as access tokens name it.
	Audience string `json:"audience"`
	// Tenant is the tenant of all tokens. Alternatively, TenantClaim names the claim that holds the tenant, which must be one of Tenants.
	Tenant      string   `json:"tenant,omitempty"`
	TenantClaim string   `json:"tenant_claim,omitempty"`
	Tenants     []string `json:"tenants,omitempty"`
	// GroupsClaim and NameClaim name the claims with the person's groups and name; default groups and name.
	GroupsClaim string `json:"groups_claim,omitempty"`
	NameClaim   string `json:"name_claim,omitempty"`
	// Algorithms are the signature algorithms that count; default RS256, ES256, PS256 and EdDSA.
	Algorithms []string `json:"algorithms,omitempty"`
	// AnyType accepts access tokens whose header does not say at+jwt (RFC 9068), for issuers that do not write it.
	AnyType bool `json:"any_type,omitempty"`
	// ClientID is the server's client at the issuer, for logins with a browser. Empty means no logins.
	ClientID string `json:"client_id,omitempty"`
	// ClientSecretEnv is the variable with the client's secret; empty for a public client.
	ClientSecretEnv string `json:"client_secret_env,omitempty"`
	// CommandLineClientID is the public client of `jig login`. Empty means that `jig login` does not work.
	CommandLineClientID string `json:"command_line_client_id,omitempty"`
	// AudienceParameter is the parameter with which `jig login` tells the issuer the audience: resource (RFC 8707), audience or none. Default
	// resource.
	AudienceParameter string `json:"audience_parameter,omitempty"`
	// Scopes are requested in addition to openid and profile, and by `jig login` in addition to openid and offline_access.
	Scopes []string `json:"scopes,omitempty"`

	secret string
}

// NoParameter is the [Binding.AudienceParameter] of issuers that derive the audience from the scopes.
const NoParameter = "none"

// algorithms lists the algorithms that may count. Those with a shared secret are not among them.
func algorithms() []string {
	return []string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "EdDSA"}
}

// ReadBindings reads the JSON file {"bindings": […]}. environ returns the variables that hold secrets. Errors name the field.
func ReadBindings(file []byte, environ func(name string) string) ([]Binding, error) {
	var content struct {
		Bindings []Binding `json:"bindings"`
	}
	if err := strictjson.UnmarshalKnown(file, &content); err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the file of identity providers is not valid: %w", err).
			WithHint(`write e.g. {"bindings": [{"issuer": "https://login.example.com", "audience": "https://jig.example.com", "tenant": "acme"}]}`)
	}
	if len(content.Bindings) == 0 {
		return nil, jig.Errorf(jig.CodeMissingParam, "the file of identity providers has no bindings").WithField("bindings")
	}
	seen, clients := map[[2]string]bool{}, map[[2]string]bool{}
	for _, b := range content.Bindings {
		clients[[2]string{b.Issuer, b.ClientID}], clients[[2]string{b.Issuer, b.CommandLineClientID}] = true, true
	}
	for i := range content.Bindings {
		b := &content.Bindings[i]
		if err := b.complete(environ); err != nil {
			return nil, err
		}
		if clients[b.key()] {
			return nil, jig.Errorf(jig.CodeInvalidInput, "the audience of %s is a client id, so id tokens would count as access tokens", b.Issuer).WithField("audience").
				WithHint("register an API or a resource with the issuer, and use its identifier")
		}
		if seen[b.key()] {
			return nil, jig.Errorf(jig.CodeInvalidInput, "two bindings have the issuer %s and the audience %s", b.Issuer, b.Audience).WithField("audience").
				WithHint("give each tenant an audience of its own, or use tenant_claim")
		}
		seen[b.key()] = true
	}
	return content.Bindings, nil
}

func (b Binding) key() [2]string { return [2]string{b.Issuer, b.Audience} }

// complete fills in defaults and returns an error if the binding cannot be used.
func (b *Binding) complete(environ func(name string) string) error {
	if !secure(b.Issuer) {
		return jig.Errorf(jig.CodeInvalidInput, "an issuer is not an https address").WithField("issuer").WithHint("write e.g. https://login.example.com, exactly as in its tokens")
	}
	if b.Audience == "" {
		return jig.Errorf(jig.CodeMissingParam, "the binding of %s has no audience", b.Issuer).WithField("audience").
			WithHint("name this server as the access tokens do, e.g. https://jig.example.com")
	}
	if err := b.completeTenant(); err != nil {
		return err
	}
	if b.GroupsClaim == "" {
		b.GroupsClaim = "groups"
	}
	if b.NameClaim == "" {
		b.NameClaim = "name"
	}
	if len(b.Algorithms) == 0 {
		b.Algorithms = []string{"RS256", "ES256", "PS256", "EdDSA"}
	}
	for _, algorithm := range b.Algorithms {
		if !slices.Contains(algorithms(), algorithm) {
			return jig.Errorf(jig.CodeInvalidInput, "%q is not a supported signature algorithm", algorithm).WithField("algorithms").
				WithHint("use " + strings.Join(algorithms(), ", "))
		}
	}
	if b.AudienceParameter == "" {
		b.AudienceParameter = "resource"
	}
	if parameters := []string{"resource", "audience", NoParameter}; !slices.Contains(parameters, b.AudienceParameter) {
		return jig.Errorf(jig.CodeInvalidInput, "%q is not a parameter that names an audience", b.AudienceParameter).WithField("audience_parameter").
			WithHint("use " + strings.Join(parameters, ", "))
	}
	if b.ClientSecretEnv != "" {
		if b.secret = environ(b.ClientSecretEnv); b.secret == "" {
			return jig.Errorf(jig.CodeInvalidInput, "the variable %s, with the client's secret, is not set", b.ClientSecretEnv).WithField("client_secret_env")
		}
	}
	return nil
}

func (b *Binding) completeTenant() error {
	switch {
	case b.Tenant != "" && (b.TenantClaim != "" || len(b.Tenants) > 0):
		return jig.Errorf(jig.CodeInvalidInput, "the binding of %s has a tenant and a tenant claim", b.Issuer).WithField("tenant").WithHint("use one of the two")
	case b.Tenant == "" && (b.TenantClaim == "" || len(b.Tenants) == 0):
		return jig.Errorf(jig.CodeMissingParam, "the binding of %s names no tenant", b.Issuer).WithField("tenant").WithHint("add tenant, or tenant_claim and tenants")
	}
	for _, tenant := range slices.Concat(b.Tenants, []string{b.Tenant}) {
		if tenant == "" && b.Tenant == "" {
			continue
		}
		if err := jig.CheckTenant(tenant); err != nil {
			return err
		}
	}
	return nil
}

// secure reports whether an address uses https, or http on this machine.
func secure(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// tenantOf returns the tenant of a token; "" if the binding has none for it.
func (b Binding) tenantOf(claims map[string]json.RawMessage) string {
	if b.Tenant != "" {
		return b.Tenant
	}
	if tenant := textOf(claims[b.TenantClaim]); slices.Contains(b.Tenants, tenant) {
		return tenant
	}
	return ""
}

// textOf returns a claim that is a text.
func textOf(claim json.RawMessage) (text string) {
	if json.Unmarshal(claim, &text) != nil {
		return ""
	}
	return text
}

// maxGroups bounds how many groups of a token count.
const maxGroups = 1000

// textsOf returns a claim that is a list of texts, or one text.
func textsOf(claim json.RawMessage) (list []string) {
	if json.Unmarshal(claim, &list) == nil {
		return list[:min(len(list), maxGroups)]
	}
	if text := textOf(claim); text != "" {
		return []string{text}
	}
	return nil
}
