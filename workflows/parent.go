package workflows

import (
	"cmp"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
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

// tell tells the parent what this session and its descendants wait for, if that has changed. Calls and steps keep the ids that they have in their
// own sessions; Via names the parent's call.
func (p *parent) tell(ctx workflow.Context, waiting []activities.CallRef, waits []jig.Wait, idle bool) {
	if p == nil {
		return
	}
	self := workflow.GetInfo(ctx).WorkflowExecution.ID
	now := Waiting{Call: p.call, Idle: idle, Calls: make([]activities.CallRef, len(waiting)), Waits: slices.Clone(waits)}
	for i, ref := range waiting {
		if ref.Ask != nil {
			ask := *ref.Ask
			ask.Via, ask.SessionID = p.call, cmp.Or(ask.SessionID, self)
			ref.Ask = &ask
		}
		now.Calls[i] = ref
	}
	for i := range now.Waits {
		now.Waits[i].Via, now.Waits[i].SessionID = p.call, cmp.Or(now.Waits[i].SessionID, self)
	}
	if !p.earlier && now.same(p.told) {
		return
	}
	now.Seq = following(ctx, p.told.Seq)
	p.sent = now.send(ctx, p.sessionID, p.earlier || now.Idle != p.told.Idle)
	p.told, p.earlier = now, false
}

// handOver returns what the next run must know about the parent. A report that was not delivered before the run ends may be lost. In that
// case the next run reports again.
func (p *parent) handOver() *protocol.ParentCall {
	if p == nil {
		return nil
	}
	told := p.earlier || !p.told.same(Waiting{}) || p.sent != nil && !p.sent.IsReady()
	return &protocol.ParentCall{SessionID: p.sessionID, Call: p.call, Told: told}
}
