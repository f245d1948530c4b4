package store_test

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

func quick(c jig.Call) ledger.QuickCompletion {
	now := time.Now()
	return ledger.QuickCompletion{
		CallID: c.ID, Version: c.Version, Digest: c.Digest, Input: c.Input, Status: jig.CallSucceeded, Started: now.Add(-time.Second), Finished: now,
		Result: jig.ToolResult{Success: true, Summary: "read", Data: json.RawMessage(`{"of":"` + c.ID + `"}`)},
	}
}

// reads admits n calls that only read.
func (w world) reads(t *testing.T, n int) []jig.Call {
	t.Helper()
	list := make([]jig.Call, n)
	for i := range list {
		list[i] = w.call(i + 1)
		list[i].Write, list[i].Idempotent = false, true
	}
	w.admit(t, list...)
	return list
}

func TestFinishQuick_RecordsReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	calls := w.reads(t, 3)
	failed := quick(calls[2])
	failed.Status, failed.Result = jig.CallFailed, jig.Failure(jig.Errorf(jig.CodeNotFound, "no file"))
	done := []ledger.QuickCompletion{quick(calls[0]), quick(calls[1]), failed}
	names, err := w.FinishQuick(t.Context(), w.tenant, w.session, done)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"1.1", "1.2", "1.3"}, names)
	want := []string{"tool.started", "tool.started", "tool.started", "tool.completed", "tool.completed", "tool.failed"}
	require.Equal(t, want, w.types(t))
	names, err = w.FinishQuick(t.Context(), w.tenant, w.session, done)
	require.NoError(t, err)
	require.Empty(t, names, "once")
	require.Equal(t, want, w.types(t))
	row := w.row(t, calls[1])
	require.Equal(t, jig.CallSucceeded, row.Status)
	require.Equal(t, 1, row.Fence)
	require.Equal(t, time.Second, row.Duration().Round(time.Millisecond))
	require.JSONEq(t, `{"of":"1.2"}`, string(row.Result.Data))
	require.Equal(t, ledger.ReserveFinal, w.reserve(t, calls[2]).Outcome)
	require.Equal(t, jig.CodeNotFound, w.row(t, calls[2]).Result.Error.Code)

	_, list, err := w.CallsOf(t.Context(), w.tenant, w.session, []string{"1.3", "1.1", "9.9"})
	require.NoError(t, err)
	require.Equal(t, []string{"1.1", "1.3"}, []string{list[0].ID, list[1].ID})
	_, _, err = w.CallsOf(t.Context(), w.tenant, "ses_none", []string{"1.1"})
	requireCode(t, jig.CodeNotFound, err)
}

// FinishQuick ignores everything but first attempts of reads that run without approval and match what was admitted.
func TestFinishQuick_IgnoresOtherCalls(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*jig.Call){
		"write":          func(c *jig.Call) { c.Write = true },
		"not idempotent": func(c *jig.Call) { c.Idempotent = false },
		"asks":           func(c *jig.Call) { c.Verdict, c.Status = jig.VerdictAsk, jig.CallWaiting },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.running(t, func(c *jig.Call) {
				c.Write, c.Idempotent = false, true
				change(c)
			})
			if c.Status == jig.CallWaiting {
				w.decide(t, "k", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})
			}
			w.requireNotQuick(t, quick(c))
			require.Equal(t, jig.CallReserved, w.row(t, c).Status)
		})
	}
	t.Run("changed or begun", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		c := w.reads(t, 1)[0]
		other := quick(c)
		other.Digest = "d2"
		w.requireNotQuick(t, other)
		other = quick(c)
		other.Version = "v2"
		w.requireNotQuick(t, other)
		w.reserve(t, c)
		w.requireNotQuick(t, quick(c))
		w.complete(t, c, 1, jig.CallReserved)
		w.requireNotQuick(t, quick(c))
		require.Equal(t, []string{"tool.started"}, w.types(t))
	})
}

func (w world) requireNotQuick(t *testing.T, q ledger.QuickCompletion) {
	t.Helper()
	names, err := w.FinishQuick(t.Context(), w.tenant, w.session, []ledger.QuickCompletion{q})
	require.NoError(t, err)
	require.Empty(t, names)
}

// With concurrent recorders and reservations of the same calls, each call is finished once and the log has no gap.
func TestFinishQuick_ConcurrentRecordsCountOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	calls := w.reads(t, 20)
	done := make([]ledger.QuickCompletion, len(calls))
	for i, c := range calls {
		done[len(calls)-1-i] = quick(c)
	}
	errs, names := make([]error, 8), make([][]string, 8)
	var wg sync.WaitGroup
	for i := range errs {
		mine := done
		if i%2 == 0 { // the same calls in another order
			mine = append(append([]ledger.QuickCompletion{}, done[10:]...), done[:10]...)
		}
		wg.Go(func() { names[i], errs[i] = w.FinishQuick(t.Context(), w.tenant, w.session, mine) })
		wg.Go(func() { _, _ = w.Reserve(t.Context(), w.request(calls[i])) }) //nolint:errcheck // the checks of the log below find errors
	}
	wg.Wait()
	finished := map[string]bool{}
	for i := range errs {
		require.NoError(t, errs[i])
		for _, id := range names[i] {
			require.False(t, finished[id], "twice: %s", id)
			finished[id] = true
		}
	}
	tally := map[string]int{}
	for _, kind := range w.types(t) {
		tally[kind]++
	}
	require.Equal(t, len(finished), tally["tool.completed"])
	require.Len(t, calls, tally["tool.started"])
}
