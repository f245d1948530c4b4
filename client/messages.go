package client

import "github.com/jig-run/jig/workflows"

// The messages that a client gives and takes, under names of this package, so that its users need no other.
type (
	// CallInput says which tool to run and on what; see Trigger.
	CallInput = workflows.CallInput
	// CallResult is where a single call stands.
	CallResult = workflows.CallResult
	// DecideResult says what became of decisions.
	DecideResult = workflows.DecideResult
	// EventsPage is a piece of a session's log, with the session's status.
	EventsPage = workflows.EventsPage
	// PassResult is how a session ended.
	PassResult = workflows.PassResult
)

// Signals that the stock Temporal CLI can send to a session.
const (
	SignalApprove   = workflows.SignalApprove
	SignalReconcile = workflows.SignalReconcile
)
