package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/stored"
)

// request holds the parts of a decision, an answer or a reconciliation that the store itself uses.
type request struct {
	tenant, session, key, call string
	// again is the key under which the same request finds its answer if it was accepted; empty for requests that name no call.
	again    string
	evidence *identity.Evidence
	// signed is kept if the request is accepted.
	signed *approval.Signed
	// edits is set if the request changes the call's input, and reconciles if it settles an unknown outcome. For such a request, load reads
	// more rows.
	edits, reconciles bool
}

// Decide applies a decision: one compare-and-set on the approval's row, with its events, its audit row and its notice. The rules are
// those of [approval.Decide]. It is idempotent by Key. A refused decision is recorded (a decision.refused event, an audit row and the
// answer under its key; see also [MaxRefusedSignals]) and changes nothing else.
func (db *DB) Decide(ctx context.Context, r approval.DecisionRequest) (approval.Applied, error) {
	if r.Now.IsZero() {
		r.Now = time.Now()
	}
	q := request{tenant: r.Tenant, session: r.SessionID, key: r.Key, call: r.Decision.Call, evidence: r.Evidence, signed: r.Signed, edits: r.Edited != nil}
	q.again = protocol.Again(r.Principal.ID, r.Decision)
	return db.ruling(ctx, q, func(s approval.State) (approval.Transition, error) { return approval.Decide(s, r) })
}

// Reply answers a question: the call succeeds with the value. The rules are those of [approval.Reply]. It is idempotent by Key. A
// refused answer is recorded like a refused decision.
func (db *DB) Reply(ctx context.Context, r approval.ReplyRequest) (approval.Applied, error) {
	q := request{tenant: r.Tenant, session: r.SessionID, key: r.Key, call: r.Reply.Call, evidence: r.Evidence}
	q.again = protocol.Again(r.Principal.ID, r.Reply)
	return db.ruling(ctx, q, func(s approval.State) (approval.Transition, error) { return approval.Reply(s, r) })
}

// Reconcile applies a person's statement about an unknown outcome. The rules are those of [approval.Reconcile]. It is idempotent by Key. A
// refused statement is recorded like a refused decision.
func (db *DB) Reconcile(ctx context.Context, r approval.ReconcileRequest) (approval.Applied, error) {
	q := request{tenant: r.Tenant, session: r.SessionID, key: r.Key, call: r.Reconciliation.Call, evidence: r.Evidence, reconciles: true}
	q.again = protocol.Again(r.Principal.ID, r.Reconciliation)
	return db.ruling(ctx, q, func(s approval.State) (approval.Transition, error) { return approval.Reconcile(s, r) })
}

// Ruled returns the answers that were stored under keys, in the order of the keys. Keys without an answer are left out.
func (db *DB) Ruled(ctx context.Context, tenant, session string, keys []string) ([]jig.Ruled, error) {
	return ask(ctx, db, tenant, column[jig.Ruled], "DecisionsOf", tenant, session, keys)
}

// Refuse records decision.refused for a signal that names no call. It is idempotent by key.
func (db *DB) Refuse(ctx context.Context, tenant, id, key, reason string, data json.RawMessage) error {
	_, err := db.ruling(ctx, request{tenant: tenant, session: id, key: key}, func(s approval.State) (approval.Transition, error) {
		about := approval.Details{}
		if len(data) > 0 {
			about["payload"], _ = stored.Preview(data)
		}
		return approval.Refuse(s, reason, about), nil
	})
	return err
}

