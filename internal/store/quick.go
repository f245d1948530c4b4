package store

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

// CallsOf returns a session and the given calls, each with the pause that holds it back, if any. It returns NOT_FOUND when there is no
// such session.
func (db *DB) CallsOf(ctx context.Context, tenant, id string, ids []string) (jig.Session, []jig.Call, error) {
	var session *sessionRow
	var rows []callRow
	var paused []pauseRow
	err := db.once(ctx, tenant, func(t *tx) {
		first(t.queue("SessionGet", tenant, id), &session)
		list(t.queue("CallsGet", tenant, id, ids), &rows)
		list(t.queue("PausesOfSession", tenant, id), &paused)
	})
	if err != nil {
		return jig.Session{}, nil, err
	}
	if session == nil {
		return jig.Session{}, nil, noSession(id)
	}
	s, err := session.session()
	if err != nil {
		return jig.Session{}, nil, err
	}
	some, err := calls(rows)
	for i := range some {
		some[i].Paused = pausing(paused, some[i].Tool)
	}
	return s, some, err
}

// finishedRow names a call that FinishQuick finished.
type finishedRow struct {
	CallID  string
	LastSeq int64
}

// FinishQuick records first attempts of read-only, idempotent calls that have already run: begin, end and both events, for all of
// them in one statement. It returns the ids of the calls that it finished. The others have changed since they were read, and must be
// executed in the ordinary way.
func (db *DB) FinishQuick(ctx context.Context, tenant, id string, done []ledger.QuickCompletion) ([]string, error) {
	n := len(done)
	ids, versions, digests, statuses := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	bodies, errs := make([][]byte, n), make([][]byte, n)
	summaries, kinds, data := make([]string, n), make([]string, n), make([]string, n)
	started, finished := make([]time.Time, n), make([]time.Time, n)
	for i, one := range done {
		columns, err := columnsOf(one.Result)
		if err != nil {
			return nil, err
		}
		kind, d := ledger.Ended(ledger.Completion{Status: one.Status, Result: one.Result, Fence: 1}, "")
		d["duration_ms"] = one.Finished.Sub(one.Started).Milliseconds()
		ids[i], versions[i], digests[i], statuses[i] = one.CallID, one.Version, one.Digest, string(one.Status)
		bodies[i], errs[i], summaries[i] = columns.body, columns.err, columns.summary
		kinds[i], data[i] = string(kind), string(details(d).json())
		started[i], finished[i] = one.Started, one.Finished
	}
	var rows []finishedRow
	err := db.gather(ctx, tenant, id, ids, func(t *tx) {
		list(t.queue("CallsFinishQuick", tenant, id, ids, versions, digests, statuses, bodies, summaries, errs, started, finished, kinds, data), &rows)
	})
	if err != nil {
		return nil, err
	}
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row.CallID
		db.touched(tenant, id, &row.LastSeq)
	}
	return names, nil
}
