package store

import (
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/stored"
)

// locked holds the rows that concern a call, read under lock. call is nil when the session has no such call, and open is nil when nobody
// is being asked about the call. latest is the call's latest approval; it is read only if the rules need it. changed is the call's row
// after its change, once the change was flushed. timed is set if that change ends an attempt.
type locked struct {
	session       string
	call, changed *callRow
	open, latest  *approvalRow
	timed         bool
}

// state converts the rows for the rules of approvals.
func (r locked) state(tenant string) (s approval.State, err error) {
	s = approval.State{Tenant: tenant, SessionID: r.session}
	if r.call != nil {
		s.Call = new(r.call.facts())
	}
	if s.Open, err = r.open.record(); err != nil {
		return s, err
	}
	s.Latest, err = r.latest.record()
	return s, err
}

// ledger converts the rows for the rules of the ledger.
func (r locked) ledger(tenant string) ledger.State {
	s := r.call.ledger(tenant)
	s.Open, s.Latest = r.open.readable(), r.latest.readable()
	return s
}

// ledger converts a call, without its approvals, for the rules of the ledger.
func (r *callRow) ledger(tenant string) ledger.State {
	return ledger.State{
		State:   approval.State{Tenant: tenant, SessionID: r.SessionID, Call: new(r.facts())},
		Version: r.Version, Verdict: r.Verdict, Idempotent: r.Idempotent, Attempt: r.Attempt, Now: time.Now(),
		FailedAt: r.FailedAt, Failures: r.Failures, Tried: r.Tried,
	}
}

// now returns the call's row after its change, or as it was read.
func (r locked) now() *callRow {
	if r.changed != nil {
		return r.changed
	}
	return r.call
}

// facts returns the columns that the rules of approvals read.
func (r *callRow) facts() approval.Call {
	return approval.Call{
		ID: r.ID, ProviderID: r.ProviderID, Tool: r.Tool, Pass: r.Pass, Status: r.Status, Input: r.Input, Digest: r.Digest, PolicyVersion: r.PolicyVersion,
		EditedBy: r.EditedBy, Fence: r.Fence, Write: r.Write, InDoubt: r.InDoubt,
	}
}

// record returns the approval as the rules see it; nil if there is no row.
func (r *approvalRow) record() (*approval.Record, error) {
	if r == nil {
		return nil, nil // nil means that there is no approval
	}
	p, err := r.pending()
	if err != nil {
		return nil, err
	}
	return &approval.Record{
		Pending: p, Status: r.Status, ApprovedDigest: r.ApprovedDigest, DecidedBy: r.DecidedBy, Claimed: r.Claimed, NoticedAt: r.NoticedAt,
	}, nil
}

// readable returns the approval as the rules see it; nil if there is no row. It also works if somebody has made the votes, delegations or
// terms unreadable: such an approval covers nothing and proves nothing, but it can be withdrawn.
func (r *approvalRow) readable() *approval.Record {
	record, err := r.record()
	if err == nil {
		return record
	}
	shown := r.shown()
	return &approval.Record{Status: r.Status, Claimed: true, Pending: jig.Pending{
		Digest: r.Digest, Summary: shown.Summary, Reasons: shown.Reasons, Input: shown.Input, Truncated: shown.Truncated, Grant: r.Grant,
	}}
}

// shown returns the parts of the call that the approver saw.
func (r *approvalRow) shown() *audit.Shown {
	shown := audit.ShownOf(r.Pending)
	if decode(r.Reasons, &shown.Reasons) != nil {
		shown.Reasons = nil
	}
	if decode(r.Preview, &shown.Preview) != nil {
		shown.Preview = nil
	}
	return shown
}

