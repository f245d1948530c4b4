package store

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

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
	var named *string
	err := db.once(ctx, tenant, func(t *tx) { value(t.queue("CallChild", tenant, id, callID, text(child), text(request)), &named) })
	if err == nil && named == nil {
		return jig.Errorf(jig.CodeConflict, "call %s of session %s is not running, or has started another session", callID, id)
	}
	return err
}

// NameRequest records the hash of what a running call says to another session. It returns CONFLICT when the call is not running.
func (db *DB) NameRequest(ctx context.Context, tenant, id, callID, request string) error {
	var named *string
	err := db.once(ctx, tenant, func(t *tx) { value(t.queue("CallAsks", tenant, id, callID, text(request)), &named) })
	if err == nil && named == nil {
		return jig.Errorf(jig.CodeConflict, "call %s of session %s is not running", callID, id)
	}
	return err
}

// Request returns the hash of what a call asks of another session; "" if it asks nothing.
func (db *DB) Request(ctx context.Context, tenant, id, callID string) (string, error) {
	var request *string
	err := db.once(ctx, tenant, func(t *tx) { value(t.queue("CallRequest", tenant, text(id), text(callID)), &request) })
	if err != nil || request == nil {
		return "", err
	}
	return *request, nil
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
