package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func TestCall_KeepsThatAFailureHadNoEffect(t *testing.T) {
	t.Parallel()
	for _, notExecuted := range []bool{true, false} {
		w := newWorld(t)
		c := w.running(t, nil)
		r := w.reserve(t, c)
		failure := &jig.Error{Code: jig.CodeUnavailable, Message: "could not connect", NotExecuted: notExecuted}
		_, err := w.Complete(t.Context(), jig.Completion{
			Tenant: w.tenant, SessionID: w.session, CallID: c.ID, Fence: r.Fence, Status: jig.CallFailed, Result: jig.Failure(failure),
		})
		require.NoError(t, err)
		require.Equal(t, notExecuted, w.row(t, c).Result.Error.NotExecuted)
	}
}

func TestCall_RefusedBeforeItsFirstAttemptHadNoEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.running(t, func(c *jig.Call) {
		refused := jig.Failure(jig.Errorf(jig.CodeInternal, "refused"))
		c.Verdict, c.Status, c.Result = jig.VerdictRefuse, jig.CallFailed, &refused
	})
	require.True(t, w.row(t, c).Result.Error.NotExecuted)
}
