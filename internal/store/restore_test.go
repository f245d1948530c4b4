package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// backup is a store on a database of its own, because MarkRestored marks the calls of all tenants.
type backup struct {
	*store.DB
	app string
}

func newBackup(t *testing.T) backup {
	t.Helper()
	owner, app := storetest.NewDatabase(t)
	return backup{storetest.Open(t, owner, app, store.Options{}), app}
}

// world returns a tenant's session in the backup.
func (b backup) world(t *testing.T, tenant string) world {
	t.Helper()
	w := world{DB: b.DB, tenant: tenant, session: storetest.Session(t, b.DB, tenant).ID}
	w.begin(t, 1)
	return w
}

func (b backup) mark(t *testing.T) []store.Restored {
	t.Helper()
	marked, err := b.MarkRestored(t.Context(), false)
	require.NoError(t, err)
	return marked
}

// column reads strings as the application role, with a tenant set.
func (b backup) column(t *testing.T, tenant, query string, args ...any) (found []string) {
	t.Helper()
	direct(t, b.app, tenant, func(tx pgx.Tx) {
		rows, err := tx.Query(t.Context(), query, args...)
		require.NoError(t, err)
		found, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
	})
	return found
}

// openStates maps each state in which a backup can hold an open call to a function that brings a call into that state.
var openStates = map[string]func(world, *testing.T, func(*jig.Call)) jig.Call{
	"waiting": waitingCall,
	"approved": func(w world, t *testing.T, kind func(*jig.Call)) jig.Call { //nolint:thelper // a case of a test table, not a helper
		t.Helper()
		c := waitingCall(w, t, kind)
		w.decide(t, "approve", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, By: "ben"})
		return c
	},
	"reserved": func(w world, t *testing.T, kind func(*jig.Call)) jig.Call { t.Helper(); return w.running(t, kind) }, //nolint:thelper // a case of a test table, not a helper
	"executing": func(w world, t *testing.T, kind func(*jig.Call)) jig.Call { //nolint:thelper // a case of a test table, not a helper
		t.Helper()
		c := w.running(t, kind)
		require.Equal(t, ledger.ReserveRun, w.reserve(t, c).Outcome)
		return c
	},
	"given back": func(w world, t *testing.T, kind func(*jig.Call)) jig.Call { //nolint:thelper // a case of a test table, not a helper
		t.Helper()
		c := w.running(t, kind)
		w.ends(t, c, w.reserve(t, c).Fence, failing(jig.CallReserved, false))
		return c
	},
	"unknown": func(w world, t *testing.T, kind func(*jig.Call)) jig.Call { //nolint:thelper // a case of a test table, not a helper
		t.Helper()
		c := w.running(t, kind)
		w.ends(t, c, w.reserve(t, c).Fence, failing(jig.CallUnknown, false))
		return c
	},
}

func waitingCall(w world, t *testing.T, kind func(*jig.Call)) jig.Call { //nolint:thelper // the world comes first, as the receiver of its methods does
	t.Helper()
	return w.running(t, func(c *jig.Call) {
		kind(c)
		c.Verdict, c.Status = jig.VerdictAsk, jig.CallWaiting
	})
}

func writes(c *jig.Call)         { c.Write, c.Idempotent = true, false }
func drafts(c *jig.Call)         { c.Write, c.Idempotent = false, false }
func writesUnderKey(c *jig.Call) { c.Write, c.Idempotent = true, true }
func reads(c *jig.Call)          { c.Write, c.Idempotent = false, true }

// inDoubt returns the attempt that the open question is about.
func (w world) inDoubt(t *testing.T, c jig.Call) int {
	t.Helper()
	p, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
	require.NoError(t, err)
	return p.Attempt
}

// goesOn approves the call if it waits and then begins an attempt, as happens after the restore.
func (w world) goesOn(t *testing.T, c jig.Call) ledger.Reservation {
	t.Helper()
	if w.row(t, c).Status == jig.CallWaiting {
		ruled := w.decide(t, "approve after", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, By: "ben"})
		require.Equal(t, jig.DecisionAccepted, ruled.Outcome, ruled.Reason)
	}
	return w.reserve(t, c)
}

