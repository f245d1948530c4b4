package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/stored"
)

// equalRow is a row of the query CallsEqual.
type equalRow struct {
	jig.Call

	Error    *jig.Error
	Message  int
	Answered bool
}

// EqualCalls returns the calls in other passes of the session that have one of the given signatures, oldest first. Calls that were
// themselves duplicates are left out.
func (db *DB) EqualCalls(ctx context.Context, tenant, id string, pass int, signatures []string) ([]ledger.Earlier, error) {
	if len(signatures) == 0 {
		return nil, nil
	}
	rows, err := ask(ctx, db, tenant, list[equalRow], "CallsEqual", tenant, id, pass, signatures)
	if err != nil {
		return nil, err
	}
	found := make([]ledger.Earlier, len(rows))
	for i, r := range rows {
		found[i] = ledger.Earlier{Call: r.Call, Error: r.Error, InDoubt: r.InDoubt, Message: r.Message, Answered: r.Answered}
	}
	return found, nil
}

// Call returns one call, or NOT_FOUND.
func (db *DB) Call(ctx context.Context, tenant, id, callID string) (jig.Call, error) {
	row, err := ask(ctx, db, tenant, first[callRow], "CallGet", tenant, id, callID)
	if err != nil {
		return jig.Call{}, err
	}
	if row == nil {
		return jig.Call{}, noCall(id, callID)
	}
	return row.call(), nil
}

// Window returns the open calls of a pass: up to 100 that wait for a person and up to limit others, with the open approvals of the
// returned calls. [ledger.Window].More reports whether there are more open calls than were returned.
func (db *DB) Window(ctx context.Context, tenant, id string, pass, limit int) (ledger.Window, error) {
	var rows []callRow
	var open []approvalRow
	err := db.once(ctx, tenant, func(t *tx) {
		list(t.queue("CallsWindow", tenant, id, pass, limit), &rows)
		list(t.queue("ApprovalsOpenOfPass", tenant, id, pass), &open)
	})
	if err != nil {
		return ledger.Window{}, err
	}
	var w ledger.Window
	const maxWaiting = 100
	waiting, others := 0, 0
	for i := range rows {
		n, bound := &others, limit
		if waits(rows[i].Status) {
			n, bound = &waiting, maxWaiting
		}
		if *n++; *n > bound {
			w.More = true
			continue
		}
		w.Calls = append(w.Calls, rows[i].call())
	}
	w.Approvals, err = approvalsOf(w.Calls, open)
	return w, err
}

// approvalsOf picks the open approvals that belong to the given calls, by call id.
func approvalsOf(list []jig.Call, open []approvalRow) (map[string]jig.Pending, error) {
	taken := make(map[string]bool, len(list))
	for _, c := range list {
		taken[c.ID] = true
	}
	approvals := map[string]jig.Pending{}
	for i := range open {
		if taken[open[i].Call] {
			var err error
			if approvals[open[i].Call], err = open[i].pending(); err != nil {
				return nil, err
			}
		}
	}
	return approvals, nil
}

func waits(s jig.CallStatus) bool { return s == jig.CallWaiting || s == jig.CallUnknown }

// Admit stores a pass's calls, approvals and events in one transaction. If any of the calls is already stored, the pass was admitted
// before and nothing changes. It returns NOT_FOUND for an unknown session and CONFLICT for a session that has ended.
func (db *DB) Admit(ctx context.Context, a ledger.Admission) error {
	if len(a.Calls) == 0 {
		return nil
	}
	ready, err := db.admission(a)
	if err != nil {
		return err
	}
	return db.transact(ctx, a.Tenant, func(t *tx) error {
		var status *jig.Status
		var known []string
		value(t.queue("SessionStatus", a.Tenant, a.SessionID), &status)
		column(t.queue("CallsKnown", a.Tenant, a.SessionID, ready.ids), &known)
		if err := t.flush(ctx); err != nil {
			return err
		}
		switch {
		case status == nil:
			return noSession(a.SessionID)
		case len(known) > 0:
			return nil
		case status.Final():
			return sessionEndedAs(a.SessionID, *status)
		}
		t.admit(ready)
		return t.finish(ctx, ready.log, a.SessionID)
	})
}

