package ledger

import (
	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
)

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
