package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

func TestMayUndoAgain_OnlyAfterACertainFailure(t *testing.T) {
	t.Parallel()
	failure := func(code jig.Code) jig.Call {
		r := jig.Failure(jig.Errorf(code, "no"))
		return jig.Call{Status: jig.CallFailed, Result: &r}
	}
	for status, again := range map[jig.CallStatus]bool{
		jig.CallWaiting: false, jig.CallReserved: false, jig.CallExecuting: false, jig.CallUnknown: false, jig.CallSucceeded: false,
		jig.CallDenied: true, jig.CallExpired: true, jig.CallCanceled: true, jig.CallDuplicate: false,
	} {
		require.Equal(t, again, ledger.MayUndoAgain(jig.Call{Status: status}), status)
	}
	require.True(t, ledger.MayUndoAgain(failure(jig.CodeNotFound)))
	require.False(t, ledger.MayUndoAgain(failure(jig.CodeOutcomeUnknown)))
}
