package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/stored"
)

// ReserveRequest asks the ledger to begin an attempt.
type ReserveRequest struct {
	Tenant    string
	SessionID string
	CallID    string
	// Version is the version of the tool that this worker would run.
	Version string
	// Meaning is the [jig.Tool.Meaning] of that version. A grant used in place of an approval must have been given for the same meaning.
	Meaning string
	// Digest is the digest of the call that the worker is about to run, computed by the worker. It must equal the digest in the ledger and the
	// approved one.
	Digest string
	// Input is the input of that call. The event of the attempt shows an excerpt of it.
	Input []byte
	// MaxAttempts bounds the attempts of the call; 0 bounds those that never reported how they ended, by [jig.DefaultMaxAttempts].
	MaxAttempts int
	// RetryFor is how long after the first failure that may pass an attempt may begin; 0 does not limit it. Now is the time.
	RetryFor time.Duration
	Now      time.Time
	// Outage is why the attempt cannot begin now, although nothing is known to have changed; nil if it can.
	Outage *jig.Error
	// Attempt identifies the attempt, so that a worker that did not receive the answer can ask again and get the same fence; empty if it never
	// asks twice.
	Attempt string
	// Asked reports that the call was admitted with the verdict ask, so that it needs an approval. It only saves the store an attempt to begin
	// the call without one.
	Asked bool
	// Proof is the proof that decisions need. An approval with a weaker one is withdrawn, and a new one is requested.
	Proof jig.Proof
	// Withdraw is why the approval does not count any more, such as [approval.WithdrawnUnsigned]; empty if it does. It is withdrawn, even if an earlier
	// attempt has used it.
	Withdraw string
	// Child is the session that answers the call; empty for a call that runs as an activity or a composition.
	Child string
}

// ReserveOutcome is the ledger's answer to a [ReserveRequest].
type ReserveOutcome string

// The answers to a ReserveRequest.
const (
	// ReserveRun: the attempt may begin under the returned fence.
	ReserveRun ReserveOutcome = "run"
	// ReserveFinal: the call already has its result.
	ReserveFinal ReserveOutcome = "final"
	// ReserveUnknown: an earlier attempt began and nobody knows how it ended; a person must decide.
	ReserveUnknown ReserveOutcome = "unknown"
	// ReserveWaiting: there is no valid approval; the call waits for one.
	ReserveWaiting ReserveOutcome = "waiting"
	// ReserveHeld: the attempt cannot begin now, and may begin later.
	ReserveHeld ReserveOutcome = "held"
)

// Reservation is the ledger's answer to a [ReserveRequest], with details.
type Reservation struct {
	Outcome ReserveOutcome
	Call    jig.Call
	// Fence must be passed back with the [Completion].
	Fence int
	// InDoubt reports that an earlier attempt of a writing call began and may have taken effect.
	InDoubt bool
}

// Reserve begins an attempt of a call, or reports why it cannot begin. What happens depends on the call's status:
//
//	reserved   the attempt begins: the fence is raised, and a required approval is consumed in the same transaction
//	executing  an earlier attempt began and did not report. If the tool is not idempotent, the call becomes unknown. Otherwise a
//	           new attempt begins while attempts are left; after the last one the call becomes unknown if it writes, else it fails
//	waiting, unknown, final  no attempt begins
//
// No attempt begins later than RetryFor after the first failure that may pass. The call then becomes unknown if an earlier attempt may have taken
// effect, else it fails.
//
// A call that [MarkRestored] marked, so that a person is asked first, becomes unknown instead of beginning.
//
// What runs must be exactly what was admitted. If the version or digest differs, or a required approval does not cover it, the answer is
// [ReserveWaiting] and the caller admits the call again; an idempotent call that was executing goes back to reserved first. The same
// attempt may ask again and gets the same answer.
func Reserve(s State, r ReserveRequest) Transition {
	switch status := s.Call.Status; {
	case status.Final():
		return Transition{Answer: ReserveFinal}
	case status == jig.CallUnknown:
		return Transition{Answer: ReserveUnknown}
	case status == jig.CallWaiting:
		return Transition{Answer: ReserveWaiting}
	case s.asksAfterRestore():
		return s.unknown(WhyRestored, nil)
	case status == jig.CallReserved && r.Outage != nil:
		return s.postpone(r)
	case status == jig.CallExecuting && r.Attempt != "" && r.Attempt == s.Attempt:
		return Transition{Answer: ReserveRun} // the same attempt asks again: the first answer was lost
	case status == jig.CallExecuting && !s.Idempotent:
		return s.unknown("an attempt began and never reported how it ended", nil)
	case s.Version != r.Version, s.Call.Digest != r.Digest, s.Verdict == jig.VerdictAsk && !s.Latest.Covers(s.Call.Digest):
		if status == jig.CallExecuting {
			return s.giveBack(s.Call.Write, time.Time{})
		}
		return Transition{Answer: ReserveWaiting}
	case status == jig.CallExecuting && s.spent(r.MaxAttempts):
		return s.noMore(s.lastNeverReported())
	case s.overdue(r):
		return s.noMore(fmt.Sprintf("no attempt may begin later than %s after the first failure, which was at %s", r.RetryFor, s.FailedAt.UTC().Format(time.RFC3339)))
	}
	return s.begin(r)
}

