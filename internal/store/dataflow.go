package store

import (
	"context"
	"slices"

	"github.com/jig-run/jig/internal/ledger"
)

// Limits of the texts that a call's arguments are compared with.
const (
	maxOriginMessages = 200
	maxOriginEvents   = 200
	maxOriginCalls    = 500
)

// Origins returns the texts that arguments of a session's calls can come from: what was said and sent, and the results of the latest 500
// calls of the session and of the sessions above it, without those of the calls in known.
func (db *DB) Origins(ctx context.Context, tenant, id string, known []string) (ledger.Origins, error) {
	var root *ledger.Origins
	var said []ledger.OriginMessage
	var sent []ledger.OriginEvent
	var found []ledger.OriginCall
	err := db.once(ctx, tenant, func(t *tx) {
		first(t.queue("LineRoot", tenant, id), &root)
		list(t.queue("LineMessages", tenant, id, maxOriginMessages+1), &said)
		list(t.queue("LineEvents", tenant, id, maxOriginEvents+1), &sent)
		list(t.queue("LineCalls", tenant, id, maxOriginCalls+1, texts(known)), &found)
	})
	if err != nil {
		return ledger.Origins{}, err
	}
	if root == nil {
		return ledger.Origins{}, noSession(id)
	}
	o := *root
	o.More = len(said) > maxOriginMessages || len(sent) > maxOriginEvents || len(found)+len(known) > maxOriginCalls
	o.Messages, o.Events = said[:min(len(said), maxOriginMessages)], sent[:min(len(sent), maxOriginEvents)]
	o.Calls = found[:min(len(found), maxOriginCalls)]
	slices.Reverse(o.Calls)
	return o, nil
}

// MarkUntrusted records that a call, and with it its session, has read untrusted data.
func (db *DB) MarkUntrusted(ctx context.Context, tenant, id, callID string) error {
	return db.once(ctx, tenant, func(t *tx) { t.queue("CallRead", tenant, id, callID, false, true, false) })
}
