package notify

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/notify/outbox"
	"github.com/jig-run/jig/internal/tenancy"
)

// Intervals and limits of a dispatcher.
const (
	// pollEvery is the interval at which the outbox is checked while no delivery finishes.
	pollEvery = time.Second
	// maxDeliveries limits the deliveries that run at the same time, and perTenant limits those of one tenant.
	maxDeliveries, perTenant = 8, 4
	// openAtOnce is the maximum number of notices whose deliveries are opened in one step.
	openAtOnce = 64
	// lease is the time after which notices and deliveries of a dead dispatcher can be taken again. It is longer than sending a message
	// can take.
	lease = time.Minute
	// settleTimeout limits storing the outcome of a delivery, even while the dispatcher stops.
	settleTimeout = 10 * time.Second
	// forgetAfter is how long finished notices are kept, and forgetEvery is the interval at which old ones are deleted.
	forgetAfter, forgetEvery = 7 * 24 * time.Hour, time.Hour
)

// Outbox stores notices until they are delivered. Several dispatchers may share an outbox.
type Outbox interface {
	// TakeNotices takes notices whose deliveries are not open yet. No other dispatcher gets them until the lease ends.
	TakeNotices(ctx context.Context, limit int, lease time.Duration) ([]jig.Notice, error)
	// OpenDeliveries opens the delivery of a notice to each target, once. It skips targets that are gone under this version of the
	// settings.
	OpenDeliveries(ctx context.Context, tenant, notice, settings string, targets []string) error
	// TakeDeliveries takes due deliveries, one for each target without an unfinished delivery in unfinished, and at most perTenant for a
	// tenant including those in unfinished. No other dispatcher gets them until the lease ends.
	TakeDeliveries(ctx context.Context, limit, perTenant int, unfinished []outbox.Delivery, lease time.Duration) ([]outbox.Delivery, error)
	// SettleDelivery stores the outcome of a delivery that was taken.
	SettleDelivery(ctx context.Context, d outbox.Delivery, a outbox.Attempt) error
	// ForgetNotices deletes up to 1,000 finished notices that are older than age, and returns the number of deleted notices.
	ForgetNotices(ctx context.Context, age time.Duration) (int64, error)
}

// Dispatcher takes notices from an outbox, logs them and sends them to the webhooks of their tenant. It retries a failing webhook
// without delaying other webhooks or other tenants. Several dispatchers may share an outbox. Set the fields before the first use, and
// do not copy a Dispatcher.
type Dispatcher struct {
	// Outbox stores the notices to be sent. Required.
	Outbox Outbox
	// Settings returns a tenant's current settings. Required. While they cannot be read, the tenant's notices wait.
	Settings func(ctx context.Context, tenant string) (tenancy.Settings, error)
	// Sender sends notices to webhooks. Required.
	Sender Sender
	// Messenger writes to mailboxes and chats. May be nil: then messages wait, and are given up after the last attempt.
	Messenger *Messenger
	// Counted is called with the outcome of each delivery once it is stored: sent, retried, given_up or gone. The default is no call.
	Counted func(outcome string)
	// Logger gets one line per notice (info), and all failures. Default: slog.Default().
	Logger *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time

	mu         sync.Mutex
	unfinished []outbox.Delivery
	cleared    time.Time
}

// Run sends the notices in the outbox, including those added later, until ctx ends. It then aborts messages that are being sent; they
// are delivered again later. If the outbox cannot be reached, Run keeps trying.
func (d *Dispatcher) Run(ctx context.Context) {
	freed := make(chan struct{}, 1)
	var running sync.WaitGroup
	defer running.Wait()
	away := false
	for ctx.Err() == nil {
		_, more, err := d.begin(ctx, &running, freed)
		if err != nil && !away && ctx.Err() == nil {
			d.logger().WarnContext(ctx, "notices cannot be sent for now", slog.Any("error", err))
		} else if err == nil && away {
			d.logger().InfoContext(ctx, "notices are sent again")
		}
		away = err != nil
		if more && err == nil {
			continue
		}
		timer := time.NewTimer(pollEvery)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-freed:
		}
		timer.Stop()
	}
}

// Step does one round of Run and waits for the deliveries that it started. It returns the number of deliveries that it tried.
func (d *Dispatcher) Step(ctx context.Context) (int, error) {
	var running sync.WaitGroup
	n, _, err := d.begin(ctx, &running, nil)
	running.Wait()
	return n, err
}

// begin opens the deliveries of new notices and starts due deliveries as far as capacity allows. Every delivery that ends sends on
// freed. more says that the deliveries of further notices are still to be opened.
func (d *Dispatcher) begin(ctx context.Context, running *sync.WaitGroup, freed chan<- struct{}) (n int, more bool, err error) {
	notices, err := d.Outbox.TakeNotices(ctx, openAtOnce, lease)
	if err != nil {
		return 0, false, err
	}
	for _, notice := range notices {
		d.open(ctx, notice)
	}
	more = len(notices) == openAtOnce
	d.mu.Lock()
	unfinished := slices.Clone(d.unfinished)
	d.mu.Unlock()
	var taken []outbox.Delivery
	if room := maxDeliveries - len(unfinished); room > 0 {
		if taken, err = d.Outbox.TakeDeliveries(ctx, room, perTenant, unfinished, lease); err != nil {
			return 0, more, err
		}
	}
	for _, delivery := range taken {
		d.enter(delivery)
		running.Go(func() {
			d.deliver(ctx, delivery)
			d.leave(delivery)
			select {
			case freed <- struct{}{}:
			default: // a signal is already pending, or nobody listens
			}
		})
	}
	return len(taken), more, d.forget(ctx)
}

