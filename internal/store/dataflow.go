package store

import (
	"context"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

// Limits of the texts that a call's arguments are compared with.
const (
	maxOriginMessages = 200
	maxOriginCalls    = 500
)

// rootRow is a row of the query LineRoot.
type rootRow struct {
	SessionID string
	Source    string
	Task      string
	Input     []byte
}

// originRow is a row of the query LineCalls.
type originRow struct {
	CallID         string
	Tool           string
	Version        string
	Input          []byte
	Result         []byte
	ReadsUntrusted bool
	Tainted        bool
}

// Origins returns the texts that arguments of a session's calls can come from: what the principal said, and the results of the latest 500
// calls of the session and of the sessions above it.
func (db *DB) Origins(ctx context.Context, tenant, id string) (ledger.Origins, error) {
	var root *rootRow
	var said []string
	var rows []originRow
	err := db.once(ctx, tenant, func(t *tx) {
		first(t.queue("LineRoot", tenant, id), &root)
		column(t.queue("LineMessages", tenant, id, maxOriginMessages), &said)
		list(t.queue("LineCalls", tenant, id, maxOriginCalls+1), &rows)
	})
	if err != nil {
		return ledger.Origins{}, err
	}
	if root == nil {
		return ledger.Origins{}, noSession(id)
	}
	o := ledger.Origins{Source: jig.Source(root.Source), Task: root.Task, Input: root.Input, Messages: said, More: len(rows) > maxOriginCalls}
	rows = rows[:min(len(rows), maxOriginCalls)]
	slices.Reverse(rows)
	for _, r := range rows {
		call := ledger.OriginCall{ID: r.CallID, Tool: r.Tool, Version: r.Version, Input: r.Input, Untrusted: r.ReadsUntrusted, Tainted: r.Tainted}
		if err := decode(r.Result, &call.Result); err != nil {
			return ledger.Origins{}, err
		}
		o.Calls = append(o.Calls, call)
	}
	return o, nil
}

// MarkUntrusted records that a call, and with it its session, has read untrusted data.
func (db *DB) MarkUntrusted(ctx context.Context, tenant, id, callID string) error {
	return db.once(ctx, tenant, func(t *tx) { t.queue("CallRead", tenant, id, callID, false, true, false) })
}
