package store

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

// startedRow is a row of the statements that begin or finish an attempt in one round trip.
type startedRow struct {
	callRow
	LastSeq int64
}

// Reserve begins an attempt of a call, or reports why it cannot begin, by the rules of [ledger.Reserve].
func (db *DB) Reserve(ctx context.Context, r ledger.ReserveRequest) (ledger.Reservation, error) {
	if r.Child == "" && !r.Asked && r.Outage == nil { // most calls that start no session and need no approval take a single statement
		var begun *startedRow
		err := db.gather(ctx, r.Tenant, r.SessionID, []string{r.CallID}, func(t *tx) {
			first(t.queue("CallStartFast", r.Tenant, r.SessionID, r.CallID, r.Version, r.Digest, r.Attempt,
				string(details(ledger.Started(r.Input, 1, "")).json())), &begun)
			t.observe(func(o Observer) {
				if begun != nil {
					o.CallStarted(begun.Tool, 1)
				}
			})
		})
		if err != nil {
			return ledger.Reservation{}, err
		}
		if begun != nil {
			db.touched(r.Tenant, r.SessionID, &begun.LastSeq)
			return reservation(ledger.ReserveRun, &begun.callRow), nil
		}
	}
	var answer ledger.Reservation
	err := db.transact(ctx, r.Tenant, func(t *tx) error {
		rows := locked{session: r.SessionID}
		first(t.queue("CallLock", r.Tenant, r.SessionID, r.CallID), &rows.call)
		first(t.queue("ApprovalLatest", r.Tenant, r.SessionID, r.CallID), &rows.latest)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if rows.call == nil {
			return noCall(r.SessionID, r.CallID)
		}
		rows.open = rows.latest
		outcome, err := t.reserve(ctx, r, &rows)
		if err != nil {
			return err
		}
		answer = reservation(outcome, rows.now())
		return nil
	})
	return answer, err
}

func reservation(outcome ledger.ReserveOutcome, row *callRow) ledger.Reservation {
	return ledger.Reservation{Outcome: outcome, Call: row.call(), Fence: row.Fence, InDoubt: row.InDoubt}
}

// reserve applies the rules to a call whose rows are locked, and saves what changes.
func (t *tx) reserve(ctx context.Context, r ledger.ReserveRequest, rows *locked) (ledger.ReserveOutcome, error) {
	s := rows.ledger(t.tenant)
	change := ledger.Reserve(s, r)
	if a := change.Begins; a != nil && a.Grant != "" {
		used, err := t.useGrant(ctx, a.Grant, r.Meaning)
		if err != nil {
			return "", err
		}
		change = ledger.UseGrant(s, change, used)
	}
	if a := change.Begins; a != nil && a.Consumes {
		t.queue("ApprovalConsume", t.tenant, rows.open.ID) // its row has been locked since the rules saw that it is approved
	}
	if !change.Changes() {
		return change.Answer, nil
	}
	l := &log{}
	if err := t.saveCall(rows, s, change, l); err != nil {
		return "", err
	}
	return change.Answer, t.finish(ctx, l, rows.session)
}

// useGrant counts one use of a grant for a contract with the given meaning. It returns nil when the grant covers no further call.
func (t *tx) useGrant(ctx context.Context, id, meaning string) (*jig.Grant, error) {
	var used *jig.Grant
	first(t.queue("GrantUse", t.tenant, id, meaning), &used)
	return used, t.flush(ctx)
}
