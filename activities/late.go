package activities

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// tellAgain is how long the sweeper waits after the latest attempt to tell a workflow about a settled call. By then the process that
// settled the call has given up.
const tellAgain = time.Minute

// maxTold limits how many calls one sweep reports.
const maxTold = 1000

// tellSettled tells the workflow that waits for a call that the call was settled late. The attempt's own result cannot do that, because
// Temporal has already given up on the attempt. If tellSettled fails, or the worker dies first, the sweeper tells the workflow.
func (a *Activities) tellSettled(ctx context.Context, call jig.Call) {
	if a.Runs == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	err := retryWhileUnavailable(ctx, func() error { return a.signalSettled(ctx, call) })
	if err == nil {
		err = retryWhileUnavailable(ctx, func() error { return a.Store.ToldSettled(ctx, call.Tenant, call.SessionID, call.ID) })
	}
	if err != nil {
		a.Logger.ErrorContext(ctx, "the workflow was not told that a call was settled; the sweeper will tell it", slog.String("session_id", call.SessionID),
			slog.String("call_id", call.ID), slog.String("error", err.Error()))
	}
}

// signalSettled signals the workflow that considers a call unknown: the session's workflow or the one that runs the call's composition.
func (a *Activities) signalSettled(ctx context.Context, call jig.Call) error {
	id := call.SessionID
	if call.Frame != "" {
		id = jig.QualifiedCallID(call.SessionID, call.Frame)
	}
	return a.Runs.Settled(ctx, id, protocol.Settlement{Call: call.ID})
}

// tellLeftOver tells workflows about calls that were settled late by workers that did not manage to tell them. If that fails for one
// workflow, the others are still told, and a later sweep tries again.
func (a *Activities) tellLeftOver(ctx context.Context) error {
	if a.Runs == nil {
		return nil
	}
	left, err := a.Store.TakeSettled(ctx, tellAgain, maxTold)
	if err != nil {
		return err
	}
	var failed error
	for _, call := range left {
		err := a.signalSettled(ctx, call)
		if err == nil {
			err = a.Store.ToldSettled(ctx, call.Tenant, call.SessionID, call.ID)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// Standing returns the state of a call, for a workflow that was told that the call was settled, or that heard a decision on the call early.
func (a *Activities) Standing(ctx context.Context, in RunInput) (Ran, error) {
	call, err := a.Store.Call(ctx, in.Tenant, in.SessionID, in.Call)
	if err != nil {
		return Ran{}, temporalError(err)
	}
	if call.Status == jig.CallWaiting || call.Status == jig.CallUnknown {
		ran, err := a.asked(ctx, call)
		if jig.CodeOf(err) == jig.CodeNotFound { // it was decided a moment ago
			return result(call), nil
		}
		return ran, temporalError(err)
	}
	return result(call), nil
}
