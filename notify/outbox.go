package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/jig-run/jig"
)

// Outbox is where notices wait. Several dispatchers may share one.
type Outbox interface {
	// TakeNotices takes notices whose deliveries are not open yet; nobody else gets them before the lease is over.
	TakeNotices(ctx context.Context, limit int, lease time.Duration) ([]jig.Notice, error)
	// OpenDeliveries opens the delivery of a notice to each target, once. A target that is gone under this version of the
	// settings gets none.
	OpenDeliveries(ctx context.Context, tenant, notice, settings string, targets []string) error
	// TakeDeliveries takes deliveries that are due: one for each target that has none under way, of a tenant at most perTenant,
	// those under way included; nobody else gets them before the lease is over.
	TakeDeliveries(ctx context.Context, limit, perTenant int, underWay []Delivery, lease time.Duration) ([]Delivery, error)
	// SettleDelivery writes down what became of a delivery that was taken.
	SettleDelivery(ctx context.Context, d Delivery, a Attempt) error
	// ForgetNotices deletes notices older than age that nothing is to be done for, a thousand at most, and returns how many.
	ForgetNotices(ctx context.Context, age time.Duration) (int64, error)
}

// Delivery is a notice on its way to one target.
type Delivery struct {
	Notice jig.Notice
	// Target names the webhook; see the function Target.
	Target string
	// Attempts is how many failed before.
	Attempts int
}

// Status is where a delivery stands.
type Status string

// The states of a delivery. Gone is a target that wants to hear nothing any more.
const (
	StatusPending Status = "pending"
	StatusSent    Status = "sent"
	StatusGivenUp Status = "given_up"
	StatusGone    Status = "gone"
)

// Attempt is what became of one attempt at a delivery.
type Attempt struct {
	// Status is where the delivery stands now; pending ones are tried again.
	Status Status
	// Held says that nothing was tried: it does not count as an attempt.
	Held bool
	// Error says what went wrong, for people.
	Error string
	// Wait is how long until it is tried again.
	Wait time.Duration
	// Rest is how long everything else that is due for the target waits, too; zero: not at all.
	Rest time.Duration
	// Settings is the version of the settings that a target is gone under.
	Settings string
}

// Target names a webhook by its address, so that a new secret changes nothing: 32 hexadecimal digits.
func Target(w jig.Webhook) string {
	sum := sha256.Sum256([]byte(w.URL))
	return hex.EncodeToString(sum[:16])
}
