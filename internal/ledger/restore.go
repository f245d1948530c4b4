package ledger

import (
	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
)

// RestoredFence is added to the fence of a call that a person must be asked about after a restore from a backup. It is higher than the
// number of attempts that the call can have had since the backup, so that none of them can finish the call.
const RestoredFence = 1000

// WhyRestored is why a person is asked about a call that may have run since the backup.
const WhyRestored = "the database was restored from a backup, and the call may have run since the backup was made"

// MarkRestored marks an open call that may have run since the backup from which the database was restored; it changes nothing about other
// calls. A marked call of a tool that is not idempotent does not begin: the next attempt finds it unknown and asks a person. The same holds
// for a composition that writes and has not begun in the backup, because the backup knows none of its steps; unbegun reports such a call.
// Other idempotent calls that write may begin, but it stays uncertain whether they took effect before.
func MarkRestored(s State, unbegun bool) Transition {
	if !s.mayHaveRunSince() {
		return Transition{}
	}
	var t Transition
	t.Call = &approval.CallChange{Status: s.Call.Status, InDoubt: new(true)}
	if !s.Idempotent || unbegun {
		t.Raises = RestoredFence
	}
	t.event(s.Call, jig.EventToolInDoubt, approval.Details{"reason": WhyRestored, "status": string(s.Call.Status)})
	entry := s.Entry(audit.AuditInDoubt, jig.Principal{}, nil)
	entry.Reason, entry.Status = WhyRestored, s.Call.Status
	t.Audit = []audit.Entry{entry}
	return t
}

// mayHaveRunSince reports whether an open call must be marked after a restore: its tool writes or is not idempotent, and the call is not
// yet marked. An idempotent call whose outcome is unknown waits for a person anyway.
func (s State) mayHaveRunSince() bool {
	if s.Call.InDoubt {
		return false
	}
	return !s.Idempotent || s.Call.Write && s.Call.Status != jig.CallUnknown
}

// asksAfterRestore reports whether a person must say whether the call happened before it can begin, because [MarkRestored] marked it.
func (s State) asksAfterRestore() bool {
	return s.Call.InDoubt && s.Call.Fence >= RestoredFence
}
