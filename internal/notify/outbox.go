package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/tenancy"
)

// Outbox stores notices until they are delivered. Several dispatchers may share an outbox.
type Outbox interface {
	// TakeNotices takes notices whose deliveries are not open yet. No other dispatcher gets them until the lease ends.
	TakeNotices(ctx context.Context, limit int, lease time.Duration) ([]jig.Notice, error)
	// OpenDeliveries opens the delivery of a notice to each target, once. It skips targets that are gone under this version of the
	// settings.
	OpenDeliveries(ctx context.Context, tenant, notice, settings string, targets []string) error
	// TakeDeliveries takes due deliveries, one for each target without an unfinished delivery in underWay, and at most perTenant for a
	// tenant including those in underWay. No other dispatcher gets them until the lease ends.
	TakeDeliveries(ctx context.Context, limit, perTenant int, underWay []Delivery, lease time.Duration) ([]Delivery, error)
	// SettleDelivery stores the outcome of a delivery that was taken.
	SettleDelivery(ctx context.Context, d Delivery, a Attempt) error
	// ForgetNotices deletes up to 1,000 finished notices that are older than age, and returns the number of deleted notices.
	ForgetNotices(ctx context.Context, age time.Duration) (int64, error)
}

// Delivery is a notice to be delivered to one target.
type Delivery struct {
	Notice jig.Notice
	// Target identifies the webhook; see the function Target.
	Target string
	// Attempts is the number of failed attempts.
	Attempts int
}

// Status is the state of a delivery.
type Status string

// The states of a delivery. Gone means that the target does not want further notices.
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

// Target identifies a webhook by a hash of its address (32 hex digits), so that a new secret does not change it.
func Target(w tenancy.Webhook) string {
	sum := sha256.Sum256([]byte(w.URL))
	return hex.EncodeToString(sum[:16])
}

// outcome names how an attempt went, for statistics.
func (a Attempt) outcome() string {
	if a.Status == StatusPending {
		return "retried"
	}
	return string(a.Status)
}
