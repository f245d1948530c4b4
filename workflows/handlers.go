package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig/internal/protocol"
)

// These signals pass between a session and the compositions and sessions that answer its calls. Other programs must not send them.
const (
	// signalWake tells a composition about a decision on one of its calls, or that an event arrived.
	signalWake = "jig.wake"
	// signalYield asks a composition to end in its current state, because another workflow will continue it.
	signalYield = "jig.yield"
	// signalWaiting tells a session which calls wait for a person in the composition or session that answers one of its calls.
	signalWaiting = "jig.waiting"
)

// signals returns the channel of a signal. Temporal's Web UI shows the signal with its description.
func signals(ctx workflow.Context, name string) workflow.ReceiveChannel {
	return workflow.GetSignalChannelWithOptions(ctx, name, workflow.SignalChannelOptions{Description: signalDescription(name)})
}

// internal begins the descriptions of signals that only jig sends. Temporal lists every signal that a workflow receives.
const internal = "Internal: do not send it. "

// signalDescription returns what a signal does, with an example of its input.
func signalDescription(name string) string {
	switch name {
	case protocol.SignalApprove:
		return `Approve a call that waits: {"call":"3.1","by":"ana"}`
	case protocol.SignalDeny:
		return `Deny a call that waits: {"call":"3.1","by":"ana","reason":"not yet"}`
	case protocol.SignalDelegate:
		return `Delegate your decision about a call: {"call":"3.1","by":"ana","to":"carl"}`
	case protocol.SignalAnswer:
		return `Answer a question: {"call":"3.1","by":"ana","value":"eu"}`
	case protocol.SignalReconcile:
		return `Say what became of a call whose outcome is unknown: {"call":"3.1","by":"ana","outcome":"happened"}; or not_happened, or give_up`
	case protocol.SignalMessage:
		return `Send a message to the agent: {"text":"Use the short form","by":"ana"}`
	case protocol.SignalEvent:
		return `Report an event to compositions that wait for it: {"name":"paid","data":{"order":"2026-0042"}}`
	case protocol.SignalSettled:
		return internal + "Says that a call whose outcome was unknown has been settled."
	case signalWaiting:
		return internal + "Says which calls wait for people in a composition or a session that this session started."
	case signalWake:
		return internal + "Says that somebody decided about a step, or that an event arrived."
	case signalYield:
		return internal + "Asks this workflow to end, because another one continues the composition."
	}
	return ""
}

// updateOptions returns the options of an update's handler, with what the update does and an example of its input.
func updateOptions(name string) workflow.UpdateHandlerOptions {
	var text string
	switch name {
	case protocol.UpdateDecide:
		text = `Decide about calls that wait, and learn the outcome: {"call":"3.1","by":"ana","answer":"approve"}; or deny, or delegate`
	case protocol.UpdateReconcile:
		text = `Say what became of a call whose outcome is unknown, and learn whether that counts: {"call":"3.1","by":"ana","outcome":"happened"}`
	case protocol.UpdateAnswer:
		text = `Answer a question, and learn whether the answer counts: {"call":"3.1","by":"ana","value":"eu"}`
	case protocol.UpdateWait:
		text = "Wait until the call has its result or waits for a person, and return its state. It takes no input."
	}
	return workflow.UpdateHandlerOptions{Description: text}
}
