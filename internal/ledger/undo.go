package ledger

import "github.com/jig-run/jig"

// CallName names a call of any session of a tenant.
type CallName struct {
	SessionID string `json:"session_id"`
	Call      string `json:"call"`
}

// String returns the id under which the call is known outside its session.
func (n CallName) String() string { return jig.QualifiedCallID(n.SessionID, n.Call) }

// Written is a call that may have changed something, by itself or through the calls that it consists of.
type Written struct {
	Call jig.Call
	// Undone reports that the composition which made the call has undone it. Before is the call of another session that has; nil if none has.
	Undone bool
	Before *CallName
}

// MayUndoAgain reports whether another call may undo what a call was to undo: it has ended, and certainly changed nothing.
func MayUndoAgain(undo jig.Call) bool {
	switch undo.Status {
	case jig.CallDenied, jig.CallExpired, jig.CallCanceled:
		return true
	case jig.CallFailed:
		return undo.Result == nil || jig.CodeOf(undo.Result.Error) != jig.CodeOutcomeUnknown
	case jig.CallWaiting, jig.CallReserved, jig.CallExecuting, jig.CallUnknown, jig.CallSucceeded, jig.CallDuplicate:
	}
	return false
}
