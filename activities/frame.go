package activities

import (
	"bytes"
	"context"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/protocol"
)

// keep stores a move. final reports whether some of the move's calls already have results, so that the next move can follow at once.
func (c *composition) keep(ctx context.Context, move plan.Move) (final bool, err error) {
	m := plan.FrameMove{
		Tenant: c.root.Tenant, SessionID: c.root.SessionID, CallID: c.root.ID, Revision: c.frame.Revision, State: move.State,
		Values: move.Values, Events: move.Events, Consumed: move.Consumed, Done: move.Done, Waits: c.waits(move),
	}
	if c.fills {
		c.toEntity(&m, move.Entity)
	}
	m.Abandon = c.at.Canceled // the workflow has waited until none of its calls was running
	if c.at.Canceled && move.Done {
		m.Audit = c.audited(c.endedBy(ctx, m.Tenant, jig.QualifiedCallID(m.SessionID, m.CallID), audit.AuditCanceled))
	}
	m.Cancel = slices.DeleteFunc(c.ids(move.Cancel), func(id string) bool { return slices.Contains(c.canceled, id) })
	c.canceled = append(c.canceled, m.Cancel...)
	final = len(m.Cancel) > 0 // calls that waited have their results now
	for i := range m.Events {
		if m.Events[i].Pass = c.root.Pass; m.Events[i].CallID != "" {
			m.Events[i].CallID = c.root.ID + "/" + m.Events[i].CallID
		}
	}
	for _, ask := range move.Calls {
		call, approval, err := c.admit(ctx, ask)
		if err != nil {
			return false, err
		}
		final = final || call.Status.Final()
		m.Calls = append(m.Calls, call)
		if approval != nil {
			m.Approvals = append(m.Approvals, *approval)
		}
	}
	if move.Done {
		if err := c.conclude(&m, move.Result); err != nil {
			return false, err
		}
	}
	if !move.Done && len(m.Calls)+len(m.Cancel)+len(m.Values)+len(m.Events)+len(m.Consumed) == 0 &&
		string(move.State) == string(c.frame.State) {
		return false, nil // nothing has changed
	}
	if err := c.Store.MoveFrame(ctx, m); err != nil {
		return false, err
	}
	c.admitted(ctx, c.session, ledger.Admission{Tenant: m.Tenant, SessionID: m.SessionID, Calls: m.Calls, Approvals: m.Approvals})
	c.fresh.Calls = append(c.fresh.Calls, open(m.Calls)...)
	for _, p := range m.Approvals {
		if c.fresh.Approvals == nil {
			c.fresh.Approvals = map[string]jig.Pending{}
		}
		c.fresh.Approvals[p.Call] = p
	}
	c.frame.State, c.frame.Done, c.frame.Result = move.State, move.Done, m.Result
	c.frame.Revision++
	c.at.Events = slices.DeleteFunc(c.at.Events, func(e plan.ReceivedEvent) bool { return slices.Contains(move.Consumed, e.ID) })
	if move.Done && m.Whole != nil {
		c.frame, err = c.Store.Frame(ctx, m.Tenant, m.SessionID, m.CallID) // the stored frame refers to the complete result
	}
	return final, err
}

// admit decides on a call that a step makes in the same way as on a call that a model makes.
func (c *composition) admit(ctx context.Context, ask plan.Ask) (jig.Call, *jig.Pending, error) {
	call := jig.Call{
		Tenant: c.root.Tenant, SessionID: c.root.SessionID, ID: c.root.ID + "/" + ask.Path, Frame: c.root.ID,
		Pass: c.root.Pass, Ordinal: c.root.Ordinal, Tool: ask.Tool,
	}
	if ask.Reverts != nil {
		other, err := c.Store.ClaimUndo(ctx, call.Tenant, *ask.Reverts, ledger.CallName{SessionID: call.SessionID, Call: call.ID})
		if err != nil {
			return call, nil, err
		}
		if other != nil {
			call.Input = ask.Input
			refuse(&call, jig.Errorf(jig.CodeConflict, "%s has undone it already, or will", other))
			return call, nil, nil
		}
	}
	if ask.Tool == "" {
		undone, name, err := c.undoOf(ctx, ask.Undoes)
		if err != nil {
			return call, nil, err
		}
		if name == "" {
			refuse(&call, jig.Errorf(jig.CodeToolNotFound, "%s has no undo tool", undone).WithField("undo").
				WithHint("name the tool in the step's undo"))
			return call, nil, nil
		}
		call.Tool = name
	}
	var failed jig.Call
	if ask.RetryOf != "" {
		var err error
		if _, failed, err = c.callOf(ctx, c.ref(), c.root.ID+"/"+ask.RetryOf); err != nil {
			return call, nil, err
		}
		call.RetryOf, ask.Input = failed.ID, failed.Input
	}
	tool, refused, err := c.resolve(ctx, c.session, jig.ToolCall{Name: call.Tool, Input: ask.Input}, &call, ask.Named)
	if err != nil {
		return call, nil, err
	}
	if refused == nil && failed.Version != "" && !bytes.Equal(call.Input, failed.Input) {
		refused = jig.Errorf(jig.CodeConflict, "%s now takes a different input than when call %s ran, so the call is not repeated", tool.Name, failed.ID)
	}
	if refused != nil {
		refuse(&call, refused)
		return call, nil, nil
	}
	call.Reasons = c.undoReasons(ask)
	c.matcher.origins.rendered = ask.Rendered
	if failed.Version == tool.Version {
		c.matcher.origins.earlier = failed.Flow
	}
	approval, err := c.decideOn(ctx, c.matcher, tool, &call)
	return call, approval, err
}

