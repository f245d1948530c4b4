package workflows

import (
	"cmp"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
)

// parent is the session whose call this session answers. This session tells the parent which calls wait for people, so that the parent
// shows them too.
type parent struct {
	sessionID, call string
	// told is the latest report to the parent. sent is ready once Temporal has delivered the report or given up.
	told Waiting
	sent workflow.Future
	// earlier reports that an earlier run may have told the parent about waiting calls.
	earlier bool
}

// parentOf returns the parent of this run, or nil if the session was not started as a child of another session's workflow.
func parentOf(ctx workflow.Context, in protocol.PassInput) *parent {
	switch {
	case workflow.GetInfo(ctx).ParentWorkflowExecution == nil:
		return nil
	case in.Parent != nil:
		return &parent{sessionID: in.Parent.SessionID, call: in.Parent.Call, earlier: in.Parent.Told}
	case in.Start != nil && in.Start.ParentID != "":
		return &parent{sessionID: in.Start.ParentID, call: in.Start.ParentCall}
	}
	return nil
}

// tell tells the parent which calls wait for a person in this session and its descendants, if that has changed. Calls keep the ids that
// they have in their own sessions; Via names the parent's call.
func (p *parent) tell(ctx workflow.Context, waiting []activities.CallRef, idle bool) {
	if p == nil {
		return
	}
	now := Waiting{Call: p.call, Idle: idle, Calls: make([]activities.CallRef, len(waiting))}
	for i, ref := range waiting {
		if ref.Ask != nil {
			ask := *ref.Ask
			ask.Via, ask.SessionID = p.call, cmp.Or(ask.SessionID, workflow.GetInfo(ctx).WorkflowExecution.ID)
			ref.Ask = &ask
		}
		now.Calls[i] = ref
	}
	if !p.earlier && now.Idle == p.told.Idle && slices.EqualFunc(now.Calls, p.told.Calls, sameAsk) {
		return
	}
	if workflow.GetVersion(ctx, changeTellParent, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return
	}
	now.Seq = following(ctx, p.told.Seq)
	free, _ := workflow.NewDisconnectedContext(ctx)
	p.sent = workflow.SignalExternalWorkflow(free, p.sessionID, "", signalWaiting, now)
	p.told, p.earlier = now, false
}

// handOver returns what the next run must know about the parent. A report that was not delivered before the run ends may be lost. In that
// case the next run reports again.
func (p *parent) handOver() *protocol.ParentCall {
	if p == nil {
		return nil
	}
	told := p.earlier || len(p.told.Calls) > 0 || p.sent != nil && !p.sent.IsReady()
	return &protocol.ParentCall{SessionID: p.sessionID, Call: p.call, Told: told}
}
