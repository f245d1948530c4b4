package httpapi

import (
	"net/http"

	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity/credential"
)

// registerIdentity adds the operations on credentials.
func (a *API) registerIdentity() {
	add(a, api.Operation{
		Name: "get-me", Method: http.MethodGet, Path: "/v1/me", Tag: api.Identity,
		Summary: "Get the tenant, the principal with its roles, and what the credential allows",
	}, a.getMe)
	add(a, api.Operation{
		Name: "list-api-keys", Method: http.MethodGet, Path: "/v1/api-keys", Tag: api.Identity, Scope: credential.ScopeRead,
		Summary: "List the API keys, the oldest first, including those that are no longer valid",
	}, a.listKeys)
	add(a, api.Operation{
		Name: "create-api-key", Method: http.MethodPost, Path: "/v1/api-keys", Tag: api.Identity, Scope: credential.ScopeManage, Record: api.RecordKey,
		Status: http.StatusCreated, Summary: "Create an API key",
		Details: "Only this response contains the key. A key allows no more than the credential that creates it. It acts as the principal of that " +
			"credential, or as a program.",
	}, a.createKey)
	add(a, api.Operation{
		Name: "revoke-api-key", Method: http.MethodPost, Path: "/v1/api-keys/{key}/revoke", Tag: api.Identity, Scope: credential.ScopeManage, Record: api.RecordKey,
		Status: http.StatusNoContent, Summary: "Revoke an API key", Details: "Further requests with it are refused, and its open streams end within a second.",
		Fails: []int{404},
	}, a.revokeKey)
	add(a, api.Operation{
		Name: "take-over-api-key", Method: http.MethodPost, Path: "/v1/api-keys/{key}/take-over", Tag: api.Identity, Scope: credential.ScopeManage, Record: api.RecordKey,
		Summary: "Take over an API key, so that your credential is the one that made it",
		Details: "It no longer ends with the person or the key that made it. Its principal and its scopes stay; its text is a new one, because whoever made the key " +
			"knows the old one. As for new keys, it allows no more than your credential, and acts as you or as a program.",
		Fails: []int{404, 409},
	}, a.takeOverKey)
	add(a, api.Operation{
		Name: "list-credential-events", Method: http.MethodGet, Path: "/v1/credential-events", Tag: api.Identity, Scope: credential.ScopeManage,
		Summary: "List the credential events of the last 90 days, the newest first",
		Details: "Logins and logouts, API keys and embed tokens that were created, taken over or revoked, and credentials of the tenant that were refused. Equal events " +
			"within a minute are one event with a count. A minute has at most 100 events of a kind; one more, without details, counts the rest.",
	}, a.listCredentialEvents)
	add(a, api.Operation{
		Name: "list-people", Method: http.MethodGet, Path: "/v1/people", Tag: api.Identity, Scope: credential.ScopeRead,
		Summary: "List the people, groups and keys in the tenant's document, by name",
	}, a.listPeople)
	add(a, api.Operation{
		Name: "list-dependents", Method: http.MethodGet, Path: "/v1/dependents", Tag: api.Identity, Scope: credential.ScopeRead,
		Summary: "List what ends with a person or an API key",
		Details: "The API keys, embed tokens, logins, schedules and standing approvals that count no longer if the person is disabled or leaves the tenant's document, or if " +
			"the key is revoked. Sessions continue.",
	}, a.listDependents)
	const disables = "Servers and workers refuse all requests of a disabled person, and all signatures of a disabled key. " +
		"This is a call of the tool tenants.set_disabled, under the same rules and approvals. It takes effect within a second."
	add(a, api.Operation{
		Name: "disable-person", Method: http.MethodPost, Path: "/v1/people:disable", Tag: api.Identity, Scope: credential.ScopeAuthor, Record: api.RecordCall, Also: api.Running(),
		Summary: "Disable a person or a signing key", Details: disables, Fails: []int{409},
	}, a.disable)
	add(a, api.Operation{
		Name: "enable-person", Method: http.MethodPost, Path: "/v1/people:enable", Tag: api.Identity, Scope: credential.ScopeAuthor, Record: api.RecordCall, Also: api.Running(),
		Summary: "Enable a disabled person or signing key again", Details: disables, Fails: []int{409},
	}, a.enable)
	add(a, api.Operation{
		Name: "list-embed-tokens", Method: http.MethodGet, Path: "/v1/embed-tokens", Tag: api.Identity, Scope: credential.ScopeRead,
		Summary: "List the embed tokens of the last week, the newest first, including those that have ended",
	}, a.listEmbeds)
	add(a, api.Operation{
		Name: "create-embed-token", Method: http.MethodPost, Path: "/v1/embed-tokens", Tag: api.Identity, Scope: credential.ScopeRun, Record: api.RecordEmbed,
		Status: http.StatusCreated, Summary: "Create an embed token",
		Details: "With the token, a page of another origin can show one session, or call one tool as the principal of the credential that creates it. Only " +
			"this response contains the token. It lasts 15 minutes, but no longer than that credential. Creating one also needs the scope read.",
		Fails: []int{404},
	}, a.createEmbed)
	add(a, api.Operation{
		Name: "revoke-embed-token", Method: http.MethodPost, Path: "/v1/embed-tokens/{embed_token}/revoke", Tag: api.Identity, Scope: credential.ScopeRun, Record: api.RecordEmbed,
		Status: http.StatusNoContent, Summary: "Revoke an embed token", Details: "Further requests with it are refused, and its open streams end within a second.",
		Fails: []int{404},
	}, a.revokeEmbed)
}
