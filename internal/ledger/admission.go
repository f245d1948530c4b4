package ledger

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/stored"
)

// Admission is the request with which a pass submits its calls to the ledger: all of them with their verdicts, in one transaction.
type Admission struct {
	Tenant    string
	SessionID string
	Pass      int
	// Calls are in the order requested. A call whose verdict is run is reserved; one whose verdict is ask waits; one whose verdict is deny or
	// refuse has its result already.
	Calls []jig.Call
	// Approvals are the approvals to open, one for each call whose verdict is ask.
	Approvals []jig.Pending
}

// VersionUnreadable is the policy version of calls that are held back because a policy cannot be read.
const VersionUnreadable = "unreadable"

// Admit returns how a call enters the ledger: its status, the result of one that is final already, and the events of what opens. The
// verdict decides the status, unless the call has one. asked is the approval to open; nil for none.
func Admit(c jig.Call, asked *jig.Pending) Transition {
	return admit(&approval.Call{ID: c.ID, ProviderID: c.ProviderID, Tool: c.Tool, Pass: c.Pass}, c, asked)
}

func admit(row *approval.Call, c jig.Call, asked *jig.Pending) Transition {
	status := c.Status
	if status == "" {
		status = statusOf(c.Verdict)
	}
	t := Transition{}
	t.Call = &approval.CallChange{Status: status}
	if status.Final() {
		t.Call.Result = resultOf(c, status)
	}
	if asked != nil && (status == jig.CallWaiting || asked.Grant != "") {
		t.ask(approval.Opened(*row, *asked))
	} else if kind, ok := refusal(status); ok {
		t.event(row, kind, refusalDetails(c, t.Call.Result))
	} else if status == jig.CallSucceeded { // answered without running the tool
		t.event(row, jig.EventToolCompleted, stored.ResultDetails(*t.Call.Result))
	}
	return t
}

// statusOf returns the status with which a call enters the ledger because of what policy says.
func statusOf(v jig.Verdict) jig.CallStatus {
	switch v {
	case jig.VerdictRun:
		return jig.CallReserved
	case jig.VerdictAsk:
		return jig.CallWaiting
	case jig.VerdictDeny:
		return jig.CallDenied
	case jig.VerdictRefuse:
		return jig.CallFailed
	}
	return ""
}

// resultOf returns the result of a call that is final when it enters the ledger.
func resultOf(c jig.Call, status jig.CallStatus) *jig.ToolResult {
	if c.Result != nil {
		return c.Result
	}
	code := jig.CodeInternal
	message := "the call was refused"
	switch status {
	case jig.CallDuplicate:
		code, message = jig.CodeDuplicate, "the same call was made before: "+c.DuplicateOf
	case jig.CallDenied:
		code, message = jig.CodeDenied, "the call was denied"
	case jig.CallWaiting, jig.CallReserved, jig.CallExecuting, jig.CallUnknown, jig.CallSucceeded, jig.CallFailed,
		jig.CallExpired, jig.CallCanceled:
	}
	return new(jig.Failure(jig.Errorf(code, "%s", message)))
}

// refusal returns the event type for a call that ends without running.
func refusal(s jig.CallStatus) (jig.EventType, bool) {
	switch s {
	case jig.CallFailed:
		return jig.EventToolFailed, true
	case jig.CallDenied:
		return jig.EventToolDenied, true
	case jig.CallDuplicate:
		return jig.EventToolSkipped, true
	case jig.CallExpired:
		return jig.EventToolExpired, true
	case jig.CallCanceled:
		return jig.EventToolCancelled, true
	case jig.CallWaiting, jig.CallReserved, jig.CallExecuting, jig.CallUnknown, jig.CallSucceeded:
	}
	return "", false
}

func refusalDetails(c jig.Call, result *jig.ToolResult) approval.Details {
	d := approval.Details{"summary": result.Summary, "duplicate_of": c.DuplicateOf, "verdict": string(c.Verdict)}
	if result.Error != nil {
		d["error"] = result.Error
	}
	if len(c.Reasons) > 0 {
		d["reasons"] = c.Reasons
	}
	return d
}