// save queues everything that a transition changes. Its events, notices and audit rows go to l.
func (t *tx) save(rows *locked, s approval.State, change approval.Transition, l *log) error {
	if change.Votes != nil {
		votes, err := encode(change.Votes)
		if err != nil {
			return err
		}
		t.queue("ApprovalVote", t.tenant, rows.open.ID, votes)
	}
	if change.Delegations != nil {
		delegations, err := encode(change.Delegations)
		if err != nil {
			return err
		}
		t.queue("ApprovalDelegate", t.tenant, rows.open.ID, delegations)
	}
	if change.Wider != nil {
		terms, err := encode(change.Wider.Terms)
		if err != nil {
			return err
		}
		reasons, err := encodeReasons(change.Wider.Reasons)
		if err != nil {
			return err
		}
		t.queue("ApprovalWiden", t.tenant, rows.open.ID, terms, optional([]byte(reasons)))
	}
	if !change.NoticedAt.IsZero() {
		t.queue("ApprovalNoticed", t.tenant, rows.open.ID, change.NoticedAt)
	}
	if change.Outcome != nil {
		if err := t.endApproval(rows.open, *change.Outcome); err != nil {
			return err
		}
	}
	if change.Call != nil {
		if err := t.changeCall(rows, *change.Call, s.ArtifactID); err != nil {
			return err
		}
		t.observeCall(rows, *change.Call)
	}
	if change.Grant != nil {
		t.queue("GrantInsert", grantColumns(t.tenant, *change.Grant)...)
	}
	l.take(change)
	if change.Opens == nil {
		return nil
	}
	return t.open(*change.Opens)
}

// endApproval ends an open approval, or voids one that was granted.
func (t *tx) endApproval(row *approvalRow, o approval.Outcome) error {
	if row.Status == approval.Approved || row.Status == approval.Consumed {
		t.queue("ApprovalVoid", t.tenant, row.ID, o.Reason)
		return nil
	}
	votes, err := encodeIf(o.Votes != nil, o.Votes)
	if err != nil {
		return err
	}
	if o.NewTerms {
		terms, err := encodeIf(o.Terms != nil, o.Terms)
		if err != nil {
			return err
		}
		t.queue("ApprovalTerms", t.tenant, row.ID, terms)
	}
	t.queue("ApprovalDecide", t.tenant, row.ID, o.Status, o.Answer, text(o.By), o.Claimed, text(o.Note), text(o.Reason), o.Key, o.Digest,
		o.Before, o.After, optional(o.Patch), votes, o.Grant)
	return nil
}

// changeCall changes the call of an approval. A result that is too large for the row is stored as artifact.
func (t *tx) changeCall(rows *locked, c approval.CallChange, artifact string) error {
	id := rows.call.ID
	switch {
	case c.InDoubt != nil:
		var failed *time.Time
		if !c.Failed.IsZero() {
			failed = &c.Failed
		}
		first(t.queue("CallGiveBack", t.tenant, rows.session, id, *c.InDoubt, failed, c.Anew), &rows.changed)
		return nil
	case c.Edited != nil:
		return t.editCall(rows, *c.Edited)
	case c.Result == nil:
		first(t.queue("CallSet", t.tenant, rows.session, id, c.Status, nil, "", nil, ""), &rows.changed)
		return nil
	case len(c.Whole) == 0:
		artifact = ""
	default:
		t.keepAs(artifact, rows.session, "application/json", c.Whole)
	}
	columns, err := columnsOf(*c.Result)
	if err != nil {
		return err
	}
	first(t.queue("CallSet", t.tenant, rows.session, id, c.Status, columns.body, columns.summary, columns.err, artifact), &rows.changed)
	if c.Wrote {
		t.queue("SessionCountWrite", t.tenant, rows.session)
	}
	read := c.Status == jig.CallSucceeded || c.Status == jig.CallFailed
	if c.Reads != (approval.Reads{}) || read && (rows.call.ReadsPrivate || rows.call.ReadsUntrusted) {
		t.queue("CallRead", t.tenant, rows.session, id, c.Reads.Private, c.Reads.Untrusted, c.Reads.Steps)
	}
	return nil
}

