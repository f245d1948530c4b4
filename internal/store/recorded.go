package store

import (
	"context"
	"encoding/json"
	"errors"
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
	SessionID, CallID, Frame string
	Pass, Ordinal            int
	Tool, Version            string
	Write                    bool
	Input                    []byte
	Verdict, Status          string
	CreatedAt                time.Time
	Flow                     []byte
	AgentName                string
	AgentVersion             string
	Registered               bool
	RootAgent, ParentAgent   string
	Depth                    int
	Source                   string
	Principal                []byte
	Task                     string
	SessionInput             []byte
	Writes                   int
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
		if recorded[i], err = rows[i].recorded(tenant); err != nil {
			return nil, "", err
		}
	}
	if len(rows) > 0 { // a page may be short because of its bytes, so only an empty one is the end
		end := rows[len(rows)-1]
		next, err = encodeCursor(recordedCursor{end.SessionID, end.CallID})
	}
	return recorded, next, err
}

func (r *recordedRow) recorded(tenant string) (ledger.RecordedCall, error) {
	c := ledger.RecordedCall{
		Call: jig.Call{
			Tenant: tenant, SessionID: r.SessionID, ID: r.CallID, Frame: r.Frame, Pass: r.Pass, Ordinal: r.Ordinal, Tool: r.Tool,
			Version: r.Version, Write: r.Write, Input: r.Input, Verdict: jig.Verdict(r.Verdict), Status: jig.CallStatus(r.Status),
			CreatedAt: r.CreatedAt.UTC(),
		},
		Session: jig.Session{
			Tenant: tenant, ID: r.SessionID, Task: r.Task, Input: json.RawMessage(r.SessionInput), Pass: r.Pass, Writes: r.Writes,
			Agent:     jig.Agent{Name: r.AgentName, Version: r.AgentVersion, Registered: r.Registered},
			RootAgent: r.RootAgent, ParentAgent: r.ParentAgent, Depth: r.Depth, Source: jig.Source(r.Source),
		},
	}
	err := errors.Join(decode(r.Principal, &c.Session.Principal), decode(r.Flow, &c.Call.Flow))
	return c, err
}
