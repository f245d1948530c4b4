package workflows

import (
	"cmp"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
)

// Waiting lists the calls that wait for a person in a composition, or in a session that answers a call. The composition or session sends
// it to the session that made the call whenever the list changes.
type Waiting struct {
	// Call is the call that the composition or session answers.
	Call  string               `json:"call"`
	Calls []activities.CallRef `json:"calls,omitempty"`
	// Waits are the steps that wait for events or times.
	Waits []jig.Wait `json:"waits,omitempty"`
	// Idle reports whether nothing is running, so that there is no progress until a person acts.
	Idle bool `json:"idle,omitempty"`
	// Ending is set when an approval expires whose terms end the session.
	Ending jig.ExpiryOutcome `json:"ending,omitempty"`
	// Seq grows with every report for a call, because Temporal may deliver signals out of order.
	Seq int64 `json:"seq,omitempty"`
}

// following returns a sequence number that is greater than last and than those of earlier runs.
func following(ctx workflow.Context, last int64) int64 {
	return max(last+1, workflow.Now(ctx).UnixNano())
}

// sameWaits reports whether two reports have the same waits. Steps that are tried again soon are no reason for a report.
func sameWaits(x, y []jig.Wait) bool {
	retries := func(w jig.Wait) bool { return w.Retries }
	return slices.EqualFunc(slices.DeleteFunc(slices.Clone(x), retries), slices.DeleteFunc(slices.Clone(y), retries), func(v, w jig.Wait) bool {
		return v.Call == w.Call && v.Event == w.Event && v.Until.Equal(w.Until)
	})
}

func sameAsk(x, y activities.CallRef) bool {
	return x.ID == y.ID && x.State == y.State && (x.Ask == nil) == (y.Ask == nil) && (x.Ask == nil || x.Ask.Digest == y.Ask.Digest &&
		len(x.Ask.Votes) == len(y.Ask.Votes) && len(x.Ask.Delegations) == len(y.Ask.Delegations))
}

// send sends a report to the session that made the call. A composition whose step the call is learns that the step is idle if that is news.
func (w Waiting) send(ctx workflow.Context, sessionID string, news bool) workflow.Future {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if above := workflow.GetInfo(ctx).ParentWorkflowExecution; above != nil && above.ID != sessionID && news {
		workflow.SignalExternalWorkflow(ctx, above.ID, "", signalWaiting, Waiting{Call: w.Call, Idle: w.Idle, Seq: w.Seq})
	}
	return workflow.SignalExternalWorkflow(ctx, sessionID, "", signalWaiting, w)
}

// same reports whether two reports say the same. Steps that are tried again soon are no reason for a report.
func (w Waiting) same(other Waiting) bool {
	return w.Idle == other.Idle && w.Ending == other.Ending && slices.EqualFunc(w.Calls, other.Calls, sameAsk) && sameWaits(w.Waits, other.Waits)
}

// hears takes the report of the composition or child session that answers a running call. It returns false if a later one was already received.
func (b *callTable) hears(waiting Waiting) bool {
	if waiting.Seq != 0 && waiting.Seq <= b.reported[waiting.Call] {
		return false
	}
	if b.reported == nil {
		b.reported = map[string]int64{}
	}
	b.reported[waiting.Call] = waiting.Seq
	if c := b.find(waiting.Call); c != nil && c.running {
		c.stuck = waiting.Idle
	}
	return true
}

// parent is the session whose call this session answers. This session tells the parent which calls wait for people, so that the parent
// shows them too.
type parent struct {
	sessionID, call string
	// lastReport is the latest report to the parent. sent is ready once Temporal has delivered the report or given up.
	lastReport Waiting
	sent       workflow.Future
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
	if !p.earlier && now.same(p.lastReport) {
		return
	}
	now.Seq = following(ctx, p.lastReport.Seq)
	p.sent = now.send(ctx, p.sessionID, p.earlier || now.Idle != p.lastReport.Idle)
	p.lastReport, p.earlier = now, false
}

// handOver returns what the next run must know about the parent. A report that was not delivered before the run ends may be lost. In that
// case the next run reports again.
func (p *parent) handOver() *protocol.ParentCall {
	if p == nil {
		return nil
	}
	reported := p.earlier || !p.lastReport.same(Waiting{}) || p.sent != nil && !p.sent.IsReady()
	return &protocol.ParentCall{SessionID: p.sessionID, Call: p.call, Told: reported}
}
