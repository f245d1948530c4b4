package workflows_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// The mutation suite. Between the decision on a call and its execution, one or two things are changed: by the database's owner, in
// the input of the activity, in the catalog, or in the policies. What would run is then no longer what a person approved, so it
// must not run.

// start brings call 1.1 into the state in which the mutation finds it.
type start func(t *testing.T, db *store.DB) *vault

// approvedStart returns a vault in which one person has approved the payment.
func approvedStart(t *testing.T, db *store.DB) *vault {
	t.Helper()
	v := newVault(t, db)
	require.Equal(t, jig.DecisionAccepted, v.say(t, jig.AnswerApprove, "1.1", "ben").Outcome)
	require.Equal(t, jig.CallReserved, v.status(t, "1.1"))
	return v
}

// quorumStart returns a vault in which two people of finance have approved the payment, as a rule demands.
func quorumStart(t *testing.T, db *store.DB) *vault {
	t.Helper()
	v := newVault(t, db, quorumRule)
	require.Equal(t, jig.CallWaiting, v.say(t, jig.AnswerApprove, "1.1", "fay").Status)
	require.Equal(t, jig.CallReserved, v.say(t, jig.AnswerApprove, "1.1", "flo").Status)
	return v
}

// waitingStart returns a vault in which nobody has decided.
func waitingStart(t *testing.T, db *store.DB) *vault {
	t.Helper()
	return newVault(t, db)
}

// deniedStart returns a vault in which somebody has denied the payment.
func deniedStart(t *testing.T, db *store.DB) *vault {
	t.Helper()
	v := newVault(t, db)
	require.Equal(t, jig.CallDenied, v.say(t, jig.AnswerDeny, "1.1", "ben").Status)
	return v
}

// grantStart returns a vault in which a grant has approved the payment.
func grantStart(t *testing.T, db *store.DB) *vault {
	t.Helper()
	v := newVault(t, db)
	pay, _ := v.Tool(ledgerPay)
	require.NoError(t, db.PutGrant(t.Context(), jig.Grant{
		Tenant: v.tenant, ID: "grt_1", Tool: ledgerPay, Meaning: pay.Meaning, When: "input.amount < 15", MaxUses: 3, ExpiresAt: time.Date(2126, 1, 1, 0, 0, 0, 0, time.UTC), By: []string{"ben"}, Claimed: true,
	}))
	v.session = v.open(t, v.tenant)
	require.Equal(t, jig.CallReserved, v.status(t, "1.1"))
	require.Equal(t, jig.CallWaiting, v.status(t, "1.2"), "the grant is for small payments")
	return v
}

func TestChangeAfterTheDecision_DoesNotRun(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	total := 0
	for from, table := range map[string]struct {
		start start
		rows  map[string]mutation
	}{
		"approved": {approvedStart, approvedMutations()}, "quorum": {quorumStart, quorumMutations()}, "waiting": {waitingStart, waitingMutations()},
		"denied": {deniedStart, deniedMutations()}, "grant": {grantStart, grantMutations()},
	} {
		for name, m := range table.rows {
			total++
			t.Run(from+"/"+name, func(t *testing.T) {
				t.Parallel()
				v := table.start(t, db)
				if m.change != nil {
					m.change(t, v)
				}
				if len(m.sql) > 0 {
					v.update(t, m.sql...)
				}
				in := v.ref()
				if m.in != nil {
					m.in(t, v, &in)
				}
				v.requireEnd(t, m, in)
			})
		}
	}
	require.Greater(t, total, 100)
}

// requireEnd attempts the call three times and checks the outcome.
func (v *vault) requireEnd(t *testing.T, m mutation, in activities.RunInput) {
	t.Helper()
	name := m.activity
	if name == "" {
		name = ledgerPay
	}
	approved := fmt.Sprintf("%s %s 1.1 to bob 10", ledgerPay, v.session)
	for range 3 {
		ran, err := v.attempt(t, name, in)
		switch m.end {
		case missing, away:
			require.Equal(t, jig.Code(m.end), activities.ErrorFrom(err).Code, "%v", err)
			require.Empty(t, v.effects())
		case asked, doubt, denied, failed:
			require.NoError(t, err)
			states := map[ending]jig.CallStatus{asked: jig.CallWaiting, doubt: jig.CallUnknown, denied: jig.CallDenied, failed: jig.CallFailed}
			require.Equal(t, states[m.end], ran.State)
			require.Equal(t, m.end == asked || m.end == doubt, ran.Ask != nil)
			require.Empty(t, v.effects())
		case same:
			require.NoError(t, err)
			require.Equal(t, jig.CallSucceeded, ran.State)
			require.Equal(t, []string{approved}, v.effects())
		case unasked, unseen:
			require.NoError(t, err)
			require.Equal(t, jig.CallSucceeded, ran.State)
			require.Len(t, v.effects(), 1)
		}
	}
	if m.end == asked {
		v.requireAsksAgain(t, name, in)
	}
}

// requireAsksAgain checks that, after new decisions, exactly what was shown runs, once.
func (v *vault) requireAsksAgain(t *testing.T, name string, in activities.RunInput) {
	t.Helper()
	v.tenant, v.session = in.Tenant, in.SessionID
	var shown jig.Pending
	for round := range 3 { // a change from before the first decision is noticed only after it, and is then shown
		require.Less(t, round, 2, "people are asked again and again")
		var err error
		shown, err = v.db.Pending(t.Context(), in.Tenant, in.SessionID, in.Call)
		require.NoError(t, err)
		require.Equal(t, jig.PendingApproval, shown.Kind)
		require.False(t, shown.Truncated)
		for _, by := range []string{"fay", "flo", "fred"} {
			if v.status(t, in.Call) == jig.CallWaiting {
				require.Equal(t, jig.DecisionAccepted, v.say(t, jig.AnswerApprove, in.Call, by).Outcome)
			}
		}
		ran, err := v.attempt(t, name, in)
		require.NoError(t, err)
		if ran.State == jig.CallSucceeded {
			break
		}
		require.Equal(t, jig.CallWaiting, ran.State)
		require.Empty(t, v.effects())
	}
	ran, err := v.attempt(t, name, in)
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, ran.State)
	var input transfer
	require.NoError(t, json.Unmarshal(shown.Input, &input))
	require.Equal(t, []string{fmt.Sprintf("%s %s %s to %s %d", shown.Tool, in.SessionID, in.Call, input.To, input.Amount)}, v.effects())
}

// The reference that a workflow keeps of a call decides nothing. A waiting call does not run because RunLocal is asked to run it,
// and RunLocal does not run calls that do not exist.
func TestCallReference_DecidesNothing(t *testing.T) {
	t.Parallel()
	v := newVault(t, storetest.New(t))
	ref := v.ref()
	list, err := v.RunLocal(t.Context(), activities.RunLocalInput{SessionRef: ref.SessionRef, Calls: []string{"1.1", "1.2", "1.3"}})
	require.NoError(t, err)
	for _, ran := range list {
		require.Equal(t, jig.CallWaiting, ran.State)
	}
	require.Empty(t, v.effects())
	_, err = v.RunLocal(t.Context(), activities.RunLocalInput{SessionRef: ref.SessionRef, Calls: []string{"1.9"}})
	var refused *temporal.ApplicationError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, string(jig.CodeNotFound), refused.Type())
	require.Empty(t, v.effects())
}
