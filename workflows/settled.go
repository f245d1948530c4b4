package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
)

// listenSettled receives the signals which say that a call changed without this workflow: it was settled late, or others may decide it now, or nobody.
func (b *callTable) listenSettled(ctx workflow.Context) {
	for channel := signals(ctx, protocol.SignalSettled); ; {
		var settled protocol.Settlement
		channel.Receive(ctx, &settled)
		workflow.GoNamed(ctx, "settled "+settled.Call, func(ctx workflow.Context) { b.look(ctx, settled.Call) })
	}
}

// look waits until this run considers a call unknown or waits for people, and then reads the state of the call. The signal may arrive while the
// attempt that made the call unknown has not returned yet. Anybody can send the signal, so look reads the state from the store.
func (b *callTable) look(ctx workflow.Context, id string) {
	var c *call
	open := func() bool {
		c = b.find(id)
		return c != nil && !c.running && (c.ref.State == jig.CallUnknown || c.ref.State == jig.CallWaiting)
	}
	if workflow.Await(ctx, open) != nil {
		return
	}
	var a *activities.Activities
	var ran activities.Ran
	err := workflow.ExecuteLocalActivity(databaseOptions(ctx), a.Standing, activities.RunInput{SessionRef: b.ref, Call: id}).Get(ctx, &ran)
	if err != nil {
		workflow.GetLogger(ctx).Error("a settled call could not be read", "call", id, "error", err.Error())
		return
	}
	if open() && (ran.State.Final() || ran.Ask != nil) {
		b.ran(ctx, c, ran, nil)
	}
}