func sessionEndedAs(session string, status jig.Status) error {
	return jig.Errorf(jig.CodeConflict, "session %q has ended (%s): no call can be admitted", session, status)
}

// admitting holds an admission as arguments of its SQL statements, with its events.
type admitting struct {
	ids       []string
	calls     []any // arguments of CallsInsert
	approvals []any // arguments of ApprovalsInsert; empty when no call needs an approval
	log       *log
}

// admit queues the calls and approvals of an admission. The caller records the events.
func (t *tx) admit(a admitting) {
	t.queue("CallsInsert", a.calls...)
	t.observeCalls(func() []jig.Call { return a.log.ended })
	if len(a.approvals) > 0 {
		t.queue("ApprovalsInsert", a.approvals...)
	}
}

func (db *DB) admission(a ledger.Admission) (admitting, error) {
	calls, l, err := callColumns(db.installation, a)
	if err != nil {
		return admitting{}, err
	}
	ready := admitting{calls: calls, log: l}
	for _, c := range a.Calls {
		ready.ids = append(ready.ids, c.ID)
	}
	if len(a.Approvals) > 0 {
		columns, err := approvalColumns(a.Approvals)
		if err != nil {
			return admitting{}, err
		}
		ready.approvals = append([]any{a.Tenant, a.SessionID}, columns...)
	}
	return ready, nil
}

// callColumns returns the arguments of CallsInsert and the events of the admission.
func callColumns(installation string, a ledger.Admission) ([]any, *log, error) {
	asked := make(map[string]*jig.Pending, len(a.Approvals))
	for _, p := range a.Approvals {
		p.Tenant, p.SessionID = a.Tenant, a.SessionID
		asked[p.Call] = &p
	}
	n := len(a.Calls)
	ids, providers, tools, versions := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	passes, ordinals := make([]int32, n), make([]int32, n)
	writes, idempotents := make([]bool, n), make([]bool, n)
	inputs, results, errs := make([][]byte, n), make([][]byte, n), make([][]byte, n)
	signatures, keys, digests, policies := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	verdicts, reasons, statuses, duplicates, summaries := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	private, untrusted, flows := make([]bool, n), make([]bool, n), make([]string, n)
	frames, effects, retries := make([]string, n), make([]string, n), make([]string, n)
	l := &log{}
	for i, c := range a.Calls {
		why, err := encodeReasons(c.Reasons)
		if err != nil {
			return nil, nil, err
		}
		if flows[i], err = encodeFlow(c.Flow); err != nil {
			return nil, nil, err
		}
		private[i], untrusted[i] = c.ReadsPrivate, c.ReadsUntrusted
		c.Tenant, c.SessionID, c.Pass = a.Tenant, a.SessionID, a.Pass
		change := ledger.Admit(c, asked[c.ID])
		ids[i], providers[i], tools[i], versions[i] = c.ID, text(c.ProviderID), text(c.Tool), c.Version
		passes[i], ordinals[i] = int32(a.Pass), int32(c.Ordinal) //nolint:gosec // passes and ordinals are small
		writes[i], idempotents[i], inputs[i] = c.Write, c.Idempotent, c.Input
		signatures[i], keys[i], digests[i], policies[i] = c.Signature, text(c.ConcurrencyKey), c.Digest, c.PolicyVersion
		verdicts[i], reasons[i], statuses[i], duplicates[i] = string(c.Verdict), why, string(change.Call.Status), c.DuplicateOf
		frames[i], effects[i], retries[i] = c.Frame, jig.IdempotencyKey(installation, a.Tenant, a.SessionID, c.ID), c.RetryOf
		if result := change.Call.Result; result != nil {
			columns, err := columnsOf(*result)
			if err != nil {
				return nil, nil, err
			}
			results[i], summaries[i], errs[i] = columns.body, columns.summary, columns.err
		}
		l.take(change.Transition)
		if change.Call.Status.Final() {
			l.ended = append(l.ended, jig.Call{SessionID: a.SessionID, ID: c.ID, Tool: c.Tool, Status: change.Call.Status, Result: change.Call.Result})
		}
	}
	return []any{
		a.Tenant, a.SessionID, ids, passes, ordinals, providers, tools, versions, writes, idempotents, inputs, signatures, keys,
		digests, policies, verdicts, reasons, statuses, duplicates, results, summaries, errs, frames,
		effects, retries, private, untrusted, flows,
	}, l, nil
}

