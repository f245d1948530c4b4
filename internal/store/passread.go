package store

import (
	"context"
	"time"

	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
)

// ReadPass returns what was said and done in a pass: the messages that came before its turn, the turn, and up to limit of its calls, those
// of compositions included, after the first skip. A pass that the session has not reached is empty. The error is NOT_FOUND if the tenant
// has no such session.
func (db *DB) ReadPass(ctx context.Context, tenant, id string, pass, skip, limit int) (ledger.PassRead, error) {
	var row *sessionRow
	var answered *turnRow
	var at *time.Time
	var messages []chat.Message
	var called []callRow
	err := db.once(ctx, tenant, func(t *tx) {
		first(t.queue("SessionGet", tenant, id), &row)
		list(t.queue("MessagesOfPass", tenant, id, pass-1), &messages)
		first(t.queue("TurnGet", tenant, id, pass), &answered)
		value(t.queue("TurnTime", tenant, id, pass), &at)
		list(t.queue("CallsOfPass", tenant, id, pass, skip, limit), &called)
	})
	if err != nil {
		return ledger.PassRead{}, err
	}
	if row == nil {
		return ledger.PassRead{}, noSession(id)
	}
	read := ledger.PassRead{Session: row.Session, Exchange: chat.Exchange{Pass: pass, Messages: messages, Calls: calls(called)}}
	if answered != nil {
		read.Exchange.Turn, read.TurnAt = &answered.Body, at
	}
	return read, nil
}