// undoReasons says what a call undoes and why, for the people who decide about it; nil for other calls.
func (c *composition) undoReasons(ask plan.Ask) []string {
	switch {
	case ask.Reverts != nil:
		return []string{jig.UndoOf + ask.Reverts.String()}
	case ask.Undoes != "":
		return []string{jig.UndoOf + c.root.ID + "/" + ask.Undoes + jig.Because + jig.Cut(ask.Because, maxChanged)}
	}
	return nil
}

// undoOf returns the tool of a call, and the tool that undoes it according to its contract. undo is empty if the contract names no such tool.
func (c *composition) undoOf(ctx context.Context, path string) (undone, undo string, err error) {
	_, call, err := c.callOf(ctx, c.ref(), c.root.ID+"/"+path)
	if err != nil {
		return "", "", err
	}
	tool, _, err := c.tool(ctx, call.Tenant, call.Tool, call.Version)
	return call.Tool, tool.Undo, err
}

// conclude sets the result of a composition that has ended: it checks the output against the spec's schema and cuts it down if it is large.
func (c *composition) conclude(m *plan.FrameMove, r jig.ToolResult) error {
	if r.Success && len(c.spec.tool.OutputSchema) > 0 {
		if err := c.Schemas.ValidateOutput(c.spec.tool.OutputSchema, r.Data); err != nil {
			e := *jig.AsError(err)
			e.Code, e.Message = jig.CodeInvalidOutput, "the output does not fit the output schema: "+e.Message
			if c.spec.tool.Permission == jig.PermissionRead {
				r = jig.Failure(&e)
			} else { // the steps have already had their effects
				r.Warnings = append(r.Warnings, e.Message)
			}
		}
	}
	if r.Error != nil && r.Error.NotExecuted {
		e := *r.Error
		e.NotExecuted = false // the failed step had no effect, but earlier steps may have had theirs
		r.Error = &e
	}
	completion := ledger.Completion{CallID: c.root.ID, Result: r}
	if err := cutDown(&completion); err != nil {
		return err
	}
	m.Result, m.Whole = &completion.Result, completion.Whole
	return nil
}

// finish finalizes the composition's own call with the result of the frame.
func (c *composition) finish(ctx context.Context) (Ran, error) {
	completion := ledger.Completion{
		Tenant: c.root.Tenant, SessionID: c.root.SessionID, CallID: c.root.ID, Fence: c.frame.Fence,
		Result: jig.Failure(jig.Errorf(jig.CodeCanceled, "the session ended")),
		Reads:  approval.Reads{Steps: true, Untrusted: c.readsSession()},
	}
	if c.frame.Result != nil {
		completion.Result = *c.frame.Result
	}
	completion.Status = endOf(completion.Result)
	if c.frame.ResultArtifact != "" {
		whole, err := c.readWhole(ctx, c.root.Tenant, c.frame.ResultArtifact)
		if err != nil {
			return Ran{}, err
		}
		completion.Whole = whole
	}
	stored, err := c.Store.Complete(ctx, completion)
	return result(stored.Call), err
}

// readsSession reports whether the document may read the session's task or input although nobody typed them, in a session that has read
// untrusted data.
func (c *composition) readsSession() bool {
	return c.session.ReadUntrusted && !ledger.Typed(c.session.Source) && bytes.Contains(c.spec.body, []byte("session"))
}

// unknown returns the open calls that the workflow does not know yet: those that were just admitted and, after a crash or in a new run,
// earlier ones.
func (c *composition) unknown(ctx context.Context, in ComposeInput, move plan.Move) ([]CallRef, error) {
	window := c.fresh
	known := func(id string) bool {
		return slices.Contains(in.Known, id) || slices.ContainsFunc(c.fresh.Calls, func(call jig.Call) bool { return call.ID == id })
	}
	if slices.ContainsFunc(c.ids(move.Open), func(id string) bool { return !known(id) }) {
		var err error
		if window, err = c.Store.FrameWindow(ctx, in.Tenant, in.SessionID, in.Call); err != nil {
			return nil, err
		}
	}
	window.Calls = slices.DeleteFunc(window.Calls, func(call jig.Call) bool { return slices.Contains(in.Known, call.ID) })
	refs, err := c.refs(ctx, window)
	if err == nil && c.extracts && !c.fills {
		c.markInline(refs)
	}
	return refs, err
}

func (c *composition) ref() protocol.SessionRef {
	return protocol.SessionRef{Tenant: c.root.Tenant, SessionID: c.root.SessionID}
}

// waits returns the waits of a move by their call ids.
func (c *composition) waits(move plan.Move) []jig.Wait {
	waits := slices.Clone(move.Waits)
	for i := range waits {
		waits[i].Call = c.root.ID + "/" + waits[i].Call
	}
	return waits
}

// ids returns the call ids of paths.
func (c *composition) ids(paths []string) []string {
	ids := make([]string, len(paths))
	for i, path := range paths {
		ids[i] = c.root.ID + "/" + path
	}
	return ids
}

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
