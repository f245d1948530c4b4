package notify

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/notify/outbox"
)

// Waits between attempts.
const (
	// longestWait is the longest wait that a webhook can ask for with Retry-After.
	longestWait = 24 * time.Hour
	// longestRest limits the time for which one failure of a webhook holds back its other messages.
	longestRest = 30 * time.Second
	// unreadableWait is how long a delivery waits when the tenant's settings cannot be read.
	unreadableWait = 30 * time.Second
)

// retryWaits returns how long a delivery waits after its first, second, … failure, as Standard Webhooks suggests. After one more
// failure the delivery is given up.
func retryWaits() []time.Duration {
	return []time.Duration{
		5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
	}
}

// deliver tries a delivery once and stores the outcome. If storing it fails, the delivery is taken again after its lease ends.
func (d *Dispatcher) deliver(ctx context.Context, one outbox.Delivery) {
	attempt := d.attempt(ctx, one)
	settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := d.Outbox.SettleDelivery(settle, one, attempt); err != nil {
		d.tell(settle, slog.LevelWarn, "the outcome of a delivery cannot be stored: the notice may be sent again", one.Notice, slog.Any("error", err))
	} else if d.Counted != nil && !attempt.Held {
		d.Counted(outcome(attempt))
	}
}

func (d *Dispatcher) attempt(ctx context.Context, one outbox.Delivery) outbox.Attempt {
	n := one.Notice
	settings, err := d.Settings(ctx, n.Tenant)
	if err != nil {
		d.warn(ctx, "a notice waits: the settings of its tenant cannot be read", n, err)
		return outbox.Attempt{Status: outbox.StatusPending, Held: true, Error: "the settings of the tenant cannot be read", Wait: unreadableWait}
	}
	receivers := d.receivers(settings)
	at := slices.IndexFunc(receivers, func(r receiver) bool { return r.target == one.Target && r.wants(n.Kind) })
	if at < 0 {
		return outbox.Attempt{Status: outbox.StatusGivenUp, Held: true, Error: "the receiver is no longer in the tenant's settings"}
	}
	begun := d.now()
	err = receivers[at].send(ctx, n)
	took := d.now().Sub(begun)
	if err == nil {
		return outbox.Attempt{Status: outbox.StatusSent}
	}
	if ctx.Err() != nil {
		return outbox.Attempt{Status: outbox.StatusPending, Held: true, Error: "the dispatcher stopped"}
	}
	failure := jig.AsError(err)
	about := []slog.Attr{slog.String("host", receivers[at].host), slog.Int("attempt", one.Attempts+1), slog.String("error", failure.Error())}
	waits := retryWaits()
	switch {
	case failure.Reason == ReasonGone:
		d.tell(ctx, slog.LevelWarn, "a webhook is gone: it gets nothing more until the settings change", n, about...)
		return outbox.Attempt{Status: outbox.StatusGone, Error: failure.Error(), Settings: settings.Version}
	case one.Attempts >= len(waits):
		d.tell(ctx, slog.LevelError, "a notice was given up", n, about...)
		return outbox.Attempt{Status: outbox.StatusGivenUp, Error: failure.Error(), Rest: rest(took, failure.RetryAfter)}
	}
	wait := spread(max(waits[one.Attempts], min(failure.RetryAfter, longestWait)))
	d.tell(ctx, slog.LevelWarn, "a notice was not delivered and will be sent again", n, append(about, slog.Duration("in", wait))...)
	return outbox.Attempt{Status: outbox.StatusPending, Error: failure.Error(), Wait: wait, Rest: rest(took, failure.RetryAfter)}
}

// outcome names how an attempt went, for statistics.
func outcome(a outbox.Attempt) string {
	if a.Status == outbox.StatusPending {
		return "retried"
	}
	return string(a.Status)
}

// spread adds up to a fifth to a wait, so that deliveries that failed together are not retried together.
func spread(wait time.Duration) time.Duration {
	return wait + rand.N(wait/5+1) //nolint:gosec // the jitter needs no cryptographic randomness
}

// rest returns how long a webhook gets no messages after a failure: at least as long as it asked for, and at least twice as long as
// the failure took, but at most longestRest. Without this pause, slow webhooks would take the capacity of other webhooks.
func rest(took, asked time.Duration) time.Duration {
	return min(longestRest, max(2*took, asked))
}