// count returns how many events of a type the session's log has.
func (w world) count(t *testing.T, kind jig.EventType) (n int) {
	t.Helper()
	for _, e := range w.log(t) {
		if e.Type == kind {
			n++
		}
	}
	return n
}

func TestRestoredCall_RunsOnlyAfterAPersonSaidThatItDidNotHappen(t *testing.T) {
	t.Parallel()
	b := newBackup(t)
	type open struct {
		name string
		w    world
		c    jig.Call
	}
	var all []open
	for state, enter := range openStates {
		for kind, is := range map[string]func(*jig.Call){"write": writes, "draft": drafts} {
			for _, outcome := range []jig.ReconcileOutcome{jig.OutcomeHappened, jig.OutcomeNotHappened} {
				w := b.world(t, "acme")
				all = append(all, open{fmt.Sprintf("%s %s %s", state, kind, outcome), w, enter(w, t, is)})
			}
		}
	}
	marked := b.mark(t)
	require.Len(t, marked, len(all))
	for _, one := range all {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			w, c := one.w, one.c
			before := w.row(t, c)
			require.Contains(t, marked, store.Restored{
				Tenant: w.tenant, SessionID: w.session, Call: c.ID, Tool: c.Tool, Status: before.Status, Asks: true,
			})
			require.Equal(t, 1, w.count(t, jig.EventToolInDoubt))
			require.Equal(t, string(before.Status), w.last(t, jig.EventToolInDoubt)["status"])
			started := w.count(t, jig.EventToolStarted)

			require.Equal(t, ledger.ReserveUnknown, w.goesOn(t, c).Outcome)
			require.Equal(t, started, w.count(t, jig.EventToolStarted), "nothing began")
			p, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
			require.NoError(t, err)
			require.Equal(t, jig.PendingReconcile, p.Kind)
			if before.Status != jig.CallUnknown {
				require.Contains(t, p.Reasons[0], "restored from a backup")
			}

			for _, before := range []int{0, 1, 2} {
				stale := w.reconcile(t, fmt.Sprint("stale", before), jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeNotHappened, Attempt: before})
				require.Equal(t, jig.DecisionRefused, stale.Outcome, "about attempt %d, from before the restore", before)
			}
			outcome := jig.OutcomeHappened
			if one.name[len(one.name)-len("not_happened"):] == "not_happened" {
				outcome = jig.OutcomeNotHappened
			}
			require.Equal(t, jig.DecisionAccepted, w.reconcile(t, "word", jig.Reconciliation{Call: c.ID, Outcome: outcome, Attempt: p.Attempt}).Outcome)
			r := w.reserve(t, c)
			if outcome == jig.OutcomeHappened {
				require.Equal(t, ledger.ReserveFinal, r.Outcome)
				return
			}
			require.Equal(t, ledger.ReserveRun, r.Outcome)
			require.False(t, r.InDoubt)
			require.Equal(t, jig.CallSucceeded, w.ends(t, c, r.Fence, nil).Status)
			require.Equal(t, started+1, w.count(t, jig.EventToolStarted))
		})
	}
}

// A worker that was cut off from the database during the restore may still report.
func TestRestoredCall_IsNotFinalizedByAnAttemptFromBefore(t *testing.T) {
	t.Parallel()
	b := newBackup(t)
	type open struct {
		state string
		w     world
		c     jig.Call
	}
	var all []open
	for state, enter := range openStates {
		w := b.world(t, "acme")
		all = append(all, open{state, w, enter(w, t, writes)})
	}
	b.mark(t)
	refused := func(one open, when string) {
		for fence := range 10 {
			for _, status := range []jig.CallStatus{jig.CallSucceeded, jig.CallFailed, jig.CallReserved} {
				stored := one.w.ends(t, one.c, fence, func(c *ledger.Completion) { c.Status = status })
				require.False(t, stored.Status.Final(), "%s, %s: fence %d", one.state, when, fence)
				require.False(t, stored.Late)
			}
		}
	}
	for _, one := range all {
		refused(one, "before it is asked about")
		require.Equal(t, ledger.ReserveUnknown, one.w.goesOn(t, one.c).Outcome)
		refused(one, "while it is unknown")
		one.w.reconcile(t, "word", jig.Reconciliation{Call: one.c.ID, Outcome: jig.OutcomeNotHappened, Attempt: one.w.inDoubt(t, one.c)})
		refused(one, "before it runs again")
		require.Equal(t, ledger.ReserveRun, one.w.reserve(t, one.c).Outcome)
		refused(one, "while it runs again")
	}
}

