package store

import (
	"context"
	"math"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/stored"
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
	db.committed(tenant, id, last)
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
	found, err := ask(ctx, db, tenant, column[*int64], "MessageInsert", tenant, id, key, m.Role, text(m.Text), text(m.By),
		moment(m.At), messageDetails(m), text(m.Sender))
	if err != nil {
		return false, err
	}
	if len(found) == 0 {
		return false, noSession(id)
	}
	db.committed(tenant, id, found[0])
	return found[0] != nil, nil
}

// HasMessage reports whether a session has received a message with this sender-chosen id.
func (db *DB) HasMessage(ctx context.Context, tenant, session, id string) (bool, error) {
	has, err := ask(ctx, db, tenant, value[bool], "MessageHas", tenant, session, jig.MessageKey(id))
	return orZero(has), err
}

// MessageRead reports whether a pass of a session has read a message with this sender-chosen id.
func (db *DB) MessageRead(ctx context.Context, tenant, session, id string) (bool, error) {
	read, err := ask(ctx, db, tenant, value[bool], "MessageRead", tenant, session, jig.MessageKey(id))
	return orZero(read), err
}

func messageDetails(m chat.Message) []byte {
	shown := stored.Cut(m.Text, jig.ExcerptBytes)
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

// atStart is the pass of words that were there when a session started.
const atStart = -1

// passesOf returns the passes that bound what a call rests on: words that were said before the first, and sessions that were started before the
// second. Calls of a composition may have read what earlier calls of the same pass returned.
func passesOf(call jig.Call) (words, started int) {
	if call.Frame != "" {
		return call.Pass, call.Pass + 1
	}
	return call.Pass, call.Pass
}

// Askers returns those on whose word a call of a session rests that is being admitted. For a call that was admitted before, they are those of
// that time.
func (db *DB) Askers(ctx context.Context, call jig.Call) ([]jig.Asker, error) {
	var askers []jig.Asker
	var before *[]jig.Asker
	words, started := passesOf(call)
	err := db.once(ctx, call.Tenant, func(t *tx) {
		value(t.queue("ApprovalAskers", call.Tenant, call.SessionID, call.ID), &before)
		list(t.queue("Askers", call.Tenant, call.SessionID, words, started), &askers)
	})
	if before != nil {
		return *before, err
	}
	return askers, err
}

// Said records that somebody has put words into a session: calls that are made from now on rest on them.
func (db *DB) Said(ctx context.Context, tenant, id string, a jig.Asker) error {
	if a.Principal == "" {
		return nil
	}
	return db.once(ctx, tenant, func(t *tx) { t.said(id, a, nil) })
}

// SaidBy records that a call has put words into a session: whoever the call rests on put them there.
func (db *DB) SaidBy(ctx context.Context, id string, call jig.Call) error {
	return db.once(ctx, call.Tenant, func(t *tx) { t.saidBy(id, call, nil) })
}

// Repeats records that a session works with everything that was said in another one, as if it had been there from the start.
func (db *DB) Repeats(ctx context.Context, tenant, id, other string) error {
	all := jig.Call{SessionID: other, Pass: math.MaxInt32}
	return db.once(ctx, tenant, func(t *tx) { t.saidBy(id, all, new(atStart)) })
}

// said queues that somebody has put words into a session. pass is the pass in which it counts as said; nil is the running one.
func (t *tx) said(id string, a jig.Asker, pass *int) {
	if a.Principal != "" {
		t.queue("AskerAdd", t.tenant, id, text(a.Principal), a.Claimed, a.By, text(a.Maker), pass)
	}
}

// saidBy queues that a call has put words into a session.
func (t *tx) saidBy(id string, call jig.Call, pass *int) {
	words, started := passesOf(call)
	t.queue("AskersFlow", t.tenant, call.SessionID, words, started, id, pass)
}

// asked queues on whose word a new session rests: its principal's, or that of those on whose word the call rests that starts it.
func (t *tx) asked(s jig.Session) {
	if s.ParentID == "" {
		t.said(s.ID, jig.Asker{Principal: s.Principal.ID, Claimed: s.Principal.Claimed, Maker: s.Principal.Maker, By: jig.AskedStarted}, new(atStart))
		if s.TriggeredBy != nil {
			t.said(s.ID, *s.TriggeredBy, new(atStart))
		}
		return
	}
	pass, _, path, err := jig.ParseCallID(s.ParentCall)
	if err == nil { // else no call has started the session, and it cannot be stored
		t.saidBy(s.ID, jig.Call{SessionID: s.ParentID, Pass: pass, Frame: path}, new(atStart))
	}
}

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
