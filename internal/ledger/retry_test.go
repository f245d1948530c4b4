package ledger_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/ledger"
)

// Failures that may pass are limited by time, and attempts that never reported by their number.
func TestReserve_LimitsRetries(t *testing.T) {
	t.Parallel()
	failed := func(s *ledger.State) { s.FailedAt, s.Failures = noon(), s.Call.Fence }
	late, inTime := noon().Add(time.Minute+1), noon().Add(time.Minute)
	for name, row := range map[string]struct {
		state  ledger.State
		now    time.Time
		limit  int
		answer ledger.ReserveOutcome
	}{
		"in time":                       {change(writing(jig.CallReserved, 40), failed), inTime, 0, ledger.ReserveRun},
		"too late":                      {change(writing(jig.CallReserved, 40), failed), late, 0, ledger.ReserveFinal},
		"too late, may have happened":   {change(change(writing(jig.CallReserved, 40), failed), inDoubt), late, 0, ledger.ReserveUnknown},
		"its worker died":               {change(change(writing(jig.CallExecuting, 41), idempotent), func(s *ledger.State) { s.FailedAt, s.Failures = noon(), 40 }), inTime, 0, ledger.ReserveRun},
		"its worker died, too late":     {change(change(writing(jig.CallExecuting, 41), idempotent), func(s *ledger.State) { s.FailedAt, s.Failures = noon(), 40 }), late, 0, ledger.ReserveUnknown},
		"a limit of attempts":           {change(change(writing(jig.CallExecuting, 5), idempotent), failed), inTime, 5, ledger.ReserveUnknown},
		"tried once before":             {change(change(writing(jig.CallExecuting, 1), reads), func(s *ledger.State) { s.Tried = true }), inTime, 0, ledger.ReserveRun},
		"tried once before, and a last": {change(change(writing(jig.CallExecuting, 2), reads), func(s *ledger.State) { s.Tried = true }), inTime, 0, ledger.ReserveFinal},
	} {
		r := request()
		r.MaxAttempts, r.RetryFor, r.Now = row.limit, time.Minute, row.now
		require.Equal(t, row.answer, ledger.Reserve(row.state, r).Answer, name)
	}
}

func TestReserve_WaitsForAnOutage(t *testing.T) {
	t.Parallel()
	r := request()
	r.RetryFor, r.Now, r.Outage = time.Minute, noon(), jig.Errorf(jig.CodeUnavailable, "refused")
	s := asking(jig.CallReserved, approvedBy("d1"))
	got := ledger.Reserve(s, r)
	require.Equal(t, ledger.ReserveHeld, got.Answer)
	require.Equal(t, &approval.CallChange{Status: jig.CallReserved, InDoubt: new(false), Failed: noon()}, got.Call)
	require.Nil(t, got.Outcome, "the approval stays")
	s.FailedAt = noon()
	require.False(t, ledger.Reserve(s, r).Changes())
	r.Now = noon().Add(time.Minute + 1)
	got = ledger.Reserve(s, r)
	require.Equal(t, ledger.ReserveFinal, got.Answer)
	require.Equal(t, jig.CallFailed, got.Call.Status)
	require.Equal(t, jig.CodeUnavailable, got.Call.Result.Error.Code)
	require.True(t, got.Call.Result.Error.NotExecuted)
	require.Equal(t, []string{"event approval.withdrawn", "event tool.failed", "audit withdrawn"}, told(got))
}