func TestRestoredCall_ThatIsIdempotentRunsInDoubt(t *testing.T) {
	t.Parallel()
	b := newBackup(t)
	for state, enter := range openStates {
		if state == "unknown" {
			continue // a person is asked about it anyway
		}
		w := b.world(t, "acme")
		c := enter(w, t, writesUnderKey)
		require.Equal(t, []store.Restored{{
			Tenant: w.tenant, SessionID: w.session, Call: c.ID, Tool: c.Tool, Status: w.row(t, c).Status,
		}}, b.mark(t), state)
		r := w.goesOn(t, c)
		require.Equal(t, ledger.ReserveRun, r.Outcome, state)
		require.True(t, r.InDoubt, state)
		require.Less(t, r.Fence, 4, "%s: its attempt counter continues", state)
	}
}

// Steps that ran since the backup would get the same keys again, but the backup does not know them.
func TestRestoredComposition_AsksBeforeItBegins(t *testing.T) {
	t.Parallel()
	b := newBackup(t)
	composition := func(c *jig.Call) {
		writesUnderKey(c)
		c.Tool, c.Version = "page.make", "c1"
	}
	require.NoError(t, b.PutDocument(t.Context(), "acme", "composition", "page.make", "c1", []byte("steps")))
	for state, enter := range openStates {
		if state == "unknown" {
			continue // a person is asked about it anyway
		}
		w := b.world(t, "acme")
		c := enter(w, t, composition)
		require.Contains(t, b.mark(t), store.Restored{
			Tenant: w.tenant, SessionID: w.session, Call: c.ID, Tool: c.Tool, Status: w.row(t, c).Status, Asks: true,
		}, state)
		require.Equal(t, ledger.ReserveUnknown, w.goesOn(t, c).Outcome, state)
		w.reconcile(t, "word", jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeNotHappened, Attempt: w.inDoubt(t, c)})
		r := w.reserve(t, c)
		require.Equal(t, ledger.ReserveRun, r.Outcome, state)
		w.ends(t, c, r.Fence, nil)
	}

	w := b.world(t, "acme")
	c := openStates["executing"](w, t, composition)
	f, err := w.BeginFrame(t.Context(), w.composition(c, 1))
	require.NoError(t, err)
	step := w.step(f, "pay")
	w.move(t, w.moving(f, step))
	marked := b.mark(t)
	require.Equal(t, []bool{false, true}, []bool{marked[0].Asks, marked[1].Asks}, "for a composition that has begun, a person is asked about its step")
	require.Equal(t, ledger.ReserveUnknown, w.reserve(t, step).Outcome)
	r := w.reserve(t, c)
	require.Equal(t, ledger.ReserveRun, r.Outcome)
	require.Equal(t, 2, r.Fence)
}

