package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

// Limits of a page of recorded calls: the number of calls, and the total size of their inputs.
const (
	maxRecorded      = 500
	maxRecordedBytes = 16 << 20
)

// recordedRow is a row of the query CallsRecorded.
type recordedRow struct {
	jig.Call

	AgentName              string
	AgentVersion           string
	Registered             bool
	RootAgent, ParentAgent string
	Depth                  int
	Source                 jig.Source
	Principal              jig.Principal
	Task                   string
	SessionInput           json.RawMessage
	Writes                 int
}

// recordedCursor is the position where a page of recorded calls ended.
type recordedCursor struct {
	Session string `json:"session"`
	Call    string `json:"call"`
}

// RecordedCalls returns calls that were admitted since a time, session by session, with the data needed to evaluate policy for them. It
// starts after a cursor ("" for the first page); next is "" at the end. A page has at most limit calls (a limit below 1 or above 500 means
// 500) and at most 16 MiB of input, but at least one call. The session's pass and writes are those at the time of the call's admission.
func (db *DB) RecordedCalls(
	ctx context.Context, tenant string, since time.Time, after string, limit int,
) (recorded []ledger.RecordedCall, next string, err error) {
	var from recordedCursor
	if err := decodeCursor(after, &from); err != nil {
		return nil, "", err
	}
	if limit <= 0 || limit > maxRecorded {
		limit = maxRecorded
	}
	var rows []recordedRow
	err = db.once(ctx, tenant, func(t *tx) {
		list(t.queue("CallsRecorded", tenant, since, from.Session, from.Call, limit, maxRecordedBytes), &rows)
	})
	if err != nil {
		return nil, "", err
	}
	recorded = make([]ledger.RecordedCall, len(rows))
	for i := range rows {
		recorded[i] = rows[i].recorded()
	}
	if len(rows) > 0 { // a page may be short because of its bytes, so only an empty one is the end
		end := rows[len(rows)-1]
		next, err = encodeCursor(recordedCursor{end.SessionID, end.ID})
	}
	return recorded, next, err
}

func (r *recordedRow) recorded() ledger.RecordedCall {
	return ledger.RecordedCall{
		Call: r.Call,
		Session: jig.Session{
			Tenant: r.Tenant, ID: r.SessionID, Task: r.Task, Input: r.SessionInput, Pass: r.Pass, Writes: r.Writes, Principal: r.Principal,
			Agent:     jig.Agent{Name: r.AgentName, Version: r.AgentVersion, Registered: r.Registered},
			RootAgent: r.RootAgent, ParentAgent: r.ParentAgent, Depth: r.Depth, Source: r.Source,
		},
	}
}
