package store

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/ledger"
)

// Complete records the end of an attempt with its events, in one transaction, by the rules of [ledger.Complete]. The call is returned in
// any case, as it is stored now.
func (db *DB) Complete(ctx context.Context, c ledger.Completion) (ledger.Completed, error) {
	if err := c.Validate(); err != nil {
		return ledger.Completed{}, err
	}
	if c.Status.Final() && len(c.Whole) == 0 {
		done, err := db.completeFast(ctx, c)
		if err != nil {
			return ledger.Completed{}, err
		}
		if done != nil {
			return ledger.Completed{Call: done.call()}, nil
		}
	}
	return db.completeLocked(ctx, c)
}

// completeFast records the end of an attempt in one statement and one round trip. Ordinary calls take this path. It returns nil and
// changes nothing if the attempt does not hold the fence of an executing call.
func (db *DB) completeFast(ctx context.Context, c ledger.Completion) (*callRow, error) {
	columns, err := columnsOf(c.Result)
	if err != nil {
		return nil, err
	}
	kind, d := ledger.Ended(c, "")
	var done *startedRow
	err = db.gather(ctx, c.Tenant, c.SessionID, []string{c.CallID}, func(t *tx) {
		first(t.queue("CallFinishFast", c.Tenant, c.SessionID, c.CallID, c.Fence, c.Status, columns.body, columns.summary,
			columns.err, string(details(d).json()), kind, c.Reads.Private, c.Reads.Untrusted, c.Reads.Steps), &done)
		t.observeCalls(func() []jig.Call {
			if done == nil {
				return nil
			}
			call := done.became(c.Status, &c.Result)
			call.StartedAt, call.FinishedAt = done.StartedAt, done.FinishedAt
			return []jig.Call{call}
		})
	})
	if err != nil || done == nil {
		return nil, err
	}
	db.touched(c.Tenant, c.SessionID, &done.LastSeq)
	return &done.callRow, nil
}

// completeLocked records the end of an attempt when that takes more than one statement.
func (db *DB) completeLocked(ctx context.Context, c ledger.Completion) (ledger.Completed, error) {
	var row *callRow
	late := false
	err := db.transact(ctx, c.Tenant, func(t *tx) error {
		rows := locked{session: c.SessionID}
		var asked []approvalRow
		first(t.queue("CallLock", c.Tenant, c.SessionID, c.CallID), &rows.call)
		list(t.queue("ApprovalsOfCallsOpenLock", c.Tenant, c.SessionID, []string{c.CallID}), &asked)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if rows.call == nil {
			return noCall(c.SessionID, c.CallID)
		}
		s := rows.ledger(c.Tenant)
		s.ArtifactID = jig.NewArtifactID()
		for i := range asked {
			s.Withdrawable = append(s.Withdrawable, asked[i].readable())
		}
		change := ledger.Complete(s, c)
		row, late, rows.timed = rows.call, change.Late, !change.Late
		if !change.Changes() {
			return nil
		}
		err := t.complete(ctx, &rows, s, change)
		row = rows.now()
		return err
	})
	if err != nil {
		return ledger.Completed{}, err
	}
	return ledger.Completed{Call: row.call(), Late: late}, nil
}

// complete saves the end of an attempt and commits. The event of a call that has ended says how long the attempt took; the database
// computes that.
func (t *tx) complete(ctx context.Context, rows *locked, s ledger.State, change ledger.Transition) error {
	events := change.Events
	change.Events = nil
	l := &log{}
	if err := t.saveCall(rows, s, change, l); err != nil {
		return err
	}
	if change.Call.Status.Final() {
		if err := t.flush(ctx); err != nil {
			return err
		}
		events[len(events)-1].Data["duration_ms"] = rows.changed.FinishedAt.Sub(*rows.changed.StartedAt).Milliseconds()
	}
	l.take(approval.Transition{Events: events})
	return t.finish(ctx, l, rows.session)
}