// Readmit replaces the admission of a waiting or reserved call (version, input, digest, verdict), because the tool has changed since or
// because the row does not match what was admitted. An open or unused approval expires, and a new one opens. If the new admission has a
// final status, the call takes that status and its result. A call whose earlier attempt may have taken effect becomes unknown when it may
// no longer run, or when its tool is no longer idempotent. Repeating the same admission changes nothing. Nor does an admission that was
// computed from the call before it changed, for example because a person changed its input; was is the call from which c was computed.
//
// An error is INVALID_INPUT: the call asks, and no approval is given.
func Readmit(s State, was, c jig.Call, asked *jig.Pending) (Transition, error) {
	open := s.Call.Status == jig.CallWaiting || s.Call.Status == jig.CallReserved
	unapproved := s.Call.Status == jig.CallReserved && s.Verdict == jig.VerdictAsk && !s.Latest.Covers(s.Call.Digest)
	if !open || s.changedSince(was) || s.admittedAs(c) && !unapproved {
		return Transition{}, nil
	}
	if !c.Status.Final() {
		c.Status = "" // the verdict decides the status
	}
	if c.Verdict == jig.VerdictAsk && asked == nil {
		return Transition{}, jig.Errorf(jig.CodeInvalidInput, "a call with the verdict ask needs an approval").WithField("approval")
	}
	if asked != nil {
		asked = s.asking(*asked)
		if asked.Grant != "" {
			c.Status = jig.CallReserved
		}
	}
	var t Transition
	if s.Open != nil && (s.Open.Status == approval.Open || s.Open.Status == approval.Approved) {
		t = s.withdraw(s.outdated(c), "")
	}
	admitted := admit(s.Call, c, asked)
	if s.Call.InDoubt && (admitted.Call.Status.Final() || !c.Idempotent) {
		unknown := s.unknown(s.Call.Tool+" changed after an attempt that never reported how it ended, and the call cannot be repeated safely", nil)
		t.Call = unknown.Call
		t.add(unknown.Transition)
		return t, nil
	}
	c.Status, c.Result = admitted.Call.Status, admitted.Call.Result
	t.Readmits = &c
	t.add(admitted.Transition)
	return t, nil
}

// outdated says why the approval of the call is withdrawn when the call is admitted again.
func (s State) outdated(c jig.Call) string {
	if c.Status == jig.CallFailed && c.Result != nil && c.Version == s.Version && c.Digest == s.Call.Digest {
		return c.Result.Summary // nothing has changed, but the call cannot run
	}
	if s.Version == c.Version && s.Call.PolicyVersion == c.PolicyVersion && c.Preview != nil {
		return fmt.Sprintf("what %s would change is not what was shown any more", s.Call.Tool)
	}
	return fmt.Sprintf("%s changed since the call was admitted", s.Call.Tool)
}

// admittedAs reports whether the call was admitted in the same way before.
func (s State) admittedAs(c jig.Call) bool {
	return s.Version == c.Version && s.Call.Digest == c.Digest && s.Verdict == c.Verdict && s.Call.PolicyVersion == c.PolicyVersion &&
		bytes.Equal(s.Call.Input, c.Input)
}

// changedSince reports whether the call was edited or admitted again after it was read as was.
func (s State) changedSince(was jig.Call) bool {
	return s.Version != was.Version || s.Call.Digest != was.Digest || !bytes.Equal(s.Call.Input, was.Input)
}

// asking returns the approval to open for the call when it is admitted again.
func (s State) asking(p jig.Pending) *jig.Pending {
	p.Tenant, p.SessionID, p.Call = s.Tenant, s.SessionID, s.Call.ID
	if s.Latest != nil {
		p.Edits = approval.ShortEdits(slices.Clone(s.Latest.Edits))
	}
	if s.Call.InDoubt {
		p = approval.OfDoubtful(p)
	}
	return &p
}

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
