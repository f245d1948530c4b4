package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
)

// listenSettled receives the signals which say that a call was settled late. This run may consider such a call unknown.
func (b *callTable) listenSettled(ctx workflow.Context) {
	for channel := signals(ctx, protocol.SignalSettled); ; {
		var settled protocol.Settlement
		channel.Receive(ctx, &settled)
		workflow.GoNamed(ctx, "settled "+settled.Call, func(ctx workflow.Context) { b.look(ctx, settled.Call) })
	}
}

// look waits until this run considers a call unknown, and then reads how the call ended. The signal may arrive while the attempt that made
// the call unknown has not returned yet. Anybody can send the signal, so look reads the state from the store.
func (b *callTable) look(ctx workflow.Context, id string) {
	var c *call
	unknown := func() bool {
		c = b.find(id)
		return c != nil && !c.running && c.ref.State == jig.CallUnknown
	}
	if workflow.Await(ctx, unknown) != nil {
		return
	}
	var a *activities.Activities
	var ran activities.Ran
	err := workflow.ExecuteLocalActivity(databaseOptions(ctx), a.Standing, activities.RunInput{SessionRef: b.ref, Call: id}).Get(ctx, &ran)
	if err != nil {
		workflow.GetLogger(ctx).Error("a settled call could not be read", "call", id, "error", err.Error())
		return
	}
	if ran.State.Final() && c.ref.State == jig.CallUnknown {
		b.ran(ctx, c, ran, nil)
	}
}
