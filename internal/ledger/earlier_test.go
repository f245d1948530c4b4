package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

// Every status, before and after a person has spoken: as a write, as a read, and as a call that other calls make up.
func TestEarlier_Counts(t *testing.T) {
	t.Parallel()
	type row struct {
		status jig.CallStatus
		fence  int
		code   jig.Code
		doubt  bool
	}
	const silent, spoken = 0, 1
	counts := func(r row, read, composed bool) (is [2]bool) {
		e := ledger.Earlier{Call: jig.Call{Status: r.status, Fence: r.fence}, InDoubt: r.doubt}
		if r.code != "" {
			e.Error = &jig.Error{Code: r.code, Message: "no"}
		}
		is[silent] = e.Counts(read, composed)
		e.Message = 1
		is[spoken] = e.Counts(read, composed)
		e.Message, e.Answered = 0, true
		require.Equal(t, is[spoken], e.Counts(read, composed), "an answer is a person's word, like a message")
		return is
	}
	always, untilSpoken, never := [2]bool{true, true}, [2]bool{true, false}, [2]bool{false, false}
	for name, r := range map[string]struct {
		row
		write, read, composed [2]bool
	}{
		"waits":                      {row{status: jig.CallWaiting}, always, always, always},
		"reserved":                   {row{status: jig.CallReserved}, always, always, always},
		"runs":                       {row{status: jig.CallExecuting, fence: 1}, always, always, always},
		"unknown":                    {row{status: jig.CallUnknown, fence: 1}, always, always, always},
		"succeeded":                  {row{status: jig.CallSucceeded, fence: 1}, always, untilSpoken, always},
		"answered without running":   {row{status: jig.CallSucceeded}, untilSpoken, untilSpoken, untilSpoken},
		"denied":                     {row{status: jig.CallDenied, code: jig.CodeDenied}, untilSpoken, untilSpoken, untilSpoken},
		"denied after an attempt":    {row{status: jig.CallDenied, fence: 1, code: jig.CodeDenied}, untilSpoken, untilSpoken, untilSpoken},
		"expired":                    {row{status: jig.CallExpired, code: jig.CodeExpired}, untilSpoken, untilSpoken, untilSpoken},
		"canceled":                   {row{status: jig.CallCanceled, code: jig.CodeCanceled}, untilSpoken, untilSpoken, untilSpoken},
		"refused":                    {row{status: jig.CallFailed, code: jig.CodeUnavailable}, untilSpoken, never, untilSpoken},
		"failed":                     {row{status: jig.CallFailed, fence: 1, code: jig.CodeInternal}, always, untilSpoken, untilSpoken},
		"failed without effect":      {row{status: jig.CallFailed, fence: 1, code: jig.CodeConflict}, untilSpoken, untilSpoken, untilSpoken},
		"timed out":                  {row{status: jig.CallFailed, fence: 1, code: jig.CodeTimeout}, always, never, untilSpoken},
		"limited":                    {row{status: jig.CallFailed, fence: 1, code: jig.CodeRateLimited}, untilSpoken, never, untilSpoken},
		"unavailable":                {row{status: jig.CallFailed, fence: 1, code: jig.CodeUnavailable}, always, never, untilSpoken},
		"not found":                  {row{status: jig.CallFailed, fence: 1, code: jig.CodeNotFound}, untilSpoken, never, untilSpoken},
		"given up":                   {row{status: jig.CallFailed, fence: 1, code: jig.CodeOutcomeUnknown}, always, untilSpoken, untilSpoken},
		"canceled while it may have": {row{status: jig.CallCanceled, fence: 1, code: jig.CodeCanceled, doubt: true}, always, always, always},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, r.write, counts(r.row, false, false), "write")
			require.Equal(t, r.read, counts(r.row, true, false), "read")
			require.Equal(t, r.composed, counts(r.row, false, true), "composed")
		})
	}
}
