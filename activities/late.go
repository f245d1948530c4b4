package activities

import (
	"context"
	"log/slog"

	"github.com/jig-run/jig"
)

// Settlement names a call that was settled late: its workflow holds it to be unknown and waits for a person.
type Settlement struct {
	Call string `json:"call"`
}

// tellSettled tells the workflow that waits for a call that the call was settled late. The attempt's own answer does not do that:
// Temporal has given the attempt up.
func (a *Activities) tellSettled(ctx context.Context, call jig.Call) {
	if a.runs == nil {
		return
	}
	id := call.SessionID
	if call.Frame != "" {
		id = jig.QualifiedCallID(call.SessionID, call.Frame)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	err := insist(ctx, func() error { return a.runs.Settled(ctx, id, Settlement{Call: call.ID}) })
	if err != nil { // the session waits on until somebody tries to reconcile the call: the answer says how it ended
		a.logger.ErrorContext(ctx, "the workflow was not told that a call was settled", slog.String("session_id", call.SessionID),
			slog.String("call_id", call.ID), slog.String("error", err.Error()))
	}
}

// Standing reports where a call stands, for a workflow that was told that the call was settled.
func (a *Activities) Standing(ctx context.Context, in RunInput) (Ran, error) {
	call, err := a.store.Call(ctx, in.Tenant, in.SessionID, in.Call)
	if err != nil {
		return Ran{}, temporalError(err)
	}
	return result(call), nil
}
