package httpapi

import (
	"net/http"

	"github.com/jig-run/jig/internal/identity/apikey"
)

// registerIdentity adds the operations on credentials.
func (a *API) registerIdentity() {
	add(a, operation{
		id: "get-me", method: http.MethodGet, path: "/v1/me", tag: tagIdentity,
		does: "Get the tenant, the principal with its roles, and what the credential allows",
	}, a.getMe)
	add(a, operation{
		id: "list-api-keys", method: http.MethodGet, path: "/v1/api-keys", tag: tagIdentity, scope: apikey.ScopeRead,
		does: "List the API keys, the oldest first, including those that are no longer valid",
	}, a.listKeys)
	add(a, operation{
		id: "create-api-key", method: http.MethodPost, path: "/v1/api-keys", tag: tagIdentity, scope: apikey.ScopeManage, record: recordKey,
		status: http.StatusCreated, does: "Create an API key",
		details: "Only this response contains the key. A key allows no more than the credential that creates it. It acts as the principal of that " +
			"credential, or as a program.",
	}, a.createKey)
	add(a, operation{
		id: "revoke-api-key", method: http.MethodPost, path: "/v1/api-keys/{key}/revoke", tag: tagIdentity, scope: apikey.ScopeManage, record: recordKey,
		status: http.StatusNoContent, does: "Revoke an API key", details: "Further requests with it are refused, and its open streams end within a second.",
		fails: []int{404},
	}, a.revokeKey)
	add(a, operation{
		id: "take-over-api-key", method: http.MethodPost, path: "/v1/api-keys/{key}/take-over", tag: tagIdentity, scope: apikey.ScopeManage, record: recordKey,
		does: "Take over an API key, so that your credential is the one that made it",
		details: "It no longer ends with the person or the key that made it. Its principal and its scopes stay; its text is a new one, because whoever made the key " +
			"knows the old one. As for new keys, it allows no more than your credential, and acts as you or as a program.",
		fails: []int{404, 409},
	}, a.takeOverKey)
	add(a, operation{
		id: "list-credential-events", method: http.MethodGet, path: "/v1/credential-events", tag: tagIdentity, scope: apikey.ScopeManage,
		does: "List the credential events of the last 90 days, the newest first",
		details: "Logins and logouts, API keys and embed tokens that were created, taken over or revoked, and credentials of the tenant that were refused. Equal events " +
			"within a minute are one event with a count. A minute has at most 100 events of a kind; one more, without details, counts the rest.",
	}, a.listCredentialEvents)
	add(a, operation{
		id: "list-people", method: http.MethodGet, path: "/v1/people", tag: tagIdentity, scope: apikey.ScopeRead,
		does: "List the people, groups and keys in the tenant's document, by name",
	}, a.listPeople)
	add(a, operation{
		id: "list-dependents", method: http.MethodGet, path: "/v1/dependents", tag: tagIdentity, scope: apikey.ScopeRead,
		does: "List what ends with a person or an API key",
		details: "The API keys, embed tokens, logins, schedules and standing approvals that count no longer if the person is disabled or leaves the tenant's document, or if " +
			"the key is revoked. Sessions continue.",
	}, a.listDependents)
	const disables = "Servers and workers refuse all requests of a disabled person, and all signatures of a disabled key. " +
		"This is a call of the tool tenants.set_disabled, under the same rules and approvals. It takes effect within a second."
	add(a, operation{
		id: "disable-person", method: http.MethodPost, path: "/v1/people:disable", tag: tagIdentity, scope: apikey.ScopeAuthor, record: recordCall, also: running(),
		does: "Disable a person or a signing key", details: disables, fails: []int{409},
	}, a.disable)
	add(a, operation{
		id: "enable-person", method: http.MethodPost, path: "/v1/people:enable", tag: tagIdentity, scope: apikey.ScopeAuthor, record: recordCall, also: running(),
		does: "Enable a disabled person or signing key again", details: disables, fails: []int{409},
	}, a.enable)
	add(a, operation{
		id: "list-embed-tokens", method: http.MethodGet, path: "/v1/embed-tokens", tag: tagIdentity, scope: apikey.ScopeRead,
		does: "List the embed tokens of the last week, the newest first, including those that have ended",
	}, a.listEmbeds)
	add(a, operation{
		id: "create-embed-token", method: http.MethodPost, path: "/v1/embed-tokens", tag: tagIdentity, scope: apikey.ScopeRun, record: recordEmbed,
		status: http.StatusCreated, does: "Create an embed token",
		details: "With the token, a page of another origin can show one session, or call one tool as the principal of the credential that creates it. Only " +
			"this response contains the token. It lasts 15 minutes, but no longer than that credential. Creating one also needs the scope read.",
		fails: []int{404},
	}, a.createEmbed)
	add(a, operation{
		id: "revoke-embed-token", method: http.MethodPost, path: "/v1/embed-tokens/{embed_token}/revoke", tag: tagIdentity, scope: apikey.ScopeRun, record: recordEmbed,
		status: http.StatusNoContent, does: "Revoke an embed token", details: "Further requests with it are refused, and its open streams end within a second.",
		fails: []int{404},
	}, a.revokeEmbed)
}
