package api

import (
	"net/http"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/tenancy"
)

// credentials lists the operations on credentials, and on the people who use them.
func credentials() []Any {
	return []Any{
		GetMe, ListAPIKeys, CreateAPIKey, RevokeAPIKey, TakeOverAPIKey, ListCredentialEvents, ListPeople, ListDependents,
		DisablePerson, EnablePerson, ListEmbedTokens, CreateEmbedToken, RevokeEmbedToken, BeginLogin, FinishLogin, Logout, GetProtectedResource,
	}
}

// BeginLoginRequest begins a login with a browser.
type BeginLoginRequest struct {
	Tenant   string `query:"tenant" doc:"Chooses among several identity providers"`
	ReturnTo string `query:"return_to" doc:"The path of this server that the browser opens afterwards. Default: /v1/me"`
}

// BeginLogin sends a browser to the identity provider.
var BeginLogin = Op[BeginLoginRequest, struct{}]{Operation: Operation{
	Name: "begin-login", Method: http.MethodGet, Path: "/v1/login", Tag: Identity, Open: true, Status: http.StatusSeeOther,
	Summary: "Send a browser to the identity provider, so that a person logs in",
	Details: "The person then has a cookie, with which requests of pages of this server act for the person.", Fails: []int{404},
}}

// FinishLogin turns the answer of the identity provider into a login.
var FinishLogin = Op[struct{}, struct{}]{Operation: Operation{
	Name: "finish-login", Method: http.MethodGet, Path: "/v1/login/callback", Tag: Identity, Open: true, Status: http.StatusSeeOther,
	Summary: "Where the identity provider sends the browser back", Fails: []int{404},
}}

// Logout ends the login of a browser.
var Logout = Op[struct{}, struct{}]{Operation: Operation{
	Name: "logout", Method: http.MethodPost, Path: "/v1/logout", Tag: Identity, Open: true, Status: http.StatusNoContent, Record: RecordEvents,
	Summary: "End the login of the browser, if it has one", Details: "The person stays signed in at the identity provider.",
}}

// ProtectedResourceRequest asks how programs get an access token.
type ProtectedResourceRequest struct {
	Tenant string `query:"tenant" doc:"Chooses among several identity providers"`
}

// ProtectedResource describes the server to programs that want an access token for it (RFC 9728).
type ProtectedResource struct {
	Resource             string      `json:"resource" doc:"The audience of the access tokens"`
	AuthorizationServers []string    `json:"authorization_servers"`
	BearerMethods        []string    `json:"bearer_methods_supported"`
	Name                 string      `json:"resource_name"`
	CommandLine          CommandLine `json:"jig_command_line" doc:"What the command line asks the identity provider for"`
}

// CommandLine says what the command line asks an identity provider for.
type CommandLine struct {
	ClientID          string   `json:"client_id"`
	Scopes            []string `json:"scopes"`
	AudienceParameter string   `json:"audience_parameter,omitempty" doc:"The parameter in which the provider expects the audience"`
}

// GetProtectedResource gets the identity provider whose access tokens the server accepts.
var GetProtectedResource = Op[ProtectedResourceRequest, ProtectedResource]{Operation: Operation{
	Name: "get-protected-resource", Method: http.MethodGet, Path: "/.well-known/oauth-protected-resource", Tag: Identity, Open: true,
	Summary: "Get the identity provider whose access tokens the server accepts (RFC 9728)", Fails: []int{404},
}}

// Me says who a request acts for, and what its credential allows.
type Me struct {
	Installation string         `json:"installation" doc:"The id of this installation of jig, which tokens about pauses, standing approvals and keys bind"`
	Tenant       string         `json:"tenant"`
	Principal    string         `json:"principal"`
	Name         string         `json:"name,omitempty" doc:"The display name from the identity provider; it does not identify the principal"`
	Groups       []string       `json:"groups" doc:"The principal's groups in the tenant"`
	Roles        []string       `json:"roles" doc:"The roles that the tenant's document gives the principal"`
	Permissions  []string       `json:"permissions" doc:"The permissions of the principal; * means all"`
	Proof        jig.Proof      `json:"proof" enum:"claimed,vouched,key,passkey" doc:"How workers know the principal: vouched if the server signs its requests, otherwise claimed"`
	Credential   UsedCredential `json:"credential"`
}

