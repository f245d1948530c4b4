package store

import (
	"context"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// maxViewCalls and maxViewPending limit what a view of a session shows.
const (
	maxViewCalls   = 500
	maxViewPending = 500
)

// Reads lists the reads that the store answers alone. Workers answer them for clients that reach Temporal, and servers answer them without a worker.
func (db *DB) Reads() []protocol.Answer {
	return []protocol.Answer{
		protocol.ReadStatistics.AnsweredBy(db.Statistics),
	}
}

// callViewRow is a row of the query CallViews.
type callViewRow struct {
	jig.CallView

	StartedAt, FinishedAt *time.Time
	ModelWait             *ledger.ModelWait
}

func (r *callViewRow) view() jig.CallView {
	v := r.CallView
	v.DurationMS = jig.Call{StartedAt: r.StartedAt, FinishedAt: r.FinishedAt}.Duration().Milliseconds()
	if r.ModelWait != nil {
		v.Summary = "waits: " + r.ModelWait.String()
	}
	return v
}

// SessionView returns a session with its pending approvals and its latest calls (at most 500 of each), in the order in which they were
// asked for. The status is input_required when everything left to do waits for a person, in this session or in sessions that answer its
// calls. The approvals of those sessions follow the session's own, each with the call that it holds up.
func (db *DB) SessionView(ctx context.Context, tenant, id string) (jig.SessionView, error) {
	var row *sessionRow
	var open []approvalRow
	var latest []callViewRow
	var tally []countRow
	var held, stuck *int
	var waits [][]jig.Wait
	var paused []jig.Pause
	var delegated []delegatedRow
	var below []delegatedApprovalRow
	var belowWaits []delegatedWaitRow
	var waiting []rateWaitingRow
	var model *ledger.ModelWait
	err := db.snapshot(ctx, tenant, func(t *tx) {
		first(t.queue("SessionGet", tenant, id), &row)
		list(t.queue("ApprovalsOpenOfSession", tenant, id, maxViewPending), &open)
		list(t.queue("CallViews", tenant, id, maxViewCalls, ledger.VersionUnreadable), &latest)
		list(t.queue("CallCounts", tenant, id), &tally)
		value(t.queue("CallsHeld", tenant, id), &held)
		value(t.queue("CallsStuck", tenant, id), &stuck)
		column(t.queue("FrameWaits", tenant, id, maxViewCalls), &waits)
		list(t.queue("PausesOfSession", tenant, id), &paused)
		list(t.queue("Delegated", tenant, id, maxDelegated), &delegated)
		list(t.queue("DelegatedApprovals", tenant, id, maxViewPending), &below)
		list(t.queue("DelegatedWaits", tenant, id, maxViewPending), &belowWaits)
		list(t.queue("RateWaiting", tenant, id, maxViewCalls), &waiting)
		value(t.queue("ModelWait", tenant, id), &model)
	})
	if err != nil {
		return jig.SessionView{}, err
	}
	if row == nil {
		return jig.SessionView{}, noSession(id)
	}
	s := row.Session
	v := jig.SessionView{
		SessionID: s.ID, Agent: s.Agent.Name, Status: s.Status, Pass: s.Pass, Calls: make([]jig.CallView, len(latest)),
		Answer: s.Answer, AnswerArtifact: row.AnswerArtifact, Reason: s.Reason, Error: s.Error, Counts: counts(tally),
		Tokens: s.Tokens, Todo: s.Todo, Paused: paused, UpdatedAt: s.UpdatedAt,
	}
	if v.Pending, err = pendings(open); err != nil {
		return jig.SessionView{}, err
	}
	elsewhere, err := delegatedPending(below)
	if err != nil {
		return jig.SessionView{}, err
	}
	v.Pending = append(v.Pending, elsewhere[:min(len(elsewhere), maxViewPending-len(v.Pending))]...)
	slices.Reverse(latest)
	for i := range latest {
		v.Calls[i] = latest[i].view()
	}
	if !v.Status.Final() {
		heldBack(&v, waiting)
		if model != nil {
			v.Held = append(v.Held, model.String())
		}
	}
	v.Waits = append(v.Waits, slices.Concat(waits...)...)
	if v.Status == jig.StatusWorking {
		setState(&v, *held, *stuck, idleChildren(delegated)[s.ID], quietChildren(delegated)[s.ID])
		waitsBelow(&v, belowWaits)
	}
	return v, nil
}

// setState sets what a working session waits for. held and stuck are the results of the queries CallsHeld and CallsStuck, idle counts the calls
// whose child sessions wait for people, and quiet those in whose child sessions nothing is running.
func setState(v *jig.SessionView, held, stuck, idle, quiet int) {
	c := v.Counts
	waiting, busy := c[jig.CallWaiting]+c[jig.CallUnknown], c[jig.CallReserved]+c[jig.CallExecuting]
	if onlyPeople(waiting, busy, held, idle, startPaused(*v)) {
		v.Status = jig.StatusInputRequired
	}
	v.Idle = quietSession(waiting, busy, stuck, quiet, startHeld(*v))
}

// startHeld reports whether a pause or a rate limit holds back the next pass of a session.
func startHeld(v jig.SessionView) bool {
	return len(v.Held) > 0 || startPaused(v)
}

// startPaused reports whether a pause holds back the next pass of a session.
func startPaused(v jig.SessionView) bool {
	return slices.ContainsFunc(v.Paused, func(p jig.Pause) bool { return p.Scope != jig.PauseTool })
}

// LiveSessions lists sessions of all tenants that have not ended and were not updated for a minute, for the sweeper; only tenant,
// id, status and time are set. Those listed longest ago come first, so that repeated calls reach all of them.
func (db *DB) LiveSessions(ctx context.Context, limit int) ([]jig.Session, error) {
	return ask(ctx, db, "", list[jig.Session], "LiveSessions", limit)
}

// maxDelegated is the maximum number of sessions below a session that the session's view includes.
const maxDelegated = 500

// delegatedRow is a row of the query Delegated: a session that answers a running call of another session.
type delegatedRow struct {
	SessionID string
	ParentID  string
	Via       string
	Status    jig.Status
	Waiting   int
	Busy      int
	Held      int
	Stuck     int
	Paused    bool
	Asks      bool
}

// delegatedWaitRow is a row of the query DelegatedWaits.
type delegatedWaitRow struct {
	SessionID string
	Via       string
	Waits     []jig.Wait
	Reason    *string
	Model     *ledger.ModelWait
}

// delegatedApprovalRow is a row of the query DelegatedApprovals.
type delegatedApprovalRow struct {
	approvalRow

	Via string
}

// idleChildren counts, per session, the calls whose child session waits only for people. In rows, parents come before their
// children.
func idleChildren(rows []delegatedRow) map[string]int {
	return countChildren(rows, func(r delegatedRow, idle int) bool { return onlyPeople(r.Waiting, r.Busy, r.Held, idle, r.Paused) })
}

// quietChildren counts, per session, the calls in whose child session nothing is running.
func quietChildren(rows []delegatedRow) map[string]int {
	return countChildren(rows, func(r delegatedRow, quiet int) bool {
		return quietSession(r.Waiting, r.Busy, r.Stuck, quiet, r.Paused || r.Asks)
	})
}

// countChildren counts, per session, the calls whose child session holds, given the count of the child's own calls of this kind.
func countChildren(rows []delegatedRow, holds func(r delegatedRow, below int) bool) map[string]int {
	counts := map[string]int{}
	for i := len(rows) - 1; i >= 0; i-- {
		if r := rows[i]; r.Status == jig.StatusWorking && holds(r, counts[r.SessionID]) {
			counts[r.ParentID]++
		}
	}
	return counts
}

// quietSession reports whether nothing in a session is running: every open call waits or is held back, itself or in the session that answers it,
// or no call is open and the next pass is held back.
func quietSession(waiting, busy, stuck, quiet int, held bool) bool {
	return waiting+busy > 0 && busy == stuck+quiet || waiting+busy == 0 && held
}

// onlyPeople reports whether nothing in a session can go on until a person acts. Every open call waits for a person, itself or through the
// session that answers it, or is held: it is a composition that waits for its own calls, or it waits behind another call or a pause. If no
// call is open, a pause holds back the next pass.
func onlyPeople(waiting, busy, held, idle int, paused bool) bool {
	return busy == held+idle && (waiting+busy > 0 || paused)
}

// delegatedPending converts the open approvals of the sessions below a session.
func delegatedPending(rows []delegatedApprovalRow) ([]jig.Pending, error) {
	list := make([]jig.Pending, len(rows))
	for i := range rows {
		var err error
		if list[i], err = rows[i].listed(); err != nil {
			return nil, err
		}
		list[i].Via = rows[i].Via
	}
	return list, nil
}

// NameChild records which session a running call starts, so that the child can prove which call started it. It returns CONFLICT when the
// call is not running or has started another session. request is the hash of what the child is asked to do.
func (db *DB) NameChild(ctx context.Context, tenant, id, callID, child, request string) error {
	named, err := ask(ctx, db, tenant, value[string], "CallChild", tenant, id, callID, text(child), text(request))
	if err == nil && named == nil {
		return jig.Errorf(jig.CodeConflict, "call %s of session %s is not running, or has started another session", callID, id)
	}
	return err
}

// NameRequest records the hash of what a running call says to another session. It returns CONFLICT when the call is not running.
func (db *DB) NameRequest(ctx context.Context, tenant, id, callID, request string) error {
	named, err := ask(ctx, db, tenant, value[string], "CallAsks", tenant, id, callID, text(request))
	if err == nil && named == nil {
		return jig.Errorf(jig.CodeConflict, "call %s of session %s is not running", callID, id)
	}
	return err
}

// Request returns the hash of what a call asks of another session; "" if it asks nothing.
func (db *DB) Request(ctx context.Context, tenant, id, callID string) (string, error) {
	request, err := ask(ctx, db, tenant, value[string], "CallRequest", tenant, text(id), text(callID))
	return orZero(request), err
}

// DoubtfulCalls lists calls of a session that ended without anybody knowing whether they took effect, as "<call> <tool>"; at most
// 50.
func (db *DB) DoubtfulCalls(ctx context.Context, tenant, id string) (doubtful []string, err error) {
	err = db.once(ctx, tenant, func(t *tx) { column(t.queue("CallsDoubtful", tenant, text(id)), &doubtful) })
	return doubtful, err
}

// waitsBelow adds to a view what the sessions below wait for.
func waitsBelow(v *jig.SessionView, rows []delegatedWaitRow) {
	for _, r := range rows {
		where := r.Via + ", in session " + r.SessionID + ": "
		switch {
		case r.Waits != nil:
			for _, w := range r.Waits {
				w.Via, w.SessionID = r.Via, r.SessionID
				v.Waits = append(v.Waits, w)
			}
		case r.Reason != nil:
			v.Held = append(v.Held, where+*r.Reason)
		default:
			v.Held = append(v.Held, where+r.Model.String())
		}
	}
}
