package store

import (
	"context"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

// turnUsage returns the columns of a turn that say what it used: the tokens of input and output, the model, and the parts.
func turnUsage(turn chat.Turn) []any {
	u := turn.Usage
	return []any{u.InputTokens + u.OutputTokens, text(turn.Asked), u.OutputTokens, u.CacheReadTokens, u.CacheCreateTokens, u.Cost}
}

// turnColumns returns the arguments of TurnInsert. The body or the artifact is nil.
func turnColumns(tenant, id string, pass int, body []byte, artifact *string, turn chat.Turn) []any {
	l := remarks(pass, turn)
	return append(append([]any{tenant, id, pass, body, artifact}, turnUsage(turn)...), l.types, l.data)
}

// SaveTurn stores the model's answer for a pass of a session and adds its usage to the session. If there already is one, it is
// returned and nothing changes. A large answer is stored as an artifact.
func (db *DB) SaveTurn(ctx context.Context, tenant, id string, pass int, turn chat.Turn) (chat.Turn, error) {
	body, err := encode(turn)
	if err != nil {
		return chat.Turn{}, err
	}
	var saved *turnRow
	var last *int64
	if len(body) <= jig.InlineBytes {
		err = db.once(ctx, tenant, func(t *tx) {
			value(t.queue("TurnInsert", turnColumns(tenant, id, pass, body, nil, turn)...), &last)
			first(t.queue("TurnGet", tenant, id, pass), &saved)
		})
	} else {
		err = db.transact(ctx, tenant, func(t *tx) error {
			t.queue("SessionLock", tenant, id) // two at the same time would leave an unused artifact
			first(t.queue("TurnGet", tenant, id, pass), &saved)
			if err := t.flush(ctx); err != nil || saved != nil {
				return err
			}
			artifact := new(t.keep(id, "application/json", body))
			value(t.queue("TurnInsert", turnColumns(tenant, id, pass, nil, artifact, turn)...), &last)
			first(t.queue("TurnGet", tenant, id, pass), &saved)
			return t.commit(ctx)
		})
	}
	if state(err) == stateForeignKeyViolation {
		return chat.Turn{}, noSession(id)
	}
	if err != nil {
		return chat.Turn{}, err
	}
	db.touched(tenant, id, last)
	return saved.Body, nil
}

// remarks returns the events of a turn: that it may not be complete, and what the model said beside its calls. The text of a turn without calls
// needs no event, because it is the answer that ends the session.
func remarks(pass int, turn chat.Turn) *log {
	l := &log{}
	if turn.Warning != "" {
		l.add(jig.Event{Type: jig.EventModelWarning, Pass: pass, Data: details{"message": text(turn.Warning)}.json()})
	}
	if turn.Text != "" && len(turn.Calls) > 0 {
		said := chat.Message{Role: chat.RoleAssistant, Text: turn.Text, By: turn.Asked}
		l.add(jig.Event{Type: jig.EventMessageAdded, Pass: pass, Data: messageDetails(said)})
	}
	return l
}

// AddMessage appends a message once per key, with its event, and reports whether it was new. The role defaults to user. The message
// belongs to the pass that is running when it is stored, and the next pass reads it.
func (db *DB) AddMessage(ctx context.Context, tenant, id, key string, m chat.Message) (bool, error) {
	if m.Role == "" {
		m.Role = chat.RoleUser
	}
	var found []*int64
	err := db.once(ctx, tenant, func(t *tx) {
		column(t.queue("MessageInsert", tenant, id, key, m.Role, text(m.Text), text(m.By), moment(m.At), messageDetails(m), text(m.Sender)), &found)
	})
	if err != nil {
		return false, err
	}
	if len(found) == 0 {
		return false, noSession(id)
	}
	db.touched(tenant, id, found[0])
	return found[0] != nil, nil
}

// HasMessage reports whether a session has received a message with this sender-chosen id.
func (db *DB) HasMessage(ctx context.Context, tenant, session, id string) (bool, error) {
	var has *bool
	err := db.once(ctx, tenant, func(t *tx) { value(t.queue("MessageHas", tenant, session, jig.MessageKey(id)), &has) })
	return has != nil && *has, err
}

// MessageRead reports whether a pass of a session has read a message with this sender-chosen id.
func (db *DB) MessageRead(ctx context.Context, tenant, session, id string) (bool, error) {
	var read *bool
	err := db.once(ctx, tenant, func(t *tx) { value(t.queue("MessageRead", tenant, session, jig.MessageKey(id)), &read) })
	return read != nil && *read, err
}

func messageDetails(m chat.Message) []byte {
	shown := cut(m.Text, jig.ExcerptBytes)
	return details{"role": string(m.Role), "by": m.By, "text": shown, "truncated": len(shown) < len(m.Text)}.json()
}

// exchanges combines turns, calls and messages, each of which is sorted by pass.
//
// A message that arrived during pass n comes before the turn of pass n+1, so that it is never placed before a turn that did not see it.
// Messages that no turn has followed come in trailing exchanges without a turn: for the running pass and the one after it.
func exchanges(turns []turnRow, rows []callRow, messages []chat.Message) []chat.Exchange {
	var all []chat.Exchange
	at := map[int]int{}
	of := func(pass int) *chat.Exchange {
		i, ok := at[pass]
		if !ok {
			i = len(all)
			at[pass] = i
			all = append(all, chat.Exchange{Pass: pass})
		}
		return &all[i]
	}
	for i := range turns {
		of(turns[i].Pass).Turn = &turns[i].Body
	}
	for i := range rows {
		x := of(rows[i].Pass)
		x.Calls = append(x.Calls, rows[i].call())
	}
	for _, m := range messages {
		x := of(m.Pass + 1)
		x.Messages = append(x.Messages, m)
	}
	slices.SortStableFunc(all, func(a, b chat.Exchange) int { return a.Pass - b.Pass })
	return all
}
