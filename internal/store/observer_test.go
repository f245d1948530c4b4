package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// tally counts what a store reports to its observer.
type tally struct {
	mu    sync.Mutex
	count map[string]int
	// timed counts the calls that ended with a duration.
	timed int
}

// Write counts the lines of the log by what they say about calls.
func (y *tally) Write(line []byte) (int, error) {
	var l struct {
		Msg, Tenant, Tool, Status string
		Session                   string `json:"session_id"`
		Call                      string `json:"call_id"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return 0, err
	}
	if l.Msg == "call ended" {
		y.add("logged %s %s %s/%s %s", l.Status, l.Tool, l.Tenant, l.Session, l.Call)
	}
	return len(line), nil
}

// logged returns how often the log has a line for each call of the world's session, by status and call.
func (y *tally) logged(w world) map[string]int {
	lines := map[string]int{}
	for name, n := range y.all() {
		if words := strings.Fields(name); words[0] == "logged" && words[3] == w.tenant+"/"+w.session {
			lines[words[1]+" "+words[4]] = n
		}
	}
	return lines
}

func newTally() *tally { return &tally{count: map[string]int{}} }

func (y *tally) add(format string, args ...any) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.count[fmt.Sprintf(format, args...)]++
}

// told returns the counts without those of the log.
func (y *tally) told() map[string]int {
	told := y.all()
	maps.DeleteFunc(told, func(name string, _ int) bool { return strings.HasPrefix(name, "logged ") })
	return told
}

// all returns a copy of the counts.
func (y *tally) all() map[string]int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return maps.Clone(y.count)
}

func (y *tally) SessionStarted(string)                    { y.add("started") }
func (y *tally) SessionEnded(_ string, status jig.Status) { y.add("session %s", status) }
func (y *tally) CallStarted(tool string, attempt int)     { y.add("attempt %d %s", attempt, tool) }
func (y *tally) CallUnknown(call jig.Call)                { y.add("unknown %s", call.Tool) }
func (y *tally) CallHeld(_, document, limit string)       { y.add("held %s %s", document, limit) }
func (y *tally) CallReleased(time.Duration)               { y.add("released") }
func (y *tally) BudgetExhausted(_, budget, limit, a string) {
	y.add("budget %s %s %s", budget, limit, a)
}

func (y *tally) CallEnded(call jig.Call) {
	var code jig.Code
	if call.Result != nil && call.Result.Error != nil {
		code = call.Result.Error.Code
	}
	y.add("%s %s %s", call.Status, call.Tool, code)
	y.mu.Lock()
	defer y.mu.Unlock()
	if call.Duration() > 0 {
		y.timed++
	}
}

// observed returns a world whose observer is a tally. At the end of the test, the tally must agree with the rows.
func observed(t *testing.T) (world, *tally) {
	t.Helper()
	y := newTally()
	w := world{DB: storetest.Open(t, storetest.OwnerURL(t), storetest.URL(t), store.Options{Observer: y, Logger: slog.New(slog.NewJSONHandler(y, nil))}), tenant: storetest.Tenant(t)}
	w.session = storetest.Session(t, w.DB, w.tenant).ID
	w.begin(t, 1)
	return w, y
}

// agrees checks that the observer was told of every session, attempt and end exactly once, whichever method stored it. It checks nothing if
// the test has closed the store or deleted sessions.
func (y *tally) agrees(t *testing.T, w world) {
	t.Helper()
	told := y.told()
	want, err := w.Observable(context.WithoutCancel(t.Context()), w.tenant)
	if jig.CodeOf(err) == jig.CodeUnavailable || want["sessions"] < told["started"] {
		return
	}
	require.NoError(t, err)
	got := map[string]int{"sessions": told["started"]}
	for name, n := range told {
		words := strings.Fields(name)
		switch {
		case words[0] == "attempt":
			got["attempts"] += n
		case jig.CallStatus(words[0]).Final():
			got[words[0]+" "+words[1]] += n
		}
	}
	require.Equal(t, want, got, "what the observer was told")
}

func TestObserver_IsToldOnce(t *testing.T) {
	t.Parallel()
	w, y := observed(t)
	twice := func(do func()) {
		do()
		do()
	}
	run, ask, deny, missing := w.call(1), w.call(2), w.call(3), w.call(4)
	ask.Verdict, ask.Status = jig.VerdictAsk, jig.CallWaiting
	deny.Verdict, deny.Status = jig.VerdictDeny, jig.CallDenied
	missing.Verdict, missing.Tool, missing.Status, missing.Result = jig.VerdictRefuse, "no.tool", jig.CallFailed, new(jig.Failure(jig.Errorf(jig.CodeToolNotFound, "none")))
	twice(func() { w.admit(t, run, ask, deny, missing) })
	require.Equal(t, map[string]int{"started": 1, "denied file.write DENIED": 1, "failed no.tool TOOL_NOT_FOUND": 1}, y.told())

	twice(func() { // two attempts
		fence := w.reserve(t, run).Fence
		w.ends(t, run, fence, failing(jig.CallReserved, false))
		w.ends(t, run, fence, failing(jig.CallReserved, false))
	})
	fence := w.reserve(t, run).Fence
	twice(func() { w.ends(t, run, fence, failing(jig.CallUnknown, true)) })
	twice(func() {
		w.reconcile(t, "happened", jig.Reconciliation{Call: run.ID, Outcome: jig.OutcomeHappened, Attempt: fence})
	})
	twice(func() { w.decide(t, "no", jig.Decision{Call: ask.ID, Answer: jig.AnswerDeny}) })
	twice(func() {
		_, err := w.EndPass(t.Context(), ledger.End{Tenant: w.tenant, SessionID: w.session, Pass: 1, Status: jig.StatusCompleted})
		require.NoError(t, err)
	})
	twice(func() {
		require.NoError(t, w.CancelSession(t.Context(), ledger.End{Tenant: w.tenant, SessionID: w.session}))
	})
	want := map[string]int{
		"started": 1, "session completed": 1, "failed no.tool TOOL_NOT_FOUND": 1, "attempt 1 file.write": 1, "attempt 2 file.write": 1,
		"attempt 3 file.write": 1, "unknown file.write": 1, "succeeded file.write ": 1, "denied file.write DENIED": 2,
	}
	require.Equal(t, want, y.told())
	require.Equal(t, map[string]int{
		"unknown " + run.ID: 1, "succeeded " + run.ID: 1, "denied " + ask.ID: 1, "denied " + deny.ID: 1, "failed " + missing.ID: 1,
	}, y.logged(w), "one line for each end, and one for the question")
	require.Zero(t, y.timed, "a decision is no duration")
	y.agrees(t, w)
}

func TestObserver_DurationIsThatOfTheAttempt(t *testing.T) {
	t.Parallel()
	w, y := observed(t)
	first, second := w.call(1), w.call(2)
	w.admit(t, first, second)
	w.ends(t, first, w.reserve(t, first).Fence, nil)
	w.ends(t, second, w.reserve(t, second).Fence, func(c *ledger.Completion) { c.Whole = []byte(`{"success":true}`) })
	require.Equal(t, 2, y.timed)
	y.agrees(t, w)
}

// An attempt that reports late ends its call once. How long it took is not known: it counted as over before.
func TestObserver_LateReport(t *testing.T) {
	t.Parallel()
	w, y := observed(t)
	c := w.running(t, nil)
	fence := w.reserve(t, c).Fence
	w.ends(t, c, fence, failing(jig.CallUnknown, true))
	for range 2 {
		w.ends(t, c, fence, nil)
	}
	require.Equal(t, map[string]int{"started": 1, "attempt 1 file.write": 1, "unknown file.write": 1, "succeeded file.write ": 1}, y.told())
	require.Zero(t, y.timed)
	y.agrees(t, w)
}

func TestObserver_CancelsAndReadsTogether(t *testing.T) {
	t.Parallel()
	w, y := observed(t)
	calls := w.reads(t, 3)
	done := []ledger.QuickCompletion{quick(calls[0]), quick(calls[1])}
	for range 2 {
		_, err := w.FinishQuick(t.Context(), w.tenant, w.session, done)
		require.NoError(t, err)
		require.NoError(t, w.CancelSession(t.Context(), ledger.End{Tenant: w.tenant, SessionID: w.session}))
	}
	require.Equal(t, map[string]int{
		"started": 1, "attempt 1 file.write": 2, "succeeded file.write ": 2, "canceled file.write CANCELED": 1, "session canceled": 1,
	}, y.told())
	require.Equal(t, map[string]int{"succeeded " + calls[0].ID: 1, "succeeded " + calls[1].ID: 1, "canceled " + calls[2].ID: 1}, y.logged(w))
	y.agrees(t, w)
}

func TestObserver_Budgets(t *testing.T) {
	t.Parallel()
	w, y := observed(t)
	exhausted := []jig.Event{{Type: jig.EventBudgetExhausted, Data: []byte(`{"budget":"spending","limit":"all","action":"stop"}`)}}
	refused := budget.Refusal{Reservation: w.reservation(w.session, "turn 1", claim(1, 1)), Events: exhausted}
	for range 2 {
		require.NoError(t, w.RefuseBudget(t.Context(), refused))
	}
	require.Equal(t, 1, y.all()["budget spending all stop"])
	request := budget.Request{Reservation: w.reservation(w.session, "turn 2", claim(2, 1)), Seconds: 60, Events: exhausted}
	_, err := w.ReserveBudget(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, 1, y.all()["budget spending all stop"], "nothing was reserved, so nothing was degraded")
}

// A call that waits for a limit is held once, however often it asks, and released once.
func TestObserver_RateLimits(t *testing.T) {
	t.Parallel()
	w, y := observed(t)
	w.several(t, 2)
	require.Zero(t, w.asksLimits(t, "1.1", hourly("k", 1)).Wait)
	for range 3 {
		require.Positive(t, w.asksLimits(t, "1.2", hourly("k", 1)).Wait)
	}
	require.Equal(t, map[string]int{"started": 1, "held apis hourly": 1}, y.told())
	w.passes(t, 61*time.Minute)
	require.Zero(t, w.asksLimits(t, "1.2", hourly("k", 1)).Wait)
	require.Equal(t, map[string]int{"started": 1, "held apis hourly": 1, "released": 1}, y.told())
}

// A transaction that is rolled back is not reported.
func TestObserver_IgnoresWhatIsNotStored(t *testing.T) {
	t.Parallel()
	w, y := observed(t)
	a := ledger.Admission{Tenant: w.tenant, SessionID: w.session, Pass: 1, Calls: []jig.Call{w.call(1), w.call(1)}}
	a.Calls[0].Status, a.Calls[1].Status = jig.CallFailed, jig.CallFailed
	require.Error(t, w.Admit(t.Context(), a), "the same call twice")
	require.Equal(t, map[string]int{"started": 1}, y.told())
}
