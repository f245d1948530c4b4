package approval

import (
	"encoding/json"
	"fmt"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/stored"
)

// Reconcile applies what a person says about an unknown outcome: "happened" ends the call as succeeded with the given result,
// "not_happened" lets it run again under the approval that it had, and "give_up" ends it as failed. If the statement is not accepted, the
// transition is a refusal. An error means that the result cannot be encoded.
func Reconcile(s State, r ReconcileRequest) (Transition, error) {
	w := r.Reconciliation
	code, why := s.refusedAs(r.Unentitled, r.Now), reconcileObjection(s, r)
	if why == "" {
		code, why = jig.CodeNotPermitted, s.mayReconcile(r)
	}
	if why != "" {
		about := by(r.Principal, r.Evidence)
		about["answer"] = string(w.Outcome)
		return s.refuse(code, w.Call, why, about, audit.By(r.Principal, r.Evidence, w.Note)), nil
	}
	status := settled(w.Outcome)
	t := Transition{Ruled: s.accepted(status), Call: &CallChange{Status: status}}
	t.Outcome = &Outcome{
		Status: Approved, Answer: string(w.Outcome), By: r.Principal.ID, Claimed: r.Principal.Claimed, Note: w.Note, Key: r.Key,
		Digest: s.Open.Digest,
	}
	what := by(r.Principal, r.Evidence)
	what["outcome"], what["note"] = string(w.Outcome), w.Note
	t.Events = []Event{s.Call.Event(jig.EventToolReconciled, what)}
	entry := s.Entry(audit.AuditReconciled, r.Principal, r.Evidence)
	entry.Reason, entry.Note, entry.Status = string(w.Outcome), w.Note, status
	t.Audit = []audit.Entry{entry}
	n := s.Notice(jig.NoticeDecided, s.Open.Pending, r.Key)
	n.Status, n.By, n.Proof, n.Key, n.Reason = status, r.Principal.ID, r.Principal.Proof, r.Evidence.KeyID(), string(w.Outcome)
	t.Notices = []jig.Notice{n}
	if status == jig.CallReserved {
		t.Call.InDoubt, t.Call.Anew = new(false), true
		return t, nil
	}
	if len(w.Result) > 0 {
		t.Said = said(r.Principal, jig.AskedAnswer)
	}
	err := s.end(&t, w.Result)
	return t, err
}

// settled returns the status of a call after a person said what happened to it.
func settled(o jig.ReconcileOutcome) jig.CallStatus {
	switch o {
	case jig.OutcomeHappened:
		return jig.CallSucceeded
	case jig.OutcomeGiveUp:
		return jig.CallFailed
	case jig.OutcomeNotHappened:
	}
	return jig.CallReserved
}

// end ends the call in the status that the person's statement implies.
func (s State) end(t *Transition, data json.RawMessage) error {
	result, kind := jig.ToolResult{Success: true, Data: data, Summary: "confirmed: it happened"}, jig.EventToolCompleted
	if t.Call.Status == jig.CallFailed {
		result, kind = jig.Failure(jig.Errorf(jig.CodeOutcomeUnknown, "nobody knows whether the call took effect")), jig.EventToolFailed
	}
	what := stored.ResultDetails(result)
	if len(result.Data) > jig.InlineBytes {
		whole, err := stored.Encode(result)
		if err != nil {
			return err
		}
		t.Call.Whole = whole
		result.Data, _ = stored.Preview(result.Data)
		what["result_artifact"] = s.ArtifactID
	}
	t.Call.Result, t.Call.Wrote = &result, s.Call.Write && t.Call.Status == jig.CallSucceeded
	t.Events = append(t.Events, s.Call.Event(kind, what))
	return nil
}

// mayReconcile returns why a person may not say what happened to a call, or "". The tenant can name the people who may. If it does not,
// everybody who could approve the call may, which includes the owners if too few others are left: the question never expires.
func (s State) mayReconcile(r ReconcileRequest) string {
	if r.Reconcilers != nil {
		if r.Reconcilers.Include(r.Principal) {
			return ""
		}
		return fmt.Sprintf("%s may not say what happened to a call: that is for %s", r.Principal.ID, r.Reconcilers)
	}
	if s.Latest == nil {
		return ""
	}
	asked := r.Wider(r.Counted(s.Latest.Pending, r.Now), r.Now)
	if terms := termsOf(asked); terms.ByDefault { // whoever asked for a call may say what happened to it, unless a rule forbids it
		terms.NotRequester = false
		asked.Terms = &terms
	}
	return entitled(asked, r.Principal, r.Now)
}

// reconcileObjection returns why a statement cannot be accepted, regardless of who sent it, or "" when there is no such reason.
func reconcileObjection(s State, r ReconcileRequest) string {
	w := r.Reconciliation
	switch {
	case r.Refusal != "":
		return r.Refusal
	case s.Call == nil:
		return noCall(w.Call)
	case w.Outcome != jig.OutcomeHappened && w.Outcome != jig.OutcomeNotHappened && w.Outcome != jig.OutcomeGiveUp:
		return jig.Templatef("%q is not an outcome: happened, not_happened or give_up", w.Outcome)
	case s.Call.Status != jig.CallUnknown || s.Open == nil || s.Open.Kind != jig.PendingReconcile:
		return fmt.Sprintf("the call's outcome is not in doubt: its status is %s", s.Call.Status)
	case len(w.Result) > 0 && !json.Valid(w.Result):
		return "the result is not JSON"
	case s.TokenUsed:
		return RefusedToken
	case max(w.Attempt, 1) != max(s.Open.Attempt, 1):
		return fmt.Sprintf("your answer is about attempt %d, but attempt %d is in doubt: find out what attempt %[2]d did, then answer with \"attempt\": %[2]d",
			max(w.Attempt, 1), s.Open.Attempt)
	}
	return ""
}
