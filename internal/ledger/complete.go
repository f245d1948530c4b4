package ledger

import (
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/stored"
)

// Completion finalizes an attempt.
type Completion struct {
	Tenant    string
	SessionID string
	CallID    string
	Fence     int
	// Digest is the digest of the call that ran.
	Digest string
	// Status is succeeded, failed or canceled; unknown when nobody can know whether the effect happened; or reserved to return the call to
	// the ledger for another attempt.
	Status jig.CallStatus
	// InDoubt reports, for a call returned as reserved, that its effect may have happened.
	InDoubt bool
	// Failed is the time of a failure that may pass, for a call returned as reserved; zero if it ended in another way.
	Failed time.Time
	Result jig.ToolResult
	// Reads says what the attempt has read, in addition to what the call's row says.
	Reads approval.Reads
	// Whole is the full result (JSON of a [jig.ToolResult]) when Result was shortened; it is stored as ResultArtifact.
	Whole []byte
}

// Completed is a call after a [Completion].
type Completed struct {
	jig.Call
	// Late reports that the call was unknown and this completion settled it. The workflow that waits for the call has not been notified yet.
	Late bool
}

// QuickCompletion records a first attempt at a read-only, idempotent call that has already run.
type QuickCompletion struct {
	CallID string
	// Version and Digest describe the call that ran; they must match the admitted call.
	Version, Digest string
	// Input is the input of the call that ran. The event of the attempt shows an excerpt of it.
	Input []byte
	// Status is succeeded or failed.
	Status            jig.CallStatus
	Result            jig.ToolResult
	Started, Finished time.Time
	// Reads says what the attempt has read, in addition to what the call's row says.
	Reads approval.Reads
}

// MayRetry reports whether jig may repeat a call that failed with err without asking a person. A writing call may be repeated if nothing
// happened (NotExecuted) or if the tool is idempotent; the repetition uses the same idempotency key and input. Other calls may always be
// repeated. Whether a repetition is useful is a separate question: see [jig.Code.Retryable].
func MayRetry(writes, idempotent bool, err *jig.Error) bool {
	return !writes || idempotent || err != nil && err.NotExecuted
}

// Validate returns INVALID_INPUT for a status in which no attempt can end.
func (c Completion) Validate() error {
	switch c.Status {
	case jig.CallSucceeded, jig.CallFailed, jig.CallCanceled, jig.CallUnknown, jig.CallReserved:
		return nil
	case jig.CallWaiting, jig.CallExecuting, jig.CallDenied, jig.CallExpired, jig.CallDuplicate:
	}
	return jig.Errorf(jig.CodeInvalidInput, "an attempt cannot end as %q", c.Status).WithField("status").
		WithHint("succeeded, failed, canceled, unknown, or reserved to give it back")
}

// Complete records the end of an attempt. A completion with an old fence changes nothing. A completion that arrives late, when the call is
// already unknown, still settles the call if it knows the outcome.
func Complete(s State, c Completion) Transition {
	switch {
	case s.Call.Fence == c.Fence && s.Call.Status == jig.CallExecuting:
		return s.complete(c)
	case s.settlesLate(c):
		return s.completeLate(c)
	}
	return Transition{}
}

// complete ends the latest attempt of the call, or returns the call to reserved.
func (s State) complete(c Completion) Transition {
	switch c.Status {
	case jig.CallUnknown:
		why := "the attempt ended without knowing whether it took effect"
		if c.Result.Error != nil {
			why += ": " + stored.Cut(c.Result.Error.Message, 500)
		}
		return s.unknown(why, c.Result.Error)
	case jig.CallReserved:
		return s.giveBack(c.InDoubt, c.Failed)
	case jig.CallSucceeded, jig.CallFailed, jig.CallCanceled, jig.CallWaiting, jig.CallExecuting, jig.CallDenied, jig.CallExpired, jig.CallDuplicate:
	}
	artifact := ""
	if len(c.Whole) > 0 {
		artifact = s.ArtifactID
	}
	kind, data := Ended(c, artifact)
	var t Transition
	t.Call = &approval.CallChange{
		Status: c.Status, Result: &c.Result, Whole: c.Whole, Wrote: s.Call.Write && c.Status == jig.CallSucceeded,
		Reads: c.Reads,
	}
	t.event(s.Call, kind, data)
	return t
}