// spent reports whether the call has used up its attempts. Without a limit, those count that never reported how they ended: failures that may pass are
// limited by time.
func (s State) spent(limit int) bool {
	unreported := s.Call.Fence - s.Failures
	if s.Tried {
		unreported++
	}
	return limit > 0 && s.Call.Fence >= limit || unreported >= max(limit, jig.DefaultMaxAttempts)
}

// overdue reports whether it is too late for another attempt.
func (s State) overdue(r ReserveRequest) bool {
	return !s.FailedAt.IsZero() && r.RetryFor > 0 && r.Now.After(s.FailedAt.Add(r.RetryFor))
}

// postpone lets a call that has not begun wait until an outage is over.
func (s State) postpone(r ReserveRequest) Transition {
	if s.overdue(r) {
		return s.noMore(fmt.Sprintf("gave up %s after the first failure: %s", r.RetryFor, r.Outage.Message))
	}
	t := Transition{Answer: ReserveHeld}
	if s.FailedAt.IsZero() {
		t = s.giveBack(false, r.Now)
		t.Answer = ReserveHeld
	}
	return t
}

// begin begins an attempt, which uses up an approval that no attempt has used yet. An approval that lacks the proof that is required now
// is withdrawn instead, and the call must be admitted again.
func (s State) begin(r ReserveRequest) Transition {
	a := &Attempt{ID: r.Attempt, Child: r.Child, InDoubt: s.Call.InDoubt || s.Call.Status == jig.CallExecuting && s.Call.Write}
	fresh := s.Latest != nil && s.Latest.Status == approval.Approved
	switch {
	case fresh && !s.Latest.Proved(r.Proof):
		return s.withdraw(approval.WithdrawnUnproved, "")
	case s.Latest != nil && r.Withdraw != "":
		return s.withdraw(r.Withdraw, "")
	case fresh:
		a.Consumes, a.Grant = true, s.Latest.Grant
	}
	t := Transition{Answer: ReserveRun, Begins: a}
	t.event(s.Call, jig.EventToolStarted, Started(r.Input, s.Call.Fence+1, r.Child))
	return t
}

// Started returns the details of the event of an attempt that begins. They are never empty. child is the session that answers the call;
// empty if none does.
func Started(input []byte, attempt int, child string) approval.Details {
	d := approval.Details(stored.InputDetails(input))
	d["title"], d["attempt"], d["child_session_id"] = Title(input), attempt, child
	return d
}

// Title returns the beginning of an input for people to read.
func Title(input []byte) string { return jig.Cut(stored.Clean(jsontext.InWords(input)), 60) }

// UseGrant completes the transition of an attempt that needs a grant. used is the grant after its use was counted; nil if it has ended,
// because it was used up, expired or revoked, or given for another contract. Then the approval is withdrawn, and the call must be admitted
// again.
func UseGrant(s State, t Transition, used *jig.Grant) Transition {
	if used == nil {
		return s.withdraw(approval.WithdrawnGrant, s.Latest.Grant)
	}
	var granted Transition
	granted.event(s.Call, jig.EventGrantUsed, approval.Details{"grant": used.ID, "by": used.By, "used": used.Used, "max_uses": used.MaxUses})
	t.Events = slices.Concat(granted.Events, t.Events)
	about := s.State
	about.Open = s.Latest
	entry := about.Entry(audit.AuditGrantUsed, jig.Principal{ID: strings.Join(used.By, ", "), Claimed: used.Claimed, Proof: used.Proof}, nil)
	entry.Subject, entry.ApprovedDigest, entry.Status = used.ID, s.Call.Digest, jig.CallExecuting
	t.Audit = append(t.Audit, entry)
	return t
}

// lastNeverReported says that the attempts of the call are used up.
func (s State) lastNeverReported() string {
	return fmt.Sprintf("the last of %d attempts never reported how it ended", max(s.Call.Fence, 1))
}

// noMore ends a call that no attempt can carry out any more. It becomes unknown if an attempt may have changed something; otherwise it fails, and an
// approval that no attempt has used is withdrawn.
func (s State) noMore(why string) Transition {
	if s.Call.InDoubt || s.Call.Status == jig.CallExecuting && s.Call.Write {
		return s.unknown(why, nil)
	}
	failure := jig.Errorf(jig.CodeUnavailable, "%s", why)
	failure.NotExecuted = s.hadNoEffect()
	result := jig.Failure(failure)
	t := Transition{Answer: ReserveFinal}
	if s.Latest != nil && s.Latest.Status == approval.Approved {
		t = s.withdraw(why, "")
		t.Answer = ReserveFinal
	}
	t.Call = &approval.CallChange{Status: jig.CallFailed, Result: &result}
	t.event(s.Call, jig.EventToolFailed, approval.Details{"summary": result.Summary, "error": failure, "attempt": s.Call.Fence})
	return t
}

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