// ruling reads the state of a call under lock, passes it to the rules, and saves the transition with its answer. If the key was answered
// before, the stored answer is returned instead, with the call as it is now. A token sent with the request is used up only when the request is accepted.
func (db *DB) ruling(ctx context.Context, q request, rules func(approval.State) (approval.Transition, error)) (approval.Applied, error) {
	if q.key == "" {
		return approval.Applied{}, jig.Errorf(jig.CodeInvalidInput, "a decision needs a key").WithField("key")
	}
	var answer jig.Ruled
	var call *callRow
	err := db.transact(ctx, q.tenant, func(t *tx) error {
		rows := locked{session: q.session}
		stored, state, err := t.load(ctx, q, &rows)
		if err != nil {
			return err
		}
		if call = rows.call; stored != nil {
			answer = *stored
			return nil
		}
		change, err := rules(state)
		if err != nil {
			return err
		}
		answer = change.Ruled
		if change.Refused() && rows.call == nil {
			kept, err := t.countRefused(ctx, state)
			if err != nil || !kept {
				return err
			}
		}
		l := &log{}
		if err := t.save(&rows, state, change, l); err != nil {
			return err
		}
		kept, err := encode(answer)
		if err != nil {
			return err
		}
		if !change.Refused() {
			t.useToken(q.evidence, true)
			if change.Said != nil {
				t.said(q.session, *change.Said, nil)
			}
			if err := t.keepSigned(q.session, q.signed); err != nil {
				return err
			}
			t.queue("DecisionKeep", q.tenant, q.session, q.again, kept)
		}
		t.queue("DecisionInsert", q.tenant, q.session, q.key, kept)
		if call != nil {
			first(t.queue("CallGet", q.tenant, q.session, q.call), &call)
		}
		return t.finish(ctx, l, q.session)
	})
	if err != nil || call == nil {
		return approval.Applied{Ruled: answer}, err
	}
	return approval.Applied{Ruled: answer, Call: new(call.call())}, nil
}

// load locks the rows that a request is about and reads what the rules need. stored is the answer to an earlier request with the same
// key.
func (t *tx) load(ctx context.Context, q request, rows *locked) (stored *jig.Ruled, state approval.State, err error) {
	var status *string
	var before *jig.Ruled
	var use *tokenUse
	var shared *bool
	value(t.queue("SessionStatus", t.tenant, q.session), &status)
	first(t.queue("CallLock", t.tenant, q.session, q.call), &rows.call)
	first(t.queue("ApprovalOpenLock", t.tenant, q.session, q.call), &rows.open)
	if q.reconciles {
		first(t.queue("ApprovalLatest", t.tenant, q.session, q.call), &rows.latest)
	}
	value(t.queue("DecisionGet", t.tenant, q.session, q.key), &before) // after the lock, so that it sees what the lock waited for
	t.usedToken(q.evidence, &use)
	if err := t.flush(ctx); err != nil {
		return nil, state, err
	}
	switch {
	case status == nil:
		return nil, state, noSession(q.session)
	case before != nil:
		return before, state, nil
	case q.edits && rows.call != nil:
		value(t.queue("CallSharesKey", t.tenant, q.session, q.call, rows.call.IdempotencyKey), &shared)
		if err := t.flush(ctx); err != nil {
			return nil, state, err
		}
	}
	if state, err = rows.state(t.tenant); err != nil {
		return nil, state, err
	}
	state.TokenUsed, state.SharesKey = use != nil, shared != nil && *shared
	if q.reconciles {
		state.ArtifactID = jig.NewArtifactID()
	}
	return nil, state, nil
}

// MaxRefusedSignals is the maximum number of signals to one session that are recorded, each with an event and an audit row, although they
// name no call of the session. Further ones are only counted, because anybody who can reach Temporal can send them without end.
const MaxRefusedSignals = 100

// countRefused counts a signal that names no call, and reports whether the signal must be recorded itself. Beyond the limit, it records
// one event with the total for the first such signal and at every power of ten.
func (t *tx) countRefused(ctx context.Context, s approval.State) (kept bool, err error) {
	var count *int64
	value(t.queue("SessionCountRefused", t.tenant, s.SessionID), &count)
	if err := t.flush(ctx); err != nil {
		return false, err
	}
	if count == nil || *count <= MaxRefusedSignals {
		return true, nil
	}
	if *count > MaxRefusedSignals+1 && !powerOfTen(*count) {
		return false, t.commit(ctx)
	}
	why := fmt.Sprintf("%d signals named no call of this session; after the first %d they are counted, not recorded", *count, MaxRefusedSignals)
	l := &log{}
	l.take(approval.Refuse(s, why, approval.Details{"refused": *count}))
	return false, t.finish(ctx, l, s.SessionID)
}