func TestRestoredCall_ThatWaitsCannotBeChangedDeniedOrExpire(t *testing.T) {
	t.Parallel()
	b := newBackup(t)
	for name, is := range map[string]func(*jig.Call){"write": writes, "idempotent write": writesUnderKey} {
		w := b.world(t, "acme")
		c := waitingCall(w, t, is)
		b.mark(t)

		edited, shown := c, pendingOf(c)
		edited.Input, edited.Digest, shown.Digest = []byte(`{"path":"b"}`), "d2", "d2"
		refused, err := w.Decide(t.Context(), approval.DecisionRequest{
			Tenant: w.tenant, SessionID: w.session, Key: "edit", Principal: jig.Principal{ID: "ben"}, Edited: &edited, Fresh: &shown,
			Now: time.Now(), Decision: jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, Input: edited.Input},
		})
		require.NoError(t, err)
		require.Equal(t, jig.DecisionRefused, refused.Outcome, name)
		require.Contains(t, refused.Reason, "the input cannot be changed any more", name)

		lapse, err := w.Lapse(t.Context(), w.tenant, w.session, c.ID, nil, time.Now().Add(1000*time.Hour))
		require.NoError(t, err)
		require.Equal(t, jig.CallWaiting, lapse.Status, name)

		require.Equal(t, jig.CallUnknown, w.decide(t, "no", jig.Decision{Call: c.ID, Answer: jig.AnswerDeny, By: "ben"}).Status, name)
		p, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
		require.NoError(t, err)
		require.Equal(t, jig.PendingReconcile, p.Kind, name)
	}
}

func TestRestore_LeavesHarmlessAndEndedCallsAlone(t *testing.T) {
	t.Parallel()
	b := newBackup(t)
	for _, enter := range openStates {
		enter(b.world(t, "acme"), t, reads)
	}
	w := b.world(t, "acme")
	openStates["unknown"](w, t, writesUnderKey)
	over := b.world(t, "acme")
	done := over.running(t, writes)
	over.complete(t, done, over.reserve(t, done).Fence, jig.CallSucceeded)
	require.Empty(t, b.mark(t))
	require.Zero(t, over.count(t, jig.EventToolInDoubt))
	require.Equal(t, ledger.ReserveFinal, over.reserve(t, done).Outcome)
}

func TestRestore_MarksAllTenantsOnceAndAuditsIt(t *testing.T) {
	t.Parallel()
	b := newBackup(t)
	var calls []store.Restored
	var worlds []world
	for _, tenant := range []string{"acme", "zoo"} {
		for range 2 {
			w := b.world(t, tenant)
			c := w.running(t, writes)
			worlds = append(worlds, w)
			calls = append(calls, store.Restored{
				Tenant: tenant, SessionID: w.session, Call: c.ID, Tool: c.Tool, Status: jig.CallReserved, Asks: true,
			})
		}
	}
	slices.SortFunc(calls, func(x, y store.Restored) int {
		if x.Tenant+x.SessionID < y.Tenant+y.SessionID {
			return -1
		}
		return 1
	})
	listed, err := b.MarkRestored(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, calls, listed)
	for _, w := range worlds {
		require.Zero(t, w.count(t, jig.EventToolInDoubt), "a dry run changes nothing")
	}
	require.Equal(t, calls, b.mark(t))
	require.Empty(t, b.mark(t), "they are already marked")
	for _, w := range worlds {
		require.Equal(t, 1, w.count(t, jig.EventToolInDoubt))
		entries := b.column(t, w.tenant, "select entry from audit where session_id = $1", w.session)
		require.Len(t, entries, 1)
		var entry audit.Entry
		require.NoError(t, json.Unmarshal([]byte(entries[0]), &entry))
		require.Equal(t, audit.AuditInDoubt, entry.Kind)
		require.Equal(t, "1.1", entry.Call)
		require.Equal(t, "d1", entry.Digest)
		require.Equal(t, jig.CallReserved, entry.Status)
		require.Contains(t, entry.Reason, "restored from a backup")
		require.Empty(t, entry.By)
	}
}

func TestRestore_EndedSessionsSayThatTheirMarkedCallsAreInDoubt(t *testing.T) {
	t.Parallel()
	b := newBackup(t)
	w := b.world(t, "acme")
	c := w.running(t, writes)
	b.mark(t)
	require.NoError(t, w.CancelSession(t.Context(), ledger.End{Tenant: w.tenant, SessionID: w.session}))
	row := w.row(t, c)
	require.Equal(t, jig.CodeOutcomeUnknown, row.Result.Error.Code)
	require.False(t, row.Result.Error.NotExecuted)
}
