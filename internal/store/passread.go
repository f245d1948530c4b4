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
	var messages []messageRow
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
	read := ledger.PassRead{Exchange: chat.Exchange{Pass: pass}}
	if read.Session, err = row.session(); err != nil {
		return ledger.PassRead{}, err
	}
	if answered != nil {
		turn, err := answered.turn()
		if err != nil {
			return ledger.PassRead{}, err
		}
		read.Exchange.Turn, read.TurnAt = &turn, utc(at)
	}
	for _, m := range messages {
		read.Exchange.Messages = append(read.Exchange.Messages, chat.Message{
			Role: chat.Role(m.Role), Text: m.Body, By: m.By, Pass: m.Pass, At: m.At.UTC(),
		})
	}
	read.Exchange.Calls, err = calls(called)
	return read, err
}
