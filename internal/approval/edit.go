package approval

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/stored"
)

// edit applies changed input. The edit also counts as the editor's approval of the new input, if the terms for that input let the editor
// decide. If these terms need more approvals, a new approval opens. Where the requester may not approve, the editor may not be the only one.
func (d decision) edit() Transition {
	fresh, missing := d.fresh()
	if missing != "" && d.Grant != nil {
		why := "a grant cannot come with a change that needs another approval: " + missing
		return d.refuse(jig.CodeConflict, d.Call.ID, why, d.details(), audit.By(d.Principal, d.Evidence, d.Decision.Note))
	}
	status := jig.CallReserved
	if missing != "" {
		counted := fresh
		counted.Delegations = d.Counted(fresh, d.Now).Delegations // under other terms than before, some may not count
		var none *jig.Error
		if fresh, none = d.Independent(counted, d.Now); none != nil {
			why := "nobody else could approve the changed input: " + none.Message
			return d.refuse(jig.CodeConflict, d.Call.ID, why, d.details(), audit.By(d.Principal, d.Evidence, d.Decision.Note))
		}
		status = jig.CallWaiting
	}
	edited := *d.Edited
	edited.EditedBy, edited.Status = d.editor(), status
	t := Transition{Ruled: d.accepted(status), Call: &CallChange{Status: status, Edited: &edited}, Said: said(d.Principal, jig.AskedReview)}
	entry := d.entry(audit.AuditEdited, status)
	entry.Patch, entry.ApprovedDigest, entry.PolicyVersion = d.Patch, edited.Digest, edited.PolicyVersion
	if changes := jig.Changes(edited.Reasons); len(changes) > len(jig.Changes(d.asked.Reasons)) {
		entry.Reason = changes[len(changes)-1]
	}
	t.Audit = append(t.Audit, entry)
	what := d.editDetails()
	if missing == "" {
		t.Outcome = d.edited(Approved, jig.AnswerApprove)
		t.Outcome.Digest, t.Outcome.Votes = edited.Digest, fresh.Votes
		t.Outcome.NewTerms, t.Outcome.Terms = true, fresh.Terms
		t.Events = append(t.Events, d.Call.Event(jig.EventToolApproved, what))
		d.decided(&t)
		d.give(&t)
		return t
	}
	t.Outcome = d.edited(Canceled, "")
	t.Outcome.Reason = "replaced: its input was changed"
	what["missing"] = missing
	t.Events = append(t.Events, d.Call.Event(jig.EventToolEdited, what))
	t.Ruled.Reason = "the changed input needs another approval: " + missing
	t.ask(Opened(*d.Call, fresh))
	return t
}

// fresh returns the approval of the changed input, with the editor's vote if the editor may decide, and describes the approvals that are
// still missing.
func (d decision) fresh() (fresh jig.Pending, missing string) {
	fresh = *d.Fresh
	fresh.Tenant, fresh.SessionID, fresh.Call, fresh.RequestedBy, fresh.Votes = d.State.Tenant, d.State.SessionID, d.Call.ID, d.asked.RequestedBy, nil
	fresh.Askers, fresh.Edits = d.asked.Askers, slices.Clone(d.asked.Edits)
	if !bytes.Equal(d.Edited.Input, d.Call.Input) {
		fresh.Askers = WithEditor(fresh.Askers, d.Principal)
		fresh.Edits = append(fresh.Edits, jig.Edit{By: d.Principal.ID, Claimed: d.Principal.Claimed, At: d.Now, Note: d.Decision.Note, Patch: d.Patch})
	}
	fresh.Edits = ShortEdits(fresh.Edits)
	if sameTerms(fresh.Terms, d.asked.Terms) { // the same approval for different input
		fresh.RequestedAt, fresh.ExpiresAt, fresh.Delegations = d.asked.RequestedAt, d.asked.ExpiresAt, d.asked.Delegations
	}
	if counts, why := ConsentOf(fresh).Entitled(d.Principal, d.Now); why == "" && d.Principal.Proof.AtLeast(termsOf(fresh).Proof) {
		d.counts = counts
		fresh.Votes = []jig.Vote{d.ballot()}
	}
	if ConsentOf(fresh).Granted() && d.unseen(fresh) {
		fresh.Votes = nil
	}
	return fresh, ConsentOf(fresh).Missing()
}

// ShortEdits leaves out patches that have more than [jig.ExcerptBytes].
func ShortEdits(list []jig.Edit) []jig.Edit {
	for i := range list {
		if len(list[i].Patch) > jig.ExcerptBytes {
			list[i].Patch, list[i].Truncated = nil, true
		}
	}
	return list
}

// unseen reports whether nobody has seen what the changed call would change: the editor has not, and nobody else is asked. Then the editor is
// asked again, unless they approve further calls with it, whose previews nobody sees either.
func (d decision) unseen(fresh jig.Pending) bool {
	return fresh.Preview != nil && fresh.Preview.Missing == "" && d.Grant == nil
}

// editor returns the person from whom the input comes; empty if it is the requested one.
func (d decision) editor() string {
	if bytes.Equal(d.Edited.Input, d.Call.Input) {
		return d.Call.EditedBy
	}
	return d.Principal.ID
}

func sameTerms(a, b *jig.Terms) bool {
	if a == nil || b == nil {
		return a == b
	}
	return reflect.DeepEqual(Ruled(*a), Ruled(*b))
}

// edited returns how the change of the input ends the open approval.
func (d decision) edited(status Status, answer jig.Answer) *Outcome {
	o := d.outcome(status, answer)
	o.Before, o.After, o.Patch = nonNil(d.Call.Input), nonNil(d.Edited.Input), d.Patch
	return o
}

// editDetails returns the data of the event that records the edit.
func (d decision) editDetails() Details {
	before, _ := stored.PreviewInput(d.Call.Input)
	after, _ := stored.PreviewInput(d.Edited.Input)
	what := d.details()
	what["digest"] = d.Call.Digest
	what["edited"] = Details{"before": before, "after": after, "digest": d.Edited.Digest, "patch": d.Patch}
	return what
}

// nonNil returns b, or an empty slice if b is nil.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
