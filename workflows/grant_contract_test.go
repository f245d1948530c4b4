package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store/storetest"
)

// A grant is given for what a tool does. If the contract changes its meaning, calls need approval again.
func TestGrant_EndsWithItsContract(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	for name, row := range map[string]struct {
		change func(*jig.Tool)
		ends   bool
	}{
		"another revision":    {func(c *jig.Tool) { c.Revision++ }, true},
		"undone by a tool":    {func(c *jig.Tool) { c.Undo = ledgerRead }, true},
		"another time-out":    {func(c *jig.Tool) { c.Timeout *= 2; c.MaxAttempts++ }, true},
		"another description": {func(c *jig.Tool) { c.Description = "Pays somebody, at once." }, false},
		"another icon":        {func(c *jig.Tool) { c.Icon = "coin" }, false},
		"nothing":             {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := grantStart(t, db)
			v.sell(v.catalog(t, row.change))
			page, err := v.ListGrants(t.Context(), protocol.GrantsRequest{Tenant: v.tenant})
			require.NoError(t, err)
			require.Len(t, page.Grants, 1)

			// One call was approved by the grant under the old contract, and another one is requested under the new contract.
			_, err = v.attempt(t, ledgerPay, v.ref())
			require.NoError(t, err)
			before := v.session
			v.session = v.open(t, v.tenant)
			if !row.ends {
				require.Empty(t, page.Grants[0].Ended)
				require.Equal(t, jig.CallReserved, v.status(t, "1.1"), "a new call is covered")
				return
			}
			require.Equal(t, jig.GrantContractChanged, page.Grants[0].Ended)
			require.Empty(t, v.ran)
			for _, session := range []string{before, v.session} {
				waiting, err := v.db.Pending(t.Context(), v.tenant, session, "1.1")
				require.NoError(t, err)
				require.Contains(t, waiting.Reasons, "the standing approval grt_1 ended: the contract of bank.pay has changed since it was given")
			}
			waiting, err := v.db.Pending(t.Context(), v.tenant, v.session, "1.2")
			require.NoError(t, err)
			require.NotContains(t, waiting.Reasons[len(waiting.Reasons)-1], "standing approval", "the grant never covered this one")
		})
	}
}

// An approver decides about the contract that was shown. A grant that comes with the approval must not apply to another contract.
func TestGrant_IsNotCreatedForAChangedContract(t *testing.T) {
	t.Parallel()
	v := waitingStart(t, storetest.New(t))
	v.sell(v.catalog(t, func(c *jig.Tool) { c.Revision++ }))
	got := v.decide(t, jig.AnswerApprove, jig.Decision{Call: "1.1", By: "ben", Grant: &jig.GrantRequest{}})
	require.Equal(t, jig.DecisionRefused, got.Outcome)
	require.Contains(t, got.Reason, "has changed since the call was shown")
	page, err := v.ListGrants(t.Context(), protocol.GrantsRequest{Tenant: v.tenant, All: true})
	require.NoError(t, err)
	require.Empty(t, page.Grants)
}
