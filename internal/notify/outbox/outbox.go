// Package outbox has the deliveries of notices, as the store keeps them and package notify makes them.
package outbox

import (
	"time"

	"github.com/jig-run/jig"
)

// Delivery is a notice to be delivered to one target.
type Delivery struct {
	Notice jig.Notice
	// Target identifies the receiver: a hash of its address.
	Target string
	// Attempts is the number of failed attempts.
	Attempts int
}

// Status is the state of a delivery.
type Status string

// The states of a delivery. Gone means that the target wants no more notices; it also ends all other open deliveries to the target.
const (
	StatusPending Status = "pending"
	StatusSent    Status = "sent"
	StatusGivenUp Status = "given_up"
	StatusGone    Status = "gone"
)

// Attempt is the outcome of one attempt at a delivery.
type Attempt struct {
	// Status is the delivery's new status; a pending delivery is tried again.
	Status Status
	// Held says that nothing was sent, so it does not count as an attempt.
	Held bool
	// Error says what went wrong, for people.
	Error string
	// Wait is the time until the next attempt.
	Wait time.Duration
	// Rest is how long the target's other due deliveries wait. The default is no wait.
	Rest time.Duration
	// Settings is the version of the settings under which the target is gone.
	Settings string
}
