package activities

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan"
)

// AbandonFrame ends a composition whose workflow was ended externally. It cancels the composition's open calls and fails its own call.
func (a *Activities) AbandonFrame(ctx context.Context, in ComposeInput) (Ran, error) {
	c, ended, err := a.composition(ctx, in, &entity.Taint{})
	if err != nil {
		return Ran{}, temporalError(err)
	}
	if ended != nil {
		return *ended, nil
	}
	if !c.frame.Done {
		err := c.abandon(ctx, c.endedBy(ctx, in.Tenant, jig.QualifiedCallID(in.SessionID, in.Call), audit.AuditTerminated), jig.Failure(
			jig.Errorf(jig.CodeCanceled, "the workflow of the composition was ended externally").WithReason(jig.ReasonTerminated)))
		if err != nil {
			return Ran{}, temporalError(err)
		}
	}
	ran, err := c.finish(ctx)
	return ran, temporalError(err)
}

// abandon ends a composition in its current state and cancels its open calls. by says who ended it; nil if nobody did.
func (c *composition) abandon(ctx context.Context, by *audit.Entry, failed jig.ToolResult) error {
	window, err := c.Store.FrameWindow(ctx, c.root.Tenant, c.root.SessionID, c.root.ID)
	if err != nil {
		return err
	}
	m := plan.FrameMove{
		Tenant: c.root.Tenant, SessionID: c.root.SessionID, CallID: c.root.ID, Revision: c.frame.Revision, State: c.frame.State,
		Abandon: true, Done: true, Result: &failed, Audit: c.audited(by),
	}
	for _, call := range window.Calls {
		m.Cancel = append(m.Cancel, call.ID)
	}
	err = c.Store.MoveFrame(ctx, m)
	if jig.CodeOf(err) == jig.CodeConflict {
		return jig.Errorf(jig.CodeUnavailable, "a worker was still working on the composition of call %s: %w", c.root.ID, err)
	}
	if err != nil {
		return err
	}
	c.frame.Done, c.frame.Result = true, &failed
	return nil
}

// audited adds the composition's call to an audit entry; nil stays nil.
func (c *composition) audited(e *audit.Entry) *audit.Entry {
	if e != nil {
		e.SessionID, e.Call, e.Tool = c.root.SessionID, c.root.ID, c.root.Tool
	}
	return e
}
