package store

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// Pending returns the open approval, question or reconciliation of a call. It returns NOT_FOUND when the call has no open one.
func (db *DB) Pending(ctx context.Context, tenant, id, callID string) (jig.Pending, error) {
	row, err := ask(ctx, db, tenant, first[approvalRow], "ApprovalOpen", tenant, id, callID)
	if err != nil {
		return jig.Pending{}, err
	}
	if row == nil {
		return jig.Pending{}, jig.Errorf(jig.CodeNotFound, "call %q of session %q is not waiting for a person", callID, id).WithField("call")
	}
	return row.pending()
}

// SimilarDecisions returns the latest decisions of people and grants about other calls of a tool, the latest first.
func (db *DB) SimilarDecisions(ctx context.Context, of jig.Pending, limit int) ([]approval.Similar, error) {
	return ask(ctx, db, of.Tenant, list[approval.Similar], "ApprovalsSimilar", of.Tenant, of.Tool, of.SessionID, of.Call, limit)
}

// BeginComparison reports whether a call that waits may be compared with what people are shown: no comparison of it has begun in the time before
// now. If it may, one has begun.
func (db *DB) BeginComparison(ctx context.Context, of jig.Pending, now time.Time, before time.Duration) (bool, error) {
	begun, err := ask(ctx, db, of.Tenant, column[int64], "ApprovalCompare", of.Tenant, of.SessionID, of.Call, of.Digest, now.Add(-before), now)
	return len(begun) > 0, err
}

// EndComparison stores what a comparison found.
func (db *DB) EndComparison(ctx context.Context, of jig.Pending, found protocol.Comparison) error {
	text, err := encode(found)
	if err != nil {
		return err
	}
	return db.once(ctx, of.Tenant, func(t *tx) { t.queue("ApprovalCompared", of.Tenant, of.SessionID, of.Call, of.Digest, text) })
}

// Comparison returns what the comparison of a waiting call found that began after since; nil if there is none, or if it has not ended.
func (db *DB) Comparison(ctx context.Context, of jig.Pending, since time.Time) (*protocol.Comparison, error) {
	return ask(ctx, db, of.Tenant, value[protocol.Comparison], "ApprovalComparison", of.Tenant, of.SessionID, of.Call, of.Digest, since)
}

// Lapse expires an open approval whose time is over, or records the reminders and escalations that are due and lets more people decide if too few
// are left, by the rules of [approval.Elapse]. The result reports the call's status and, while the approval is open, the approval. Lapse is
// idempotent.
func (db *DB) Lapse(ctx context.Context, tenant, id, callID string, voters *approval.Voters, now time.Time) (approval.Lapse, error) {
	lapse, _, err := db.lapse(ctx, tenant, id, callID, voters, now, true)
	return lapse, err
}

// Recheck is like [DB.Lapse] for an approval that is not due, because the people who may decide it have changed. It reports whether the call or who
// may decide it has changed; until [DB.ToldSettled], the call's workflow does not know.
func (db *DB) Recheck(ctx context.Context, tenant, id, callID string, voters approval.Voters, now time.Time) (changed bool, err error) {
	_, changed, err = db.lapse(ctx, tenant, id, callID, &voters, now, false)
	return changed, err
}

// lapse applies [approval.Elapse] under lock. Only a workflow lets an approval expire, because it knows what ends with it.
func (db *DB) lapse(
	ctx context.Context, tenant, id, callID string, voters *approval.Voters, now time.Time, workflow bool,
) (lapse approval.Lapse, changed bool, err error) {
	err = db.transact(ctx, tenant, func(t *tx) error {
		rows := locked{session: id}
		first(t.queue("CallLock", tenant, id, callID), &rows.call)
		first(t.queue("ApprovalOpenLock", tenant, id, callID), &rows.open)
		first(t.queue("ApprovalLatest", tenant, id, callID), &rows.latest)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if rows.call == nil {
			return noCall(id, callID)
		}
		state, err := rows.state(tenant)
		if err != nil {
			return err
		}
		if !workflow && state.Open != nil && !state.Open.ExpiresAt.IsZero() && !now.Before(state.Open.ExpiresAt) {
			return nil
		}
		l := &log{}
		var change approval.Transition
		change, lapse = approval.Elapse(state, voters, now)
		if changed = change.Wider != nil || change.Outcome != nil; changed && !workflow {
			t.queue("SettledInsert", tenant, id, callID, rows.call.Frame)
		}
		if err := t.save(&rows, state, change, l); err != nil {
			return err
		}
		return t.finish(ctx, l, id)
	})
	return lapse, changed, err
}

// Approved returns who approved a call: everybody who voted, or the person who decided. by is empty when the call was not approved;
// proof is the weakest proof of these people.
func (db *DB) Approved(ctx context.Context, tenant, id, callID string) (by []string, proof jig.Proof, err error) {
	var votes []jig.Vote
	err = db.transact(ctx, tenant, func(t *tx) error {
		var err error
		votes, err = t.votes(ctx, id, callID)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	for _, v := range votes {
		by = append(by, v.By)
	}
	return by, approval.WeakestProof(votes), nil
}

// votes returns the votes with which a call was approved, or that of the person who decided.
func (t *tx) votes(ctx context.Context, id, callID string) ([]jig.Vote, error) {
	var row *whoRow
	first(t.queue("ApprovalWho", t.tenant, id, callID), &row)
	if err := t.flush(ctx); err != nil || row == nil {
		return nil, err
	}
	if len(row.Votes) == 0 && row.DecidedBy != "" {
		return []jig.Vote{{By: row.DecidedBy, Claimed: row.Claimed}}, nil
	}
	return row.Votes, nil
}

// whoRow is a row of the query ApprovalWho.
type whoRow struct {
	DecidedBy string
	Claimed   bool
	Votes     []jig.Vote
}

// Readmit replaces the admission of a waiting or reserved call, by the rules of [ledger.Readmit]. It returns the call as stored.
// Nothing changes if the call is not stored as was any more.
func (db *DB) Readmit(ctx context.Context, was, call jig.Call, asked *jig.Pending) (jig.Call, error) {
	var row *callRow
	err := db.transact(ctx, call.Tenant, func(t *tx) error {
		rows := locked{session: call.SessionID}
		first(t.queue("CallLock", call.Tenant, call.SessionID, call.ID), &rows.call)
		first(t.queue("ApprovalLatest", call.Tenant, call.SessionID, call.ID), &rows.latest)
		first(t.queue("ApprovalOpenLock", call.Tenant, call.SessionID, call.ID), &rows.open)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if rows.call == nil {
			return noCall(call.SessionID, call.ID)
		}
		if rows.open == nil {
			rows.open = rows.latest
		}
		row = rows.call
		s := rows.ledger(t.tenant)
		change, err := ledger.Readmit(s, was, call, asked)
		if err != nil || !change.Changes() {
			return err
		}
		l := &log{}
		if err := t.saveCall(&rows, s, change, l); err != nil {
			return err
		}
		err = t.finish(ctx, l, rows.session)
		row = rows.now()
		return err
	})
	if err != nil {
		return jig.Call{}, err
	}
	return row.call(), nil
}
