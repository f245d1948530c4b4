package ledger

import (
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
)

// State is everything that the rules need to know about a call. The store reads it under lock.
//
// Call is never nil. Latest is the latest approval of the call; Open is the approval or question that a person is asked now, or else the latest approval.
// An approval whose row cannot be read covers nothing and proves nothing.
type State struct {
	approval.State
	// Version is the version of the tool with which the call was admitted, and Verdict what policy said about it.
	Version string
	Verdict jig.Verdict
	// Idempotent is copied from the tool.
	Idempotent bool
	// FailedAt is the time of the first failure that may pass; zero if there was none. Failures counts the attempts that ended with one.
	FailedAt time.Time
	Failures int
	// Tried reports that an attempt began before the ledger knew of it, and never reported.
	Tried bool
	// Attempt identifies the latest attempt, if it may ask twice; see [ReserveRequest].
	Attempt string
	// Withdrawable are the approvals and questions that can still be withdrawn. Only [Complete] needs them.
	Withdrawable []*approval.Record
	// Now dates the questions to people that open.
	Now time.Time
}

// Transition lists the changes of the ledger. The store saves all of it in one transaction. The embedded transition holds the new status and
// result of the call, the approval that ends, the question that opens, and the events, notices and audit rows.
type Transition struct {
	approval.Transition
	// Answer answers a [ReserveRequest].
	Answer ReserveOutcome
	// Begins is the attempt that begins; nil for none.
	Begins *Attempt
	// Readmits is the new admission of the call; nil while it keeps its old one.
	Readmits *jig.Call
	// Late reports that an attempt settled an unknown outcome. What people were asked is withdrawn because of WhyLate, and the workflow of
	// the call must be told.
	Late bool
	// Raises is added to the fence of the call, so that no earlier attempt can finish it.
	Raises int
}

// Attempt is an attempt that begins under the next fence.
type Attempt struct {
	// ID identifies the attempt, and Child is the session that answers the call; both may be empty.
	ID, Child string
	// Consumes reports that the attempt uses up the approval of the call.
	Consumes bool
	// Grant is the standing approval of which the attempt counts a use; empty for none. See [UseGrant].
	Grant string
	// InDoubt reports that an earlier attempt may have taken effect.
	InDoubt bool
}

// Changes reports whether there is anything to save.
func (t Transition) Changes() bool {
	return t.Begins != nil || t.Readmits != nil || t.Call != nil || t.Outcome != nil
}

// add appends what another transition changes about approvals, with its events, notices and audit rows.
func (t *Transition) add(u approval.Transition) {
	if u.Outcome != nil {
		t.Outcome = u.Outcome
	}
	if u.Opens != nil {
		t.Opens = u.Opens
	}
	t.Events = append(t.Events, u.Events...)
	t.Notices = append(t.Notices, u.Notices...)
	t.Audit = append(t.Audit, u.Audit...)
}

// ask opens an approval or a question.
func (t *Transition) ask(o approval.Opening) {
	t.Opens = &o.Pending
	t.Events = append(t.Events, o.Events...)
	t.Notices = append(t.Notices, o.Notices...)
}

// event adds an event of the call.
func (t *Transition) event(c *approval.Call, kind jig.EventType, data approval.Details) {
	t.Events = append(t.Events, c.Event(kind, data))
}

// withdraw ends the approval of the call, which is admitted again.
func (s State) withdraw(why, grant string) Transition {
	t := Transition{Answer: ReserveWaiting}
	t.add(approval.Withdraw(s.State, why, grant))
	return t
}

// unknown makes the outcome of the call unknown and asks a person about it. failure is the error of the attempt; nil if there is none.
func (s State) unknown(why string, failure *jig.Error) Transition {
	t := Transition{Answer: ReserveUnknown}
	t.Call = &approval.CallChange{Status: jig.CallUnknown}
	t.ask(approval.InDoubt(s.Tenant, s.SessionID, *s.Call, why, failure, s.Now))
	return t
}

// giveBack lets the call begin again. doubt reports that the effect of this attempt may have happened. failed is the time of a failure that may
// pass; zero for none.
func (s State) giveBack(doubt bool, failed time.Time) Transition {
	t := Transition{Answer: ReserveWaiting}
	t.Call = &approval.CallChange{Status: jig.CallReserved, InDoubt: new(s.Call.InDoubt || doubt), Failed: failed}
	return t
}

// Doubtful reports whether an open call may have taken effect: an attempt began, and its outcome is not known. An idempotent tool that
// changes nothing is never doubtful.
func (s State) Doubtful() bool {
	began := s.Call.Status == jig.CallExecuting || s.Call.Status == jig.CallUnknown
	return s.Call.InDoubt || began && (s.Call.Write || !s.Idempotent)
}

// hadNoEffect reports whether it is certain that no attempt of an open call took effect, because the attempts or a person said so. It
// returns false for an idempotent call that changes nothing, because such a call goes back to reserved without anybody saying so.
func (s State) hadNoEffect() bool {
	waits := s.Call.Status == jig.CallWaiting || s.Call.Status == jig.CallReserved
	return waits && !s.Call.InDoubt && (s.Call.Write || !s.Idempotent)
}