// open logs a notice and opens its deliveries. If that fails, the notice is taken again after its lease ends.
func (d *Dispatcher) open(ctx context.Context, n jig.Notice) {
	settings, err := d.Settings(ctx, n.Tenant)
	if err != nil {
		d.warn(ctx, "a notice waits: the settings of its tenant cannot be read", n, err)
		return
	}
	Log(d.logger())(ctx, n)
	var targets []string
	for _, r := range d.receivers(settings) {
		if r.wants(n.Kind) && !slices.Contains(targets, r.target) {
			targets = append(targets, r.target)
		}
	}
	if err := d.Outbox.OpenDeliveries(ctx, n.Tenant, n.ID, settings.Version, targets); err != nil {
		d.warn(ctx, "a notice waits: its deliveries cannot be opened", n, err)
	}
}

func (d *Dispatcher) enter(one outbox.Delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unfinished = append(d.unfinished, one)
}

func (d *Dispatcher) leave(one outbox.Delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unfinished = slices.DeleteFunc(d.unfinished, func(o outbox.Delivery) bool {
		return o.Notice.Tenant == one.Notice.Tenant && o.Notice.ID == one.Notice.ID && o.Target == one.Target
	})
}

// forget deletes old notices from time to time.
func (d *Dispatcher) forget(ctx context.Context) error {
	now := d.now()
	d.mu.Lock()
	due := now.Sub(d.cleared) >= forgetEvery
	if due {
		d.cleared = now
	}
	d.mu.Unlock()
	if !due {
		return nil
	}
	gone, err := d.Outbox.ForgetNotices(ctx, forgetAfter)
	if gone > 0 {
		d.logger().InfoContext(ctx, "old notices are deleted", slog.Int64("notices", gone))
	}
	return err
}

func (d *Dispatcher) warn(ctx context.Context, message string, n jig.Notice, err error) {
	if ctx.Err() == nil {
		d.log(ctx, slog.LevelWarn, message, n, slog.Any("error", err))
	}
}

func (d *Dispatcher) log(ctx context.Context, level slog.Level, message string, n jig.Notice, more ...slog.Attr) {
	d.logger().LogAttrs(ctx, level, message, append(about(n), more...)...) //nolint:sloglint // the callers' messages are static
}

func (d *Dispatcher) logger() *slog.Logger {
	if d.Logger == nil {
		return slog.Default()
	}
	return d.Logger
}

func (d *Dispatcher) now() time.Time {
	if d.Now == nil {
		return time.Now()
	}
	return d.Now()
}

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
		d.log(settle, slog.LevelWarn, "the outcome of a delivery cannot be stored: the notice may be sent again", one.Notice, slog.Any("error", err))
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
		d.log(ctx, slog.LevelWarn, "a webhook is gone: it gets nothing more until the settings change", n, about...)
		return outbox.Attempt{Status: outbox.StatusGone, Error: failure.Error(), Settings: settings.Version}
	case one.Attempts >= len(waits):
		d.log(ctx, slog.LevelError, "a notice was given up", n, about...)
		return outbox.Attempt{Status: outbox.StatusGivenUp, Error: failure.Error(), Rest: rest(took, failure.RetryAfter)}
	}
	wait := spread(max(waits[one.Attempts], min(failure.RetryAfter, longestWait)))
	d.log(ctx, slog.LevelWarn, "a notice was not delivered and will be sent again", n, append(about, slog.Duration("in", wait))...)
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

// Log returns a function that writes one line per notice, at level info.
func Log(logger *slog.Logger) func(ctx context.Context, n jig.Notice) {
	return func(ctx context.Context, n jig.Notice) {
		attrs := append(about(n), slog.String("tool", n.Approval.Tool), slog.String("approvers", approvers(n)))
		if n.Status != "" {
			attrs = append(attrs, slog.String("status", string(n.Status)), slog.String("by", n.By))
		}
		logger.LogAttrs(ctx, slog.LevelInfo, "notice", attrs...)
	}
}

// about returns the log attributes that identify a notice.
func about(n jig.Notice) []slog.Attr {
	return []slog.Attr{
		slog.String("tenant", n.Tenant), slog.String("kind", string(n.Kind)), slog.String("session", n.Approval.SessionID),
		slog.String("call", n.Approval.Call), slog.String("notice", n.ID),
	}
}

// approvers describes the approvers that a notice names, or else those that the approval's terms require.
func approvers(n jig.Notice) string {
	if n.Approvers != nil {
		return n.Approvers.String()
	}
	var list []string
	if n.Approval.Terms != nil {
		for _, r := range n.Approval.Terms.Requirements {
			list = append(list, r.Approvers.String())
		}
	}
	if len(list) == 0 {
		return jig.Approvers{}.String()
	}
	return strings.Join(list, "; and ")
}
