package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/ledger"
)

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