func powerOfTen(n int64) bool {
	for n > 1 && n%10 == 0 {
		n /= 10
	}
	return n == 1
}

// signedRow is a row of the query SignedOf.
type signedRow struct {
	Token    string
	Decision []byte
	Digest   string
	Shown    []byte
}

// keepSigned queues a decision that was accepted with the token that proves it.
func (t *tx) keepSigned(session string, s *approval.Signed) error {
	if s == nil {
		return nil
	}
	s.Decision.Token = ""
	decision, err := encode(s.Decision)
	if err != nil {
		return err
	}
	shown, err := encode(s.Shown)
	if err != nil {
		return err
	}
	t.queue("SignedInsert", t.tenant, session, s.Decision.Call, s.Token, decision, s.Digest, shown)
	return nil
}

// Signed returns the latest approval of a call, nil if there was none, and the signed decisions about the call, oldest first.
func (db *DB) Signed(ctx context.Context, tenant, id, callID string) (approved *approval.Record, decisions []approval.Signed, err error) {
	var latest *approvalRow
	var rows []signedRow
	err = db.once(ctx, tenant, func(t *tx) {
		first(t.queue("ApprovalLatest", tenant, id, callID), &latest)
		list(t.queue("SignedOf", tenant, id, callID), &rows)
	})
	if err != nil || latest == nil {
		return approved, nil, err
	}
	approved = latest.readable()
	for _, row := range rows {
		s := approval.Signed{Token: row.Token, Digest: row.Digest}
		if json.Unmarshal(row.Decision, &s.Decision) == nil && json.Unmarshal(row.Shown, &s.Shown) == nil { // what somebody made unreadable proves nothing
			decisions = append(decisions, s)
		}
	}
	return approved, decisions, nil
}

// tokenUse describes the request that a token was used for.
type tokenUse struct {
	Request string
	// Changed is the stored answer to a request that concerns no call: whether it changed anything.
	Changed bool
}

// again reports whether a token sent with a request was already used in another one.
func (u *tokenUse) again(e *identity.Evidence) bool {
	return u != nil && (u.Request != e.Request || e.Request == "")
}

// tokenID identifies a token by a hash: a signer's token id may be long, and two keys may use the same one.
func tokenID(e *identity.Evidence) string {
	sum := sha256.Sum256([]byte(e.Key + "\x00" + e.Token))
	return hex.EncodeToString(sum[:])
}

// usedToken queues the lookup of a token's earlier use. into stays nil when the token was not used before or there is no token.
func (t *tx) usedToken(e *identity.Evidence, into **tokenUse) {
	if e != nil && e.Token != "" {
		first(t.queue("TokenUsed", t.tenant, tokenID(e)), into)
	}
}

// useToken queues the use of a token. If a token is used twice at the same time, one transaction fails and is retried once the other
// is visible.
func (t *tx) useToken(e *identity.Evidence, changed bool) {
	if e != nil && e.Token != "" {
		t.queue("TokenUse", t.tenant, tokenID(e), text(e.Request), changed, e.Until)
	}
}

// reused records that a token was used again for something that concerns no call, commits, and returns NOT_PERMITTED.
func (t *tx) reused(ctx context.Context, e audit.Entry) error {
	e.Kind, e.Reason = audit.AuditRefused, approval.RefusedToken
	if err := t.finish(ctx, &log{audits: []audit.Entry{e}}, ""); err != nil {
		return err
	}
	return jig.Errorf(jig.CodeNotPermitted, "the token was used already: a token is valid only once").WithField("token").
		WithHint("see whether it is done (`jig pause --list`, `jig grant list --all`), and sign again if it is not")
}

// ForgetTokens deletes up to 1,000 used tokens of all tenants that expired longer than age ago. It returns how many it deleted.
func (db *DB) ForgetTokens(ctx context.Context, age time.Duration) (int64, error) {
	gone, err := ask(ctx, db, "", value[int64], "TokensForget", age, forgetAtOnce)
	return orZero(gone), err
}
