package activities

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// RunLocalInput names the calls to run in a local activity.
type RunLocalInput struct {
	protocol.SessionRef
	Calls []string `json:"calls"`
}

// RunLocal runs calls of quick, read-only, idempotent tools together: it reads the calls once, runs all tools at the same time, and
// records all results at once. A call that is not that simple (another attempt has begun, the tool changed, the result is large) runs as in
// RunTool. One that has failed and may be retried, or whose first attempt never reported, goes on as an activity. Extractions that make no calls run to their end. The results are in the order of the input.
func (a *Activities) RunLocal(ctx context.Context, in RunLocalInput) ([]Ran, error) {
	session, calls, err := a.Store.CallsOf(ctx, in.Tenant, in.SessionID, in.Calls)
	if err != nil {
		return nil, temporalError(err)
	}
	if err := a.acting(ctx, &session); err != nil {
		return nil, temporalError(err)
	}
	quick, later, err := a.runQuick(ctx, session, calls)
	if err != nil {
		return nil, temporalError(err)
	}
	finished := map[string]Ran{}
	inline, err := a.runInline(ctx, in.SessionRef, calls)
	if err != nil {
		return nil, err
	}
	if len(quick) > 0 {
		ids, err := a.Store.FinishQuick(ctx, in.Tenant, in.SessionID, quick)
		if err != nil {
			return nil, temporalError(err)
		}
		for _, id := range ids {
			finished[id] = Ran{}
		}
		for _, done := range quick {
			if _, ok := finished[done.CallID]; ok {
				finished[done.CallID] = Ran{State: done.Status, Summary: jig.Cut(done.Result.Summary, 120)}
			}
		}
	}
	list := make([]Ran, len(in.Calls))
	for i, id := range in.Calls {
		ran, ok := finished[id]
		if !ok {
			ran, ok = inline[id]
		}
		if paused(calls, id) {
			if err := a.Store.NoteHeld(ctx, in.Tenant, in.SessionID, id); err != nil {
				return nil, temporalError(err)
			}
			list[i] = Ran{State: jig.CallReserved, Paused: true, Stuck: true}
			continue
		}
		if !ok && later[id] {
			ran, ok = asActivity, true
		}
		if !ok {
			ran, err = a.tryTool(ctx, RunInput{SessionRef: in.SessionRef, Call: id})
			var released *temporal.ApplicationError
			if errors.As(err, &released) {
				ran, err = asActivity, nil
			}
			if err != nil {
				return nil, temporalError(err)
			}
		}
		list[i] = ran
	}
	return list, nil
}

// asActivity is the state of a call that goes on as an activity, whose retries add nothing to the history and concern no other call.
var asActivity = Ran{State: jig.CallReserved, Paused: true}

// runQuick runs the calls that have not begun, all at the same time. It returns the records of those calls that need only one record, and which calls
// go on as activities.
func (a *Activities) runQuick(ctx context.Context, session jig.Session, calls []jig.Call) (done []ledger.QuickCompletion, later map[string]bool, err error) {
	later = map[string]bool{}
	quick, err := a.quickCalls(ctx, session, calls, later)
	if err != nil {
		return nil, nil, err
	}
	records := make([]ledger.QuickCompletion, len(quick))
	var running sync.WaitGroup
	for i, call := range quick {
		running.Go(func() {
			tool, _ := a.Catalog.Tool(call.Tool)
			progress, flush := a.progress(ctx, call)
			records[i] = a.firstAttempt(ctx, session, a.goContract(tool), call, progress)
			flush()
		})
	}
	running.Wait()
	for i, record := range records {
		switch {
		case recordable(record):
			done = append(done, record)
		case record.Status == jig.CallReserved:
			if err := a.noteFailure(ctx, quick[i], record.Result.Cause()); err != nil {
				return nil, nil, err
			}
			later[record.CallID] = true
		}
	}
	return done, later, nil
}

