package store

import (
	"context"
	"reflect"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
)

// mayEdit returns why the input of a call cannot be changed, or "". A call that retries an earlier call shares that call's
// idempotency key, and a key identifies one request.
func (t *tx) mayEdit(ctx context.Context, row *callRow) (string, error) {
	var shared *bool
	value(t.queue("CallSharesKey", t.tenant, row.SessionID, row.CallID, row.IdempotencyKey), &shared)
	if err := t.flush(ctx); err != nil || shared == nil || !*shared {
		return "", err
	}
	return "the call tries an earlier one again under the same idempotency key, which stands for one request: its input cannot be changed; deny it instead", nil
}

// edit applies changed input. The edit also counts as the editor's approval of the new input, if its terms entitle that person. If
// the new terms need more approvals, a new approval opens.
func (t *tx) edit(d decision, l *log) (jig.Ruled, error) {
	s, e := d.subject, d.Edited
	fresh := *d.Fresh
	fresh.Tenant, fresh.SessionID, fresh.Call, fresh.RequestedBy, fresh.Votes = t.tenant, s.session, s.call.CallID, d.pending.RequestedBy, nil
	if sameTerms(fresh.Terms, d.pending.Terms) { // the same approval for different input
		fresh.RequestedAt, fresh.ExpiresAt, fresh.Delegations = d.pending.RequestedAt, d.pending.ExpiresAt, d.pending.Delegations
	}
	consent := approval.ConsentOf(fresh)
	if counts, why := consent.Entitled(d.Principal, d.Now); why == "" {
		d.counts = counts
		fresh.Votes = []jig.Vote{d.vote()}
		consent.Votes = fresh.Votes
	}
	missing, status := consent.Missing(), jig.CallReserved
	if missing != "" {
		status = jig.CallWaiting
	}
	if missing != "" && d.Grant != nil {
		why := "a grant cannot come with a change that needs another approval: " + missing
		return s.refused(l, s.call.CallID, why, d.details(), entryOf(d.Principal, d.Evidence, d.Decision.Note)), nil
	}
	reasons, err := encodeReasons(e.Reasons)
	if err != nil {
		return jig.Ruled{}, err
	}
	before, after := nonNil(s.call.Input), nonNil(e.Input)
	shownBefore, _ := previewInput(before)
	shownAfter, _ := previewInput(after)
	what := d.details()
	what["digest"] = s.call.Digest
	what["edited"] = details{"before": shownBefore, "after": shownAfter, "digest": e.Digest, "patch": d.Patch}
	entry := s.entry(audit.AuditEdited, d.Principal, d.Evidence)
	entry.Patch, entry.ApprovedDigest, entry.Note, entry.PolicyVersion = d.Patch, e.Digest, d.Decision.Note, e.PolicyVersion
	t.queue("CallEdit", t.tenant, s.session, s.call.CallID, e.Input, e.Digest, e.Version, e.PolicyVersion,
		optional([]byte(reasons)), e.Signature, text(e.ConcurrencyKey), status, optional(e.Patch), text(d.Principal.ID))
	ruled := jig.Ruled{Call: s.call.CallID, Outcome: jig.DecisionAccepted, Status: status}
	entry.Status = status
	l.audits = append(l.audits, entry)
	if missing == "" {
		votes, err := encode(consent.Votes)
		if err != nil {
			return jig.Ruled{}, err
		}
		if err := t.terms(s.approval, fresh.Terms); err != nil {
			return jig.Ruled{}, err
		}
		t.queue("ApprovalDecide", t.tenant, s.approval.ID, approval.Approved, jig.AnswerApprove, text(d.Principal.ID), d.Principal.Claimed,
			text(d.Decision.Note), "", d.Key, e.Digest, before, after, optional(d.Patch), votes)
		l.of(s.call, jig.EventToolApproved, what)
		t.decided(d, l, ruled)
		t.grant(d, l, &ruled)
		return ruled, nil
	}
	t.queue("ApprovalDecide", t.tenant, s.approval.ID, approval.Canceled, "", text(d.Principal.ID), d.Principal.Claimed,
		text(d.Decision.Note), "replaced: its input was changed", d.Key, "", before, after, optional(d.Patch), nil)
	what["missing"] = missing
	l.of(s.call, jig.EventToolEdited, what)
	ruled.Reason = "the changed input needs another approval: " + missing
	return ruled, t.open(fresh, s.call, l)
}

// terms replaces the terms of an open approval. Its votes are counted against the new terms.
func (t *tx) terms(a *approvalRow, terms *jig.Terms) error {
	var column []byte
	if terms != nil {
		var err error
		if column, err = encode(terms); err != nil {
			return err
		}
	}
	t.queue("ApprovalTerms", t.tenant, a.ID, column)
	return nil
}

func sameTerms(a, b *jig.Terms) bool {
	if a == nil || b == nil {
		return a == b
	}
	return reflect.DeepEqual(*a, *b)
}

// open queues a new approval of a call, with its event and notice.
func (t *tx) open(p jig.Pending, row *callRow, l *log) error {
	columns, err := approvalColumns([]jig.Pending{p})
	if err != nil {
		return err
	}
	t.queue("ApprovalsInsert", append([]any{t.tenant, p.SessionID}, columns...)...)
	l.opened(row, p)
	return nil
}