// Ended returns the event of a finished attempt, without the duration. Its details are never empty.
func Ended(c Completion, artifact string) (jig.EventType, approval.Details) {
	kind := jig.EventToolCompleted
	switch c.Status {
	case jig.CallFailed:
		kind = jig.EventToolFailed
	case jig.CallCanceled:
		kind = jig.EventToolCancelled
	case jig.CallSucceeded, jig.CallWaiting, jig.CallReserved, jig.CallExecuting, jig.CallUnknown, jig.CallDenied,
		jig.CallExpired, jig.CallDuplicate:
	}
	d := approval.Details(stored.ResultDetails(c.Result))
	d["attempt"], d["result_artifact"] = c.Fence, artifact
	return kind, d
}

// WhyLate is why a question about an unknown outcome is withdrawn when the attempt reports after all.
const WhyLate = "the attempt reported late how it ended"

// settlesLate reports whether a completion settles a call that has become unknown in the meantime. The completion must come from the
// latest attempt and must know the outcome. If a person has said that nothing happened, a success still counts as long as the call has
// neither changed nor begun again, because it must not run a second time.
func (s State) settlesLate(c Completion) bool {
	if c.Fence != s.Call.Fence || c.Status == jig.CallUnknown || c.InDoubt {
		return false
	}
	return s.Call.Status == jig.CallUnknown ||
		s.Call.Status == jig.CallReserved && c.Status == jig.CallSucceeded && c.Digest == s.Call.Digest
}

// completeLate ends a call with the outcome that its attempt reported late, and withdraws the question that people were asked.
func (s State) completeLate(c Completion) Transition {
	outcome := jig.OutcomeNotHappened
	switch { //nolint:staticcheck // one case per line reads like a table
	case c.Status == jig.CallSucceeded:
		outcome = jig.OutcomeHappened
	case c.Status == jig.CallReserved: // nothing happened, and no attempt is left to try again
		c.Status = jig.CallFailed
	}
	t := Transition{Late: true}
	t.event(s.Call, jig.EventToolReconciled, approval.Details{"outcome": string(outcome), "reason": WhyLate, "attempt": s.Call.Fence})
	for _, asked := range s.Withdrawable {
		about := s.State
		about.Open = asked
		entry := about.Entry(audit.AuditWithdrawn, jig.Principal{}, nil)
		entry.Reason, entry.Status = WhyLate, c.Status
		t.Audit = append(t.Audit, entry)
		n := s.Notice(jig.NoticeDecided, asked.Pending, WhyLate)
		n.Status, n.Reason = c.Status, string(outcome)
		t.Notices = append(t.Notices, n)
	}
	ended := s.complete(c)
	t.Call = ended.Call
	t.add(ended.Transition)
	return t
}

// Cancel ends an open call that nobody needs any more. A call whose effect may have happened fails with OUTCOME_UNKNOWN, because nobody
// will be asked about it; composed reports that a composition answers the call, whose steps show what took effect.
func Cancel(s State, why string, composed bool) Transition {
	status, kind := jig.CallCanceled, jig.EventToolCancelled
	failure := jig.Errorf(jig.CodeCanceled, "the call was canceled: %s", why)
	failure.NotExecuted = s.hadNoEffect()
	if s.Doubtful() && (!composed || !s.Idempotent) {
		status, kind = jig.CallFailed, jig.EventToolOutcomeUnknown
		if s.Call.Status == jig.CallUnknown {
			kind = jig.EventToolFailed
		}
		failure = jig.Errorf(jig.CodeOutcomeUnknown, "the call had started, and it is not known whether it took effect: %s", why)
	}
	result := jig.Failure(failure)
	var t Transition
	t.Call = &approval.CallChange{Status: status, Result: &result}
	t.event(s.Call, kind, approval.Details{"summary": result.Summary, "error": failure})
	return t
}
