package store

import (
	"context"
	"math"

	"github.com/jig-run/jig"
)

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
