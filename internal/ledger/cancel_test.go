package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

func TestCancel(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		state    ledger.State
		composed bool
		want     jig.CallStatus
		event    string
		noEffect bool
	}{
		"waiting":               {writing(jig.CallWaiting, 0), false, jig.CallCanceled, "event tool.cancelled", true},
		"reserved":              {writing(jig.CallReserved, 1), false, jig.CallCanceled, "event tool.cancelled", true},
		"reserved read":         {change(writing(jig.CallReserved, 1), reads), false, jig.CallCanceled, "event tool.cancelled", false},
		"reserved, in doubt":    {change(writing(jig.CallReserved, 1), inDoubt), false, jig.CallFailed, "event tool.outcome_unknown", false},
		"executing":             {writing(jig.CallExecuting, 1), false, jig.CallFailed, "event tool.outcome_unknown", false},
		"executing read":        {change(writing(jig.CallExecuting, 1), reads), false, jig.CallCanceled, "event tool.cancelled", false},
		"executing, idempotent": {change(writing(jig.CallExecuting, 1), idempotent), false, jig.CallFailed, "event tool.outcome_unknown", false},
		"composition":           {change(writing(jig.CallExecuting, 1), idempotent), true, jig.CallCanceled, "event tool.cancelled", false},
		"unknown":               {writing(jig.CallUnknown, 1), false, jig.CallFailed, "event tool.failed", false},
	} {
		got := ledger.Cancel(row.state, "the session was canceled", row.composed)
		require.Equal(t, row.want, got.Call.Status, name)
		require.Equal(t, []string{row.event}, told(got), name)
		require.Equal(t, row.noEffect, got.Call.Result.Error.NotExecuted, name)
		code := jig.CodeCanceled
		if row.want == jig.CallFailed {
			code = jig.CodeOutcomeUnknown
		}
		require.Equal(t, code, got.Call.Result.Error.Code, name)
		require.Contains(t, got.Call.Result.Error.Message, ": the session was canceled", name)
	}
}