// UsedCredential describes the credential of a request.
type UsedCredential struct {
	Kind      string     `json:"kind" enum:"api_key,access_token,login,dev_login"`
	ID        string     `json:"id"`
	Name      string     `json:"name,omitempty" doc:"What the credential is for"`
	Scopes    []string   `json:"scopes" doc:"What the credential allows"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// GetMe gets who the request acts for.
var GetMe = Op[struct{}, Me]{Operation: Operation{
	Name: "get-me", Method: http.MethodGet, Path: "/v1/me", Tag: Identity,
	Summary: "Get the tenant, the principal with its roles, and what the credential allows",
}}

// APIKeys lists API keys.
type APIKeys struct { //nolint:revive // these are API keys, whatever the package is called
	Keys []credential.Credential `json:"api_keys"`
}

// ListAPIKeys lists the API keys.
var ListAPIKeys = Op[struct{}, APIKeys]{Operation: Operation{
	Name: "list-api-keys", Method: http.MethodGet, Path: "/v1/api-keys", Tag: Identity, Scope: credential.ScopeRead,
	Summary: "List the API keys, the oldest first, including those that are no longer valid",
}}

// CreateAPIKeyRequest creates an API key.
type CreateAPIKeyRequest struct {
	Body struct {
		Name      string     `json:"name,omitempty" maxLength:"200" doc:"What the key is for"`
		Principal string     `json:"principal,omitempty" maxLength:"200" doc:"The principal that the key acts as; default: that of the credential"`
		Scopes    []string   `json:"scopes,omitempty" maxItems:"10" doc:"What the key allows: read, run, decide, author, operate, manage; default: read and run"`
		ExpiresAt *time.Time `json:"expires_at,omitempty" doc:"When the key expires; default: never"`
	} `nameHint:"CreateAPIKey"`
}

// CreateAPIKey creates an API key.
var CreateAPIKey = Op[CreateAPIKeyRequest, credential.CreatedKey]{Operation: Operation{
	Name: "create-api-key", Method: http.MethodPost, Path: "/v1/api-keys", Tag: Identity, Scope: credential.ScopeManage, Record: RecordKey,
	Status: http.StatusCreated, Summary: "Create an API key",
	Details: "Only this response contains the key. A key allows no more than the credential that creates it. It acts as the principal of that " +
		"credential, or as a program.",
}}

// APIKeyPath names an API key in the path.
type APIKeyPath struct { //nolint:revive // as above
	Key string `path:"key" names:"key" maxLength:"100" doc:"The id of the key"`
}

// revoked is the text that the operations share that revoke a credential.
const revoked = "Further requests with it are refused, and its open streams end within a second."

// RevokeAPIKey revokes an API key.
var RevokeAPIKey = Op[APIKeyPath, struct{}]{Operation: Operation{
	Name: "revoke-api-key", Method: http.MethodPost, Path: "/v1/api-keys/{key}/revoke", Tag: Identity, Scope: credential.ScopeManage, Record: RecordKey,
	Status: http.StatusNoContent, Summary: "Revoke an API key", Details: revoked, Fails: []int{404},
}}

// TakeOverAPIKey makes the credential of the request the one that made an API key, and gives the key a new text.
var TakeOverAPIKey = Op[APIKeyPath, credential.CreatedKey]{Operation: Operation{
	Name: "take-over-api-key", Method: http.MethodPost, Path: "/v1/api-keys/{key}/take-over", Tag: Identity, Scope: credential.ScopeManage, Record: RecordKey,
	Summary: "Take over an API key, so that your credential is the one that made it",
	Details: "It no longer ends with the person or the key that made it. Its principal and its scopes stay; its text is a new one, because whoever made the key " +
		"knows the old one. As for new keys, it allows no more than your credential, and acts as you or as a program.",
	Fails: []int{404, 409},
}}

// CredentialEventsRequest asks for what happened with credentials.
type CredentialEventsRequest struct {
	Kind      string `query:"kind" enum:"refused,logged_in,logged_out,key_created,key_revoked,key_taken_over,embed_created,embed_revoked" doc:"Only events of this kind"`
	Principal string `query:"principal" names:"person" maxLength:"500" doc:"Only events of this principal"`
	Page
}

// ListCredentialEvents lists what happened with credentials.
var ListCredentialEvents = Op[CredentialEventsRequest, identity.CredentialEvents]{Operation: Operation{
	Name: "list-credential-events", Method: http.MethodGet, Path: "/v1/credential-events", Tag: Identity, Scope: credential.ScopeManage,
	Summary: "List the credential events of the last 90 days, the newest first",
	Details: "Logins and logouts, API keys and embed tokens that were created, taken over or revoked, and credentials of the tenant that were refused. Equal events " +
		"within a minute are one event with a count. A minute has at most 100 events of a kind; one more, without details, counts the rest.",
}}

// ListPeople lists the people, groups and keys of the tenant.
var ListPeople = Op[struct{}, tenancy.Directory]{Operation: Operation{
	Name: "list-people", Method: http.MethodGet, Path: "/v1/people", Tag: Identity, Scope: credential.ScopeRead,
	Summary: "List the people, groups and keys in the tenant's document, by name",
}}

// DependentsRequest asks what ends with a person or an API key. One of them is empty.
type DependentsRequest struct {
	Person string `query:"person" names:"person" maxLength:"200" doc:"A principal"`
	Key    string `query:"key" names:"key" maxLength:"100" doc:"Instead of a person: the id of an API key"`
}

// Dependents lists what ends with a person or an API key.
type Dependents struct {
	Dependents []identity.Dependent `json:"dependents"`
}

// ListDependents lists what ends with a person or an API key.
var ListDependents = Op[DependentsRequest, Dependents]{Operation: Operation{
	Name: "list-dependents", Method: http.MethodGet, Path: "/v1/dependents", Tag: Identity, Scope: credential.ScopeRead,
	Summary: "List what ends with a person or an API key",
	Details: "The API keys, embed tokens, logins, schedules and standing approvals that count no longer if the person is disabled or leaves the tenant's document, or if " +
		"the key is revoked. Sessions continue.",
}}

// DisableRequest disables or enables a person or a signing key.
type DisableRequest struct {
	CallHeaders
	Body Disabling
}

// Disabling names a person or a signing key. One of them is empty.
type Disabling struct {
	Person string `json:"person,omitempty" names:"person" maxLength:"128" doc:"The principal to disable or to enable"`
	Key    string `json:"key,omitempty" names:"signing_key" maxLength:"64" doc:"Instead of a person: the id of the key"`
}

// disabling returns an operation that is a call of the tool tenants.set_disabled.
func disabling(name, path, summary string) Op[DisableRequest, CalledCall] {
	return Op[DisableRequest, CalledCall]{Operation: Operation{
		Name: name, Method: http.MethodPost, Path: path, Tag: Identity, Scope: credential.ScopeAuthor, Record: RecordCall, Also: Running(), Summary: summary,
		Details: "Servers and workers refuse all requests of a disabled person, and all signatures of a disabled key. " +
			"This is a call of the tool tenants.set_disabled, under the same rules and approvals. It takes effect within a second.",
		Fails: []int{409},
	}}
}

// Whether people and keys are disabled.
var (
	DisablePerson = disabling("disable-person", "/v1/people:disable", "Disable a person or a signing key")
	EnablePerson  = disabling("enable-person", "/v1/people:enable", "Enable a disabled person or signing key again")
)

// EmbedTokens is a page of embed tokens.
type EmbedTokens struct {
	Tokens []credential.Credential `json:"embed_tokens"`
	Next   string                  `json:"next_cursor,omitempty"`
}

// ListEmbedTokens lists the embed tokens of the last week.
var ListEmbedTokens = Op[Page, EmbedTokens]{Operation: Operation{
	Name: "list-embed-tokens", Method: http.MethodGet, Path: "/v1/embed-tokens", Tag: Identity, Scope: credential.ScopeRead,
	Summary: "List the embed tokens of the last week, the newest first, including those that have ended",
}}

// CreateEmbedTokenRequest creates an embed token.
type CreateEmbedTokenRequest struct {
	Body struct {
		Session string `json:"session,omitempty" names:"session" maxLength:"192" doc:"The session that the token shows"`
		Tool    string `json:"tool,omitempty" names:"tool" maxLength:"64" doc:"The tool that the token calls, instead of a session"`
		Origin  string `json:"origin" maxLength:"300" example:"https://shop.example.com" doc:"The origin of the page that uses the token"`
	} `nameHint:"CreateEmbedToken"`
}

// CreatedEmbed is an embed token with its text, which nobody can find again.
type CreatedEmbed struct {
	credential.Credential
	Text string `json:"embed_token" doc:"The token itself; it is not stored"`
}

// CreateEmbedToken creates an embed token.
var CreateEmbedToken = Op[CreateEmbedTokenRequest, CreatedEmbed]{Operation: Operation{
	Name: "create-embed-token", Method: http.MethodPost, Path: "/v1/embed-tokens", Tag: Identity, Scope: credential.ScopeRun, Record: RecordEmbed,
	Status: http.StatusCreated, Summary: "Create an embed token",
	Details: "With the token, a page of another origin can show one session, or call one tool as the principal of the credential that creates it. Only " +
		"this response contains the token. It lasts 15 minutes, but no longer than that credential. Creating one also needs the scope read.",
	Fails: []int{404},
}}

// EmbedTokenPath names an embed token in the path.
type EmbedTokenPath struct {
	Token string `path:"embed_token" names:"embed_token" maxLength:"100" doc:"The id of the token"`
}

// RevokeEmbedToken revokes an embed token.
var RevokeEmbedToken = Op[EmbedTokenPath, struct{}]{Operation: Operation{
	Name: "revoke-embed-token", Method: http.MethodPost, Path: "/v1/embed-tokens/{embed_token}/revoke", Tag: Identity, Scope: credential.ScopeRun, Record: RecordEmbed,
	Status: http.StatusNoContent, Summary: "Revoke an embed token", Details: revoked, Fails: []int{404},
}}