// editCall replaces the input of a call, and what was derived from it.
func (t *tx) editCall(rows *locked, e jig.Call) error {
	reasons, flow, preview, err := rulingColumns(e)
	if err != nil {
		return err
	}
	t.queue("CallEdit", t.tenant, rows.session, rows.call.ID, e.Input, e.Digest, e.Version, e.PolicyVersion,
		reasons, e.Signature, text(e.ConcurrencyKey), e.Status, optional(e.Patch), text(e.EditedBy),
		flow, e.ReadsPrivate, e.ReadsUntrusted, preview)
	return nil
}

// rulingColumns returns what the verdict on a call rests on, as JSON for nullable columns: the reasons, the data flow and the preview.
func rulingColumns(c jig.Call) (reasons, flow, preview []byte, err error) {
	why, err := encodeReasons(c.Reasons)
	if err != nil {
		return nil, nil, nil, err
	}
	if flow, err = encodeIf(c.Flow != nil, c.Flow); err != nil {
		return nil, nil, nil, err
	}
	preview, err = encodeIf(c.Preview != nil, c.Preview)
	return optional([]byte(why)), stored.Readable(flow), preview, err
}

// saveCall queues everything that a transition of the ledger changes.
func (t *tx) saveCall(rows *locked, s ledger.State, change ledger.Transition, l *log) error {
	id := rows.call.ID
	if a := change.Begins; a != nil {
		first(t.queue("CallStart", t.tenant, rows.session, id, a.ID, text(a.Child), a.InDoubt), &rows.changed)
		t.observe(func(o Observer) { o.CallStarted(rows.call.Tool, rows.call.Fence+1) })
	}
	if change.Readmits != nil {
		if err := t.readmit(rows, *change.Readmits); err != nil {
			return err
		}
		t.observeCalls(func() []jig.Call { return []jig.Call{rows.call.became(change.Readmits.Status, change.Readmits.Result)} })
	}
	if change.Late {
		t.queue("ApprovalsCancelOf", t.tenant, rows.session, []string{id}, ledger.WhyLate)
		t.queue("SettledInsert", t.tenant, rows.session, id, rows.call.Frame)
	}
	return t.save(rows, s.State, change.Transition, l)
}

// readmit queues the new admission of a call.
func (t *tx) readmit(rows *locked, c jig.Call) error {
	var columns resultColumns
	if c.Result != nil {
		var err error
		if columns, err = columnsOf(*c.Result); err != nil {
			return err
		}
	}
	reasons, flow, preview, err := rulingColumns(c)
	if err != nil {
		return err
	}
	first(t.queue("CallReadmit", t.tenant, rows.session, rows.call.ID, c.Version, c.Write, c.Idempotent, c.Digest, c.PolicyVersion,
		c.Verdict, reasons, c.Status, columns.body, columns.summary, columns.err, c.Signature, text(c.ConcurrencyKey),
		c.Input, c.ReadsPrivate, c.ReadsUntrusted, flow, preview, c.Previews), &rows.changed)
	return nil
}

// open queues the insertion of an approval or a question.
func (t *tx) open(p jig.Pending) error {
	columns, err := approvalColumns([]jig.Pending{p})
	if err != nil {
		return err
	}
	t.queue("ApprovalsInsert", append([]any{t.tenant, p.SessionID}, columns...)...)
	return nil
}

// take adds the events, notices and audit rows of a transition.
func (l *log) take(change approval.Transition) {
	for _, e := range change.Events {
		l.event(e)
	}
	l.notices = append(l.notices, change.Notices...)
	l.audits = append(l.audits, change.Audit...)
}

// event adds an event of a transition.
func (l *log) event(e approval.Event) {
	data := details(e.Data).json()
	if e.Asked != nil {
		data = pendingData(*e.Asked)
	}
	l.add(jig.Event{Type: e.Type, Pass: e.Pass, CallID: e.CallID, Tool: e.Tool, Data: data})
}