func encodeReasons(reasons []string) (string, error) {
	if len(reasons) == 0 {
		return "", nil
	}
	b, err := encodeReadable(reasons)
	return string(b), err
}

// encodeFlow returns what is known about the origin of a call's arguments as JSON, or "".
func encodeFlow(f *jig.DataFlow) (string, error) {
	if f == nil {
		return "", nil
	}
	b, err := encodeReadable(f)
	return string(b), err
}

// approvalColumns returns the arguments of ApprovalsInsert that follow tenant and session.
func approvalColumns(list []jig.Pending) ([]any, error) {
	n := len(list)
	ids, kinds, tools, inputs, summaries := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	reasons, digests, by := make([]string, n), make([]string, n), make([]string, n)
	truncated, requested, expires := make([]bool, n), make([]time.Time, n), make([]*time.Time, n)
	agents, policies, grants := make([]string, n), make([]string, n), make([]string, n)
	terms, votes, delegations, questions := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	attempts, previews, askers := make([]int, n), make([]string, n), make([]string, n)
	for i, p := range list {
		why, err := encodeReasons(p.Reasons)
		if err != nil {
			return nil, err
		}
		if p.Kind == "" {
			p.Kind = jig.PendingApproval
		}
		if p.RequestedAt.IsZero() {
			p.RequestedAt = time.Now()
		}
		ids[i], kinds[i], tools[i], inputs[i] = p.Call, string(p.Kind), text(p.Tool), string(stored.Valid(p.Input))
		truncated[i], summaries[i], reasons[i], digests[i], by[i] = p.Truncated, text(p.Summary), why, p.Digest, text(p.RequestedBy)
		requested[i], expires[i] = p.RequestedAt, moment(p.ExpiresAt)
		agents[i], policies[i], grants[i] = text(p.Agent), p.PolicyVersion, p.Grant
		attempts[i] = p.Attempt
		for _, part := range []struct {
			into  *string
			given bool
			value any
		}{
			{&terms[i], p.Terms != nil, p.Terms},
			{&votes[i], len(p.Votes) > 0, p.Votes},
			{&delegations[i], len(p.Delegations) > 0, p.Delegations},
			{&questions[i], p.Question != nil, p.Question},
			{&previews[i], p.Preview != nil, p.Preview},
			{&askers[i], len(p.Askers) > 0, p.Askers},
		} {
			if !part.given {
				continue
			}
			b, err := encode(part.value)
			if err != nil {
				return nil, err
			}
			*part.into = string(b)
		}
	}
	return []any{
		ids, kinds, tools, inputs, truncated, summaries, reasons, digests, by, requested, expires, agents, policies, terms, votes,
		delegations, questions, grants, attempts, previews, askers,
	}, nil
}

// pendingData encodes an approval in full as event data. Input that is not valid JSON is replaced by a preview.
func pendingData(p jig.Pending) []byte {
	if !json.Valid(p.Input) {
		p.Input, p.Truncated = stored.PreviewInput(p.Input)
	}
	b, err := encode(p)
	if err != nil {
		return details{"kind": string(p.Kind), "call": p.Call, "tool": p.Tool, "summary": p.Summary, "digest": p.Digest}.json()
	}
	return b
}

// OlderCalls returns up to limit successful calls of a session's passes up to and including through, latest first. Calls inside
// compositions are not included. A limit below 1 or above 1,000 means 1,000.
func (db *DB) OlderCalls(ctx context.Context, tenant, id string, through, limit int) ([]jig.Call, error) {
	var rows []callRow
	var status *string
	err := db.once(ctx, tenant, func(t *tx) {
		value(t.queue("SessionStatus", tenant, id), &status)
		list(t.queue("CallsOlder", tenant, id, through, page(limit)), &rows)
	})
	if err != nil {
		return nil, err
	}
	if status == nil {
		return nil, noSession(id)
	}
	return calls(rows), nil
}
