package activities

import (
	"context"
	"log/slog"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// RunInput identifies the call to run.
type RunInput struct {
	protocol.SessionRef
	Call string `json:"call"`
	// Stuck is the value of [Ran.Stuck] that the previous attempt returned.
	Stuck bool `json:"stuck,omitempty"`
}

// Ran is the state of a call after an attempt.
type Ran struct {
	State   jig.CallStatus `json:"state"`
	Summary string         `json:"summary,omitempty"`
	// Ask is set when the call waits for a person again: the tool changed since admission, or the outcome is unknown.
	Ask *jig.Pending `json:"ask,omitempty"`
	// Paused reports that the call is held back and must be tried again later. Held says why, unless the reason is a pause.
	Paused bool   `json:"paused,omitempty"`
	Held   string `json:"held,omitempty"`
	// Stuck reports that the call is held back until a person acts.
	Stuck bool `json:"stuck,omitempty"`
	// again is how long a call that is held back waits before it is tried again; 0 for the time that pauses take.
	again time.Duration
	// Ending is set if an approval inside the call's composition expired and its terms end the session.
	Ending jig.ExpiryOutcome `json:"ending,omitempty"`
}

// maxAdmissions limits how often one attempt admits its call again. Normally it happens at most once, when the tool has changed.
const maxAdmissions = 5

// RunTool runs one call: reserve, execute, finalize. It is registered under the name of each Go tool and also runs thin tools. An attempt
// that finds the call finished returns the stored result. An attempt that finds the call already started runs it again only if the tool
// is idempotent; otherwise a person decides. See the documentation of the ledger. Temporal retries an attempt that is held back; RunTool returns
// only when that begins or ceases to need a person, so that the workflow can show it.
func (a *Activities) RunTool(ctx context.Context, in RunInput) (Ran, error) {
	stop := heartbeat(ctx)
	defer stop()
	if in.Stuck {
		stuck, err := a.Store.HeldBack(ctx, in.Tenant, in.SessionID, in.Call)
		if err != nil || !stuck {
			return Ran{State: jig.CallReserved, Paused: true}, temporalError(err)
		}
	}
	ran, err := a.tryTool(ctx, in)
	if err != nil {
		return Ran{}, temporalError(err)
	}
	if ran.Paused && (in.Stuck || !ran.Stuck) {
		return Ran{}, pausedError("call "+in.Call, ran.Held, ran.retryDelay())
	}
	return ran, nil
}

// tryTool does the work of RunTool and returns jig's own errors. If the call is held back, the returned Ran says so.
func (a *Activities) tryTool(ctx context.Context, in RunInput) (Ran, error) {
	name := jig.NewAttemptID()
	for range maxAdmissions {
		ran, again, err := a.attempt(ctx, in, name)
		if err != nil || !again {
			return ran, err
		}
	}
	return Ran{}, jig.Errorf(jig.CodeUnavailable, "call %s was admitted again %d times and still does not match what would run", in.Call, maxAdmissions)
}

// attempt reserves and runs the call once. again reports that the call was admitted again and may run immediately.
func (a *Activities) attempt(ctx context.Context, in RunInput, name string) (ran Ran, again bool, err error) {
	session, call, err := a.callOf(ctx, in.SessionRef, in.Call)
	if err != nil {
		return Ran{}, false, err
	}
	if call.Status.Final() {
		return result(call), false, nil
	}
	found, err := a.runnable(ctx, call)
	if err != nil {
		return Ran{}, false, err
	}
	unreserved, err := a.runsUnreserved(ctx, session, found, call)
	if err != nil {
		return Ran{}, false, err
	}
	if unreserved {
		return a.read(ctx, session, found, call, name)
	}
	reservation, ended, err := a.claim(ctx, session, call, found.tool, name)
	if err != nil {
		return Ran{}, false, err
	}
	if ended != nil {
		return ended.ran, ended.again, nil
	}
	// Run exactly the input that was digested, even if the row has changed since.
	reservation.Call.Input = call.Input
	progress, flush := a.progress(ctx, call)
	taint := &entity.Taint{Session: session.ReadUntrusted}
	if found.body != nil {
		if trusted, err := a.Store.DocumentTrusted(ctx, call.Tenant, DocumentSpec, call.Tool, call.Version); err != nil {
			return Ran{}, false, err
		} else if !trusted {
			taint.Session = true
			entity.MarkRead(entity.WithTaint(ctx, taint))
		}
	}
	outcome := a.Budgets.Charge(ctx, reservation.Call, func() jig.ToolResult {
		return a.traced(entity.WithTaint(ctx, taint), found, call, a.invocation(session, reservation.Call, reservation.Fence, progress))
	})
	flush()
	ran, err = a.record(ctx, found.tool, reservation, outcome, approval.Reads{Untrusted: taint.Read()})
	return ran, false, err
}

// runnable finds what runs a call as an activity: Go code, or the version of a document that the call was admitted with. The error is
// UNAVAILABLE if this worker has neither: another worker may have it, and until then the call stays unchanged. A Go tool that the tenant no
// longer sees is found too; claim refuses it.
func (a *Activities) runnable(ctx context.Context, call jig.Call) (contract, error) {
	found, ok, err := a.find(ctx, call.Tenant, call.Tool, call.Version)
	if err != nil {
		return found, jig.Errorf(jig.CodeUnavailable, "this worker cannot read the tool %s: %w", call.Tool, err)
	}
	if code, known := a.Catalog.Tool(call.Tool); known && !ok {
		return a.goContract(code), nil
	}
	if found.run == nil {
		return found, jig.Errorf(jig.CodeUnavailable, "this worker has no tool %s", call.Tool)
	}
	return found, nil
}

// callOf reads a call and its session. The session's principal has the permissions that the tenant grants now.
func (a *Activities) callOf(ctx context.Context, ref protocol.SessionRef, id string) (jig.Session, jig.Call, error) {
	session, calls, err := a.Store.CallsOf(ctx, ref.Tenant, ref.SessionID, []string{id})
	if err != nil {
		return session, jig.Call{}, err
	}
	if len(calls) == 0 {
		return session, jig.Call{}, jig.Errorf(jig.CodeNotFound, "there is no call %s in session %s", id, ref.SessionID)
	}
	return session, calls[0], a.acting(ctx, &session)
}

// unclaimed says why a call could not be claimed: it has its result, waits for a person, or is held back. again reports that the call was
// admitted again and may be claimed immediately.
type unclaimed struct {
	ran   Ran
	again bool
}

// claim reserves a call for an attempt. It computes the digest of what would run, with a new preview of what it would change, and compares it
// with the digest of what was admitted and approved. It also asks policy again, because policy may deny the call now.
func (a *Activities) claim(ctx context.Context, session jig.Session, call jig.Call, tool jig.Tool, attempt string) (ledger.Reservation, *unclaimed, error) {
	if call.Paused != "" && call.Status == jig.CallReserved {
		why, err := a.Budgets.Resume(ctx, call.Tenant, call.SessionID)
		if err == nil {
			err = a.Store.NoteHeld(ctx, call.Tenant, call.SessionID, call.ID)
		}
		ran := held(call, why)
		ran.Stuck = true
		return ledger.Reservation{}, &unclaimed{ran: ran}, err
	}
	previews := &previews{Activities: a, session: session, tool: tool, voted: call.Status == jig.CallReserved}
	denied, why, err := a.deniedNow(ctx, session, tool, call)
	if err != nil {
		return ledger.Reservation{}, nil, err
	}
	if why != "" {
		return ledger.Reservation{}, &unclaimed{ran: held(call, why)}, nil
	}
	unasked, err := previews.unasked(ctx, call)
	if err != nil {
		return ledger.Reservation{}, nil, err
	}
	if denied || unasked {
		ran, again, err := a.readmit(ctx, session, call, tool, previews)
		return ledger.Reservation{}, &unclaimed{ran: ran, again: again}, err
	}
	if call.Status == jig.CallReserved || call.Status == jig.CallExecuting {
		if ended, err := a.limited(ctx, session, call, attempt); ended != nil || err != nil {
			return ledger.Reservation{}, ended, err
		}
	}
	running, outage, err := previews.again(ctx, call)
	if err != nil {
		return ledger.Reservation{}, nil, err
	}
	running.Version = tool.Version
	digested, err := digest(a.Store.Installation(), running)
	if err != nil {
		return ledger.Reservation{}, nil, err
	}
	proof, err := a.proofWanted(ctx, call)
	if err != nil {
		return ledger.Reservation{}, nil, err
	}
	running.Digest = digested
	withdrawn, err := a.withdrawn(ctx, session, tool, running)
	if err != nil {
		return ledger.Reservation{}, nil, err
	}
	var r ledger.Reservation
	err = retryWhileUnavailable(ctx, func() (err error) {
		r, err = a.Store.Reserve(ctx, ledger.ReserveRequest{
			Tenant: call.Tenant, SessionID: call.SessionID, CallID: call.ID, Version: tool.Version, Meaning: tool.Meaning, Digest: digested, Input: running.Input,
			MaxAttempts: tool.MaxAttempts, RetryFor: a.retryFor(tool), Now: a.Now(), Outage: outage, Attempt: attempt, Asked: call.Verdict != jig.VerdictRun, Proof: proof, Withdraw: withdrawn,
			Child: answeredBy(session, call, tool),
		})
		return err
	})
	if err != nil {
		return r, nil, err
	}
	switch r.Outcome {
	case ledger.ReserveRun:
		r.Call.Preview = running.Preview // the one that the digest is of
		return r, nil, nil
	case ledger.ReserveFinal:
		return r, &unclaimed{ran: result(r.Call)}, nil
	case ledger.ReserveHeld:
		return r, &unclaimed{ran: held(r.Call, "what it would change cannot be compared with what was shown: "+outage.Message)}, nil
	case ledger.ReserveUnknown:
		ran, err := a.asked(ctx, r.Call)
		return r, &unclaimed{ran: ran}, err
	case ledger.ReserveWaiting:
		ran, again, err := a.readmit(ctx, session, r.Call, tool, previews)
		return r, &unclaimed{ran: ran, again: again}, err
	}
	return r, nil, jig.Errorf(jig.CodeInternal, "the ledger answered %q", r.Outcome)
}

// proofWanted returns the proof that the approval of a call must have when the call begins.
func (a *Activities) proofWanted(ctx context.Context, call jig.Call) (jig.Proof, error) {
	if call.Verdict != jig.VerdictAsk || call.Status != jig.CallReserved {
		return jig.ProofClaimed, nil
	}
	settings, err := a.Tenants.Settings(ctx, call.Tenant)
	return settings.Proof, err
}

// frameAttempt is the attempt name of a call that a child workflow answers. It stays the same when another run continues the work.
const frameAttempt = "frame"

// claimWhole claims a call for as long as the workflow that answers it runs. ended is set if there is nothing to begin: the call
// has its result, waits for a person, or is held back. The error is UNAVAILABLE if the call was admitted again, so that a retry can
// claim it.
func (a *Activities) claimWhole(ctx context.Context, session jig.Session, call jig.Call, tool jig.Tool) (r ledger.Reservation, ended *Ran, err error) {
	r, unclaimed, err := a.claim(ctx, session, call, tool, frameAttempt)
	switch {
	case err != nil:
		return r, nil, err
	case unclaimed == nil:
		a.Tracing.CallBegun(ctx, call)
		return r, nil, nil
	case unclaimed.again:
		return r, nil, jig.Errorf(jig.CodeUnavailable, "call %s was admitted again", call.ID)
	}
	return r, &unclaimed.ran, nil
}

// held returns the state of a call that waits until a policy can be read.
func held(call jig.Call, why string) Ran { return Ran{State: call.Status, Paused: true, Held: why} }

func result(call jig.Call) Ran {
	ran := Ran{State: call.Status}
	if call.Result != nil {
		ran.Summary = jig.Cut(call.Result.Summary, 120)
	}
	return ran
}

// asked returns the state of a call, with the open approval or question.
func (a *Activities) asked(ctx context.Context, call jig.Call) (Ran, error) {
	pending, err := a.Store.Pending(ctx, call.Tenant, call.SessionID, call.ID)
	if err != nil {
		return Ran{}, err
	}
	return Ran{State: call.Status, Ask: shorten(pending, shownBytes)}, nil
}

// record finalizes a reserved attempt.
func (a *Activities) record(
	ctx context.Context, tool jig.Tool, r ledger.Reservation, outcome jig.ToolResult, reads approval.Reads,
) (Ran, error) {
	call := r.Call
	// The attempt has happened, so its record must be written even if the activity was canceled in the meantime.
	write, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	wait := a.callModelRetry(write, r, &outcome)
	ended := attempt{
		tool: tool, number: r.Fence, failures: call.Failures, now: a.Now(), failedAt: call.FailedAt, retryFor: a.retryFor(tool),
		doubt: r.InDoubt, ended: interruptionOf(ctx),
	}
	status, doubt := ended.verdict(outcome)
	completion := ledger.Completion{
		Tenant: call.Tenant, SessionID: call.SessionID, CallID: call.ID, Fence: r.Fence, Digest: call.Digest,
		Status: status, InDoubt: doubt, Failed: ended.failed(outcome), Result: outcome, Reads: reads,
	}
	if err := cutDown(&completion); err != nil {
		return Ran{}, err
	}
	var stored ledger.Completed
	err := retryWhileUnavailable(write, func() (err error) {
		stored, err = a.Store.Complete(write, completion)
		return err
	})
	if err != nil {
		return Ran{}, err
	}
	if stored.Late {
		a.notifySettled(ctx, stored.Call)
	}
	switch stored.Status {
	case jig.CallReserved:
		if wait != nil {
			a.noteModelWait(write, call.Tenant, call.SessionID, *wait)
		}
		return Ran{}, retryLater(outcome.Error)
	case jig.CallUnknown:
		return a.asked(write, stored.Call)
	case jig.CallExecuting: // a later attempt holds the fence, and its outcome counts
		return Ran{}, jig.Errorf(jig.CodeUnavailable, "another attempt is running call %s", call.ID)
	case jig.CallWaiting, jig.CallSucceeded, jig.CallFailed, jig.CallDenied, jig.CallExpired, jig.CallCanceled, jig.CallDuplicate:
	}
	return result(stored.Call), nil
}

// invocation returns the limited context that a tool gets.
func (a *Activities) invocation(session jig.Session, call jig.Call, attempt int, progress func(string)) jig.Invocation {
	return jig.Invocation{
		Tenant: call.Tenant, Principal: session.Principal, SessionID: call.SessionID, CallID: call.ID,
		Agent: session.Agent.Name, Depth: session.Depth, Attempt: attempt,
		IdempotencyKey: call.IdempotencyKey, Precondition: precondition(call),
		Logger: a.Logger.With(
			slog.String("session_id", call.SessionID), slog.String("call_id", call.ID), slog.String("tool", call.Tool)),
		Progress: progress,
	}
}

// recordTime is how long a worker tries to write the record of an attempt. It is shorter than the attempt's grace period.
const recordTime = 25 * time.Second

// retryWhileUnavailable retries a transaction while the database is unavailable, for up to recordTime, so that an outage of a few seconds
// neither loses the outcome of an attempt nor leaves it unknown whether the attempt began.
func retryWhileUnavailable(ctx context.Context, try func() error) error {
	giveUp := time.After(recordTime)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := try()
		if jig.CodeOf(err) != jig.CodeUnavailable {
			return err
		}
		select {
		case <-giveUp:
			return err
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}
