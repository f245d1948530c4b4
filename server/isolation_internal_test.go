package server

import (
	"encoding/json"
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/selfcheck"
	"github.com/jig-run/jig/internal/store/storetest"
)

var isolationRequests = flag.Int("api.isolation", 0, "how many requests TestIsolation_BetweenTenants makes at least")

// The suite that `jig selftest isolation` runs finds nothing, and another tenant's id takes as many queries as an unknown one.
func TestIsolation_BetweenTenants(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	victim, thief := storetest.Tenant(t), storetest.Tenant(t)
	owner, other := r.key(t, victim, 0, credential.Scopes()...), r.key(t, thief, 0, credential.Scopes()...)
	revoked, expired := r.key(t, victim, 0, credential.Scopes()...), r.key(t, victim, time.Millisecond, credential.Scopes()...)
	require.NoError(t, r.store.RevokeCredential(t.Context(), victim, revoked.Ref(), ""))
	scoped := map[string]string{}
	for _, scope := range credential.Scopes() {
		scoped[scope] = r.key(t, victim, 0, scope).Name
	}
	r.furnish(t, thief)
	r.waiting(t, victim) // so that its lists have two pages
	ids := map[string][]string{"call": {"1.1"}}
	for kind, id := range r.furnish(t, victim) {
		ids[kind] = []string{id}
	}
	suite := selfcheck.Isolation{
		URL: r.URL(), Owner: owner.Name, Other: other.Name, Scoped: scoped, Invalid: map[string]string{selfcheck.Revoked: revoked.Name, selfcheck.Expired: expired.Name},
		Tool: "todo.write", Input: json.RawMessage(`{"items":[]}`), IDs: ids,
		Requests: *isolationRequests, Cost: func() int64 { return r.wire.executed.Load() + r.temporal.requests.Load() },
	}
	report, err := suite.Run(t.Context())
	require.NoError(t, err)
	require.Empty(t, report.Findings)
	require.Equal(t, []string{"the owner has no signing_key that the other tenant lacks"}, report.NotTested)
	require.Greater(t, report.Requests, report.Operations*10)
}
