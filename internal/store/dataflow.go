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
	maxOriginEvents   = 200
	maxOriginCalls    = 500
)

// rootRow is a row of the query LineRoot.
type rootRow struct {
	SessionID string
	Source    string
	Task      string
	Input     []byte
}

// saidRow is a row of the query LineMessages.
type saidRow struct {
	Text  string
	By    string
	Typed bool
}

// sentRow is a row of the query LineEvents.
type sentRow struct {
	Name string
	Data []byte
}

// originRow is a row of the query LineCalls.
type originRow struct {
	CallID    string
	Tool      string
	Result    []byte
	Untrusted bool
	Cut       bool
}

// Origins returns the texts that arguments of a session's calls can come from: what was said and sent, and the results of the latest 500
// calls of the session and of the sessions above it, without those of the calls in known.
func (db *DB) Origins(ctx context.Context, tenant, id string, known []string) (ledger.Origins, error) {
	var root *rootRow
	var said []saidRow
	var sent []sentRow
	var rows []originRow
	err := db.once(ctx, tenant, func(t *tx) {
		first(t.queue("LineRoot", tenant, id), &root)
		list(t.queue("LineMessages", tenant, id, maxOriginMessages+1), &said)
		list(t.queue("LineEvents", tenant, id, maxOriginEvents+1), &sent)
		list(t.queue("LineCalls", tenant, id, maxOriginCalls+1, texts(known)), &rows)
	})
	if err != nil {
		return ledger.Origins{}, err
	}
	if root == nil {
		return ledger.Origins{}, noSession(id)
	}
	o := ledger.Origins{
		Source: jig.Source(root.Source), Task: root.Task, Input: root.Input,
		More: len(said) > maxOriginMessages || len(sent) > maxOriginEvents || len(rows)+len(known) > maxOriginCalls,
	}
	for _, m := range said[:min(len(said), maxOriginMessages)] {
		o.Messages = append(o.Messages, ledger.OriginMessage(m))
	}
	for _, e := range sent[:min(len(sent), maxOriginEvents)] {
		o.Events = append(o.Events, ledger.OriginEvent(e))
	}
	rows = rows[:min(len(rows), maxOriginCalls)]
	slices.Reverse(rows)
	for _, r := range rows {
		call := ledger.OriginCall{
			ID: r.CallID, Tool: r.Tool, Untrusted: r.Untrusted, Cut: r.Cut,
		}
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
