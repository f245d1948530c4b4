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
		details: "The answer is the only one that has the key. A key allows no more than the credential that creates it. It acts as the principal of that " +
			"credential, or as a program.",
	}, a.createKey)
	add(a, operation{
		id: "revoke-api-key", method: http.MethodPost, path: "/v1/api-keys/{key}/revoke", tag: tagIdentity, scope: apikey.ScopeManage, record: recordKey,
		status: http.StatusNoContent, does: "End an API key", details: "Requests with it are refused from then on, and its open streams end within a second.",
		fails: []int{404},
	}, a.revokeKey)
	add(a, operation{
		id: "list-credential-events", method: http.MethodGet, path: "/v1/credential-events", tag: tagIdentity, scope: apikey.ScopeManage,
		does: "List what happened with credentials in the last 90 days, the newest first",
		details: "Logins, API keys and embed tokens that were made or ended, and credentials of the tenant that were refused. What is the same within a minute is " +
			"one event with a count. A minute has at most 100 events of a kind; one more, without details, counts the rest.",
	}, a.listCredentialEvents)
	add(a, operation{
		id: "list-people", method: http.MethodGet, path: "/v1/people", tag: tagIdentity, scope: apikey.ScopeRead,
		does: "List the people, the groups and the keys that the tenant's document knows, by name",
	}, a.listPeople)
	const disables = "This is a call of the tool tenants.set_disabled, under the same rules and approvals. It takes effect within a second."
	add(a, operation{
		id: "disable-person", method: http.MethodPost, path: "/v1/people:disable", tag: tagIdentity, scope: apikey.ScopeAuthor, record: recordCall, also: running(),
		does: "Refuse everything that a person asks for, or every signature of a key", details: disables, fails: []int{409},
	}, a.disable)
	add(a, operation{
		id: "enable-person", method: http.MethodPost, path: "/v1/people:enable", tag: tagIdentity, scope: apikey.ScopeAuthor, record: recordCall, also: running(),
		does: "Let a disabled person act again, or a disabled key sign", details: disables, fails: []int{409},
	}, a.enable)
	add(a, operation{
		id: "list-embed-tokens", method: http.MethodGet, path: "/v1/embed-tokens", tag: tagIdentity, scope: apikey.ScopeRead,
		does: "List the embed tokens, the oldest first, including those that ended within a week",
	}, a.listEmbeds)
	add(a, operation{
		id: "create-embed-token", method: http.MethodPost, path: "/v1/embed-tokens", tag: tagIdentity, scope: apikey.ScopeRun, record: recordEmbed,
		status: http.StatusCreated, does: "Create an embed token",
		details: "A page of another origin shows one session with it, or calls one tool as the principal of the credential that creates it. The answer is the only " +
			"one that has the token. It lasts 15 minutes, and no longer than that credential. The scope read is needed, too.",
		fails: []int{404},
	}, a.createEmbed)
	add(a, operation{
		id: "revoke-embed-token", method: http.MethodPost, path: "/v1/embed-tokens/{embed_token}/revoke", tag: tagIdentity, scope: apikey.ScopeRun, record: recordEmbed,
		status: http.StatusNoContent, does: "End an embed token", details: "Requests with it are refused from then on, and its open streams end within a second.",
		fails: []int{404},
	}, a.revokeEmbed)
}