// quickCalls returns the calls that may run at once, after the ledger has noted that they are tried: a call that kills its worker is not tried like
// this again. Such calls are added to later.
func (a *Activities) quickCalls(ctx context.Context, session jig.Session, calls []jig.Call, later map[string]bool) (quick []jig.Call, err error) {
	var ids []string
	for _, call := range calls {
		tool, ok := a.Catalog.Tool(call.Tool) // only Go tools are quick
		if !ok || !localTool(tool) {
			continue
		}
		if call.Tried && call.Status == jig.CallReserved && call.Paused == "" {
			later[call.ID] = true
			continue
		}
		if unreserved, err := a.mayRunUnreserved(ctx, session, tool, call); err == nil && unreserved {
			quick, ids = append(quick, call), append(ids, call.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return quick, a.Store.TryQuick(ctx, session.Tenant, session.ID, ids)
}

// noteFailure records that an attempt that the ledger does not know has failed, with a failure that may pass.
func (a *Activities) noteFailure(ctx context.Context, call jig.Call, failure *jig.Error) error {
	_, err := a.Store.Reserve(ctx, ledger.ReserveRequest{
		Tenant: call.Tenant, SessionID: call.SessionID, CallID: call.ID, Version: call.Version, Digest: call.Digest, Input: call.Input, Now: a.Now(), Outage: failure,
	})
	return err
}

// paused reports whether a pause holds back a call that has not begun.
func paused(calls []jig.Call, id string) bool {
	return slices.ContainsFunc(calls, func(c jig.Call) bool { return c.ID == id && c.Paused != "" && c.Status == jig.CallReserved })
}

// localTool reports whether a tool may run in a local activity.
func localTool(t jig.Tool) bool { return t.Execution == jig.ExecutionLocal && repeatable(t) }

// repeatable reports whether a tool only reads and may run any number of times, so that the ledger need not know of an attempt before it
// begins.
func repeatable(t jig.Tool) bool { return t.Idempotent && t.Permission == jig.PermissionRead }

// mayRunUnreserved reports whether a call may run before the ledger knows of the attempt. That is so if the call has had no attempt, nothing
// holds it back or denies it, it has no price, no rate limit concerns it, and it has not changed since it was admitted.
func (a *Activities) mayRunUnreserved(ctx context.Context, session jig.Session, tool jig.Tool, call jig.Call) (bool, error) {
	if !repeatable(tool) || call.Status != jig.CallReserved || call.Verdict != jig.VerdictRun || call.Fence != 0 || call.Tried || call.Paused != "" {
		return false, nil
	}
	if priced, err := a.Budgets.Priced(ctx, call.Tenant, call.Tool); err != nil || priced {
		return false, err
	}
	if limited, err := a.RateLimits.Limited(ctx, call.Tenant, call.Tool); err != nil || limited {
		return false, err
	}
	digested, err := digest(a.Store.Installation(), call)
	if err != nil || digested != call.Digest || tool.Version != call.Version {
		return false, err
	}
	denied, held, err := a.deniedNow(ctx, session, tool, call)
	return !denied && held == "" && err == nil, err
}

// runsUnreserved reports whether an activity runs its call without reserving it first. A retry reserves, so that the ledger counts the
// attempts of a tool that kills its workers.
func (a *Activities) runsUnreserved(ctx context.Context, session jig.Session, found contract, call jig.Call) (bool, error) {
	if found.body != nil || activity.IsActivity(ctx) && activity.GetInfo(ctx).Attempt > 1 {
		return false, nil
	}
	return a.mayRunUnreserved(ctx, session, found.tool, call)
}

// firstAttempt runs the first attempt of a call and returns the record of its start and its end.
func (a *Activities) firstAttempt(
	ctx context.Context, session jig.Session, found contract, call jig.Call, progress func(string),
) ledger.QuickCompletion {
	started := a.Now()
	taint := &entity.Taint{Session: session.ReadUntrusted}
	outcome := a.traced(entity.WithTaint(ctx, taint), found, call, a.invocation(session, call, 1, progress))
	status, _ := attempt{tool: found.tool, number: 1, now: a.Now(), retryFor: a.retryFor(found.tool), ended: interruptionOf(ctx)}.verdict(outcome)
	return ledger.QuickCompletion{
		CallID: call.ID, Version: call.Version, Digest: call.Digest, Input: call.Input, Status: status, Result: outcome,
		Started: started, Finished: a.Now(), Reads: approval.Reads{Untrusted: taint.Read()},
	}
}

// recordable reports whether one record is enough for an attempt: the attempt ended the call, and its result is small.
func recordable(c ledger.QuickCompletion) bool {
	return len(c.Result.Data)+len(c.Result.Markdown) <= jig.InlineBytes && (c.Status == jig.CallSucceeded || c.Status == jig.CallFailed)
}

// unreservedTime is how long a read may run before it is reserved, so that people see it executing.
const unreservedTime = time.Second

// read runs a call that need not be reserved, and records its start and its end together. The call is reserved after all if it takes
// long, if it reports progress, or if it needs more than one record. name is the attempt's name.
func (a *Activities) read(ctx context.Context, session jig.Session, found contract, call jig.Call, name string) (Ran, bool, error) {
	type claimed struct {
		ledger.Reservation
		ended *unclaimed
		err   error
	}
	late := context.WithoutCancel(ctx) // an attempt that has begun is recorded even if the activity was canceled in the meantime
	reserve := sync.OnceValue(func() claimed {
		r, ended, err := a.claim(late, session, call, found.tool, name)
		return claimed{r, ended, err}
	})
	overdue := time.AfterFunc(unreservedTime, func() { reserve() })
	report, flush := a.progress(ctx, call)
	record := a.firstAttempt(ctx, session, found, call, func(text string) {
		overdue.Stop()
		reserve()
		report(text)
	})
	flush()
	if overdue.Stop() && recordable(record) {
		write, cancel := context.WithTimeout(late, recordTime)
		defer cancel()
		done, err := a.Store.FinishQuick(write, call.Tenant, call.SessionID, []ledger.QuickCompletion{record})
		if err == nil && len(done) > 0 {
			call.Status, call.Result = record.Status, &record.Result
			return result(call), false, nil
		}
	}
	r := reserve()
	switch {
	case r.err != nil:
		return Ran{}, false, r.err
	case r.ended != nil: // somebody canceled it, paused it or changed its rules, so the result is not used
		return r.ended.ran, r.ended.again, nil
	}
	ran, err := a.record(ctx, found.tool, r.Reservation, record.Result, record.Reads)
	return ran, false, err
}
