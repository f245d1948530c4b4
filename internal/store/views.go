package store

import (
	"context"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

// maxViewCalls and maxViewPending limit what a view of a session shows.
const (
	maxViewCalls   = 500
	maxViewPending = 500
)

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
		stands(&v, *held, *stuck, idleChildren(delegated)[s.ID], quietChildren(delegated)[s.ID])
		waitsBelow(&v, belowWaits)
	}
	return v, nil
}

// stands sets what a working session waits for. held and stuck are the results of the queries CallsHeld and CallsStuck, idle counts the calls
// whose child sessions wait for people, and quiet those in whose child sessions nothing is running.
func stands(v *jig.SessionView, held, stuck, idle, quiet int) {
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
	var sessions []jig.Session
	err := db.once(ctx, "", func(t *tx) { list(t.queue("LiveSessions", limit), &sessions) })
	return sessions, err
}
