package client

import (
	"github.com/jig-run/jig/internal/protocol"
)

// The messages that a client sends and receives. They have names in this package so that its users need not import another one.
type (
	// CallInput says which tool to run with which input; see [Client.Trigger].
	CallInput = protocol.CallInput
	// CallResult is the state of a single call.
	CallResult = protocol.CallResult
	// DecideResult is the outcome of decisions.
	DecideResult = protocol.DecideResult
	// EventsPage is a part of a session's log, with the session's status.
	EventsPage = protocol.EventsPage
	// PassResult is the outcome of a session.
	PassResult = protocol.PassResult
)

// Signals that the stock Temporal CLI can send to a session.
const (
	SignalApprove   = protocol.SignalApprove
	SignalReconcile = protocol.SignalReconcile
)
