package client

import (
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

func TestPolicies_ReadsAllPages(t *testing.T) {
	t.Parallel()
	f := &fake{activity: func(_ sdk.StartActivityOptions, name string, request any) (any, error) {
		require.Equal(t, string(protocol.ReadPolicies), name)
		r := as[protocol.PoliciesRequest](t, request)
		require.Equal(t, "acme", r.Tenant)
		if r.After == "" {
			return protocol.PoliciesPage{Policies: []jig.PolicyState{{Name: "a", Rules: 1}, {Name: "b", Error: "newer"}}, More: true}, nil
		}
		require.Equal(t, "b", r.After)
		return protocol.PoliciesPage{Policies: []jig.PolicyState{{Name: "c", Rules: 2}}}, nil
	}}
	got, err := newTestClient(f).Policies(t.Context(), "acme")
	require.NoError(t, err)
	require.Equal(t, []jig.PolicyState{{Name: "a", Rules: 1}, {Name: "b", Error: "newer"}, {Name: "c", Rules: 2}}, got)
}
