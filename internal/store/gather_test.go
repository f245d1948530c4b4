package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/store/storetest"
)

// together runs do for every call while another client holds the session's row, until all wait for the first one. It returns the errors.
func (w world) together(t *testing.T, calls []jig.Call, do func(c jig.Call) error) []error {
	t.Helper()
	var all sync.WaitGroup
	errs := make([]error, len(calls))
	direct(t, storetest.URL(t), w.tenant, func(hold pgx.Tx) {
		tag, err := hold.Exec(t.Context(), "select from sessions where session_id = $1 for update", w.session)
		require.NoError(t, err)
		require.Equal(t, int64(1), tag.RowsAffected())
		for i, c := range calls {
			all.Go(func() { errs[i] = do(c) })
			if i == 0 {
				w.requireGathered(t, 1)
			}
		}
		w.requireGathered(t, len(calls))
	})
	all.Wait()
	return errs
}

// admitted returns n calls that may run.
func (w world) admitted(t *testing.T, n int) []jig.Call {
	t.Helper()
	calls := make([]jig.Call, n)
	for i := range calls {
		calls[i] = w.call(i + 1)
	}
	w.admit(t, calls...)
	return calls
}

// requireGathered waits until n transactions of the session are running or waiting.
func (w world) requireGathered(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return w.Gathered(w.tenant, w.session) == n }, 2*time.Minute, time.Millisecond)
}

// commits counts the transactions of the session's events.
func (w world) commits(t *testing.T) int {
	t.Helper()
	return len(w.column(t, "select distinct xmin::text from events where session_id = $1", w.session))
}

// Attempts that begin or end while another commit of the session is under way share the next commit. A disk that is slow to flush then delays
// a pass by a few flushes, however many calls it has.
func TestCallsThatAreReadyTogether_ShareACommit(t *testing.T) {
	t.Parallel()
	const n = 20
	w := newWorld(t)
	calls := w.admitted(t, n)
	together := func(do func(c jig.Call) error) {
		for _, err := range w.together(t, calls, do) {
			require.NoError(t, err)
		}
	}
	before := w.commits(t)
	together(func(c jig.Call) error {
		r, err := w.Reserve(t.Context(), w.request(c))
		if err == nil && (r.Outcome != ledger.ReserveRun || r.Call.ID != c.ID) {
			err = fmt.Errorf("%s: %s of %s", c.ID, r.Outcome, r.Call.ID)
		}
		return err
	})
	require.Equal(t, before+2, w.commits(t))
	together(func(c jig.Call) error {
		done, err := w.Complete(t.Context(), ledger.Completion{
			Tenant: w.tenant, SessionID: w.session, CallID: c.ID, Fence: 1, Status: jig.CallSucceeded,
			Result: jig.ToolResult{Success: true, Summary: "done " + c.ID},
		})
		if err == nil && done.Result.Summary != "done "+c.ID {
			err = fmt.Errorf("%s: %s", c.ID, done.Result.Summary)
		}
		return err
	})
	require.Equal(t, before+4, w.commits(t))
	require.Len(t, w.types(t), 2*n, "the events are numbered without gaps")
	require.Zero(t, w.Gathered(w.tenant, w.session))
}

// A statement that fails in a joint commit fails alone.
func TestCallsThatAreReadyTogether_FailAlone(t *testing.T) {
	t.Parallel()
	const n = 5
	w := newWorld(t)
	calls := w.admitted(t, n)
	for _, c := range calls {
		w.reserve(t, c)
	}
	errs := w.together(t, calls, func(c jig.Call) error {
		done := ledger.Completion{
			Tenant: w.tenant, SessionID: w.session, CallID: c.ID, Fence: 1, Status: jig.CallSucceeded, Result: jig.ToolResult{Success: true},
		}
		if c.ID == calls[n-1].ID {
			done.Status = "nonsense"
		}
		_, err := w.CompleteFast(t.Context(), done)
		return err
	})
	for i, c := range calls {
		if i == n-1 {
			require.Error(t, errs[i])
			continue
		}
		require.NoError(t, errs[i])
		require.Equal(t, jig.CallSucceeded, w.row(t, c).Status)
	}
}
