package starter

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
)

// runSpec calls an execution spec and prints its output.
func (a *app) runSpec(ctx context.Context, e engine, input client.CallInput, f runFlags) error {
	started, err := e.StartCall(ctx, input, f.id)
	if err != nil {
		return err
	}
	if over, err := a.attendTo(ctx, e, started, f); over || err != nil {
		return err
	}
	result, err := e.WaitCall(ctx, a.flags.tenant, started.SessionID)
	if err != nil {
		return a.leave(ctx, started.SessionID, err)
	}
	view, err := e.Status(ctx, a.flags.tenant, started.SessionID)
	if err != nil && jig.CodeOf(err) != jig.CodeNotFound {
		return err
	}
	r := protocol.SessionResult{SessionID: started.SessionID, Status: view.Status, Passes: view.Pass, Calls: protocol.Counts(view.Counts)}
	whole, err := e.WholeResult(ctx, a.flags.tenant, result)
	if err != nil {
		return err
	}
	if whole != nil {
		r.Output, r.Error = rawOrNil(whole.Data), whole.Error
	}
	return a.printReport(r)
}
