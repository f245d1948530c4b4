package ledger

import "github.com/jig-run/jig"

// Earlier is a call of an earlier pass that equals one which the model asks for now.
type Earlier struct {
	// Call has the fields that say how the call ended, but neither its input nor its result.
	Call    jig.Call
	Error   *jig.Error
	InDoubt bool
	// Message is the pass that was running when somebody sent the latest message since the call ended; 0 for none. Answered reports that
	// somebody has answered a question since. The model has read both. Messages of other sessions do not count.
	Message  int
	Answered bool
}

// Counts reports whether the call makes an equal one a duplicate: it took effect, may have taken effect, or is still open. A call without
// effect counts until a person has spoken. A read counts until then too, unless it failed for a reason that passes.
//
// composed reports that other calls make up the call, in a composition or in another session. Its own row does not say whether these had
// effects; the caller must find out before it repeats the call.
func (e Earlier) Counts(read, composed bool) bool {
	c, spoken := e.Call, e.Message > 0 || e.Answered
	switch {
	case !c.Status.Final():
		return true
	case read && e.Error != nil && passes(e.Error.Code):
		return false
	case !spoken || e.InDoubt:
		return true
	case read || c.Fence == 0: // without an attempt, nothing has happened
		return false
	case c.Status == jig.CallSucceeded:
		return true
	case c.Status == jig.CallFailed && !composed:
		return e.Error == nil || !e.Error.NoEffect()
	}
	return false
}

// passes reports whether a read that failed with the code may succeed if it is repeated unchanged.
func passes(code jig.Code) bool {
	return code == jig.CodeTimeout || code == jig.CodeRateLimited || code == jig.CodeUnavailable || code == jig.CodeNotFound
}
