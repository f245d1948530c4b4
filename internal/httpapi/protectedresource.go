package httpapi

import (
	"net/http"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/openid"
)

// pathResource is where clients find out which identity provider's tokens the server takes (RFC 9728).
const pathResource = "/.well-known/oauth-protected-resource"

// protectedResource describes the server to programs that want an access token for it (RFC 9728).
type protectedResource struct {
	// Resource is the audience of the access tokens.
	Resource             string      `json:"resource"`
	AuthorizationServers []string    `json:"authorization_servers"`
	BearerMethods        []string    `json:"bearer_methods_supported"`
	Name                 string      `json:"resource_name"`
	CommandLine          commandLine `json:"jig_command_line"`
}

// commandLine is jig's own part of the description: what `jig login` asks the identity provider for.
type commandLine struct {
	ClientID string   `json:"client_id"`
	Scopes   []string `json:"scopes"`
	// AudienceParameter is the parameter in which the provider expects the audience; empty for none.
	AudienceParameter string `json:"audience_parameter,omitempty"`
}

// serveResource publishes the identity provider whose tokens the server accepts. The parameter tenant chooses among several.
func (a *API) serveResource(w http.ResponseWriter, r *http.Request) {
	if a.options.Providers == nil {
		a.refuse(w, r, a.problemOf(r.Context(), jig.Errorf(jig.CodeNotFound, "no identity provider is configured").WithHint("set JIG_OIDC_FILE")))
		return
	}
	b, err := a.options.Providers.CommandLine(r.URL.Query().Get("tenant"))
	if err != nil {
		a.refuse(w, r, a.problemOf(r.Context(), err))
		return
	}
	parameter := b.AudienceParameter
	if parameter == openid.NoParameter {
		parameter = ""
	}
	writeJSON(w, http.StatusOK, "application/json", protectedResource{
		Resource: b.Audience, AuthorizationServers: []string{b.Issuer}, BearerMethods: []string{"header"}, Name: "jig",
		CommandLine: commandLine{
			ClientID: b.CommandLineClientID, Scopes: slices.Concat([]string{"openid", "offline_access"}, b.Scopes), AudienceParameter: parameter,
		},
	})
}
