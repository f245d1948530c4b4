package workflows

// These signals pass between a session and the compositions and sessions that answer its calls. Other programs must not send them.
const (
	// signalWake tells a composition about a decision on one of its calls, or that an event arrived.
	signalWake = "jig.wake"
	// signalYield asks a composition to end in its current state, because another workflow will continue it.
	signalYield = "jig.yield"
	// signalWaiting tells a session which calls wait for a person in the composition or session that answers one of its calls.
	signalWaiting = "jig.waiting"
)
