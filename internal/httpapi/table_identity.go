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
}
