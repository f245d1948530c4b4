package notify_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/notify"
	"github.com/jig-run/jig/internal/notify/outbox"
	"github.com/jig-run/jig/internal/tenancy"
)

// clock is a clock that the test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// row is a delivery in memory.
type row struct {
	outbox.Delivery
	status outbox.Status
	next   time.Time
	err    string
}

// memoryOutbox is an outbox in memory that uses a test's clock.
type memoryOutbox struct {
	*clock
	mu      sync.Mutex
	waiting map[string]time.Time
	notices []jig.Notice
	rows    []*row
	gone    map[string]string
	// away is the error that every operation returns. mute is the error that only SettleDelivery returns.
	away, mute error
	forgets    int
}

func (o *memoryOutbox) add(list ...jig.Notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range list {
		o.notices = append(o.notices, n)
		o.waiting[n.ID] = o.Now()
	}
}

func (o *memoryOutbox) TakeNotices(_ context.Context, limit int, lease time.Duration) ([]jig.Notice, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var taken []jig.Notice
	for _, n := range o.notices {
		if next, waits := o.waiting[n.ID]; waits && !next.After(o.Now()) && len(taken) < limit {
			o.waiting[n.ID] = o.Now().Add(lease)
			taken = append(taken, n)
		}
	}
	return taken, o.away
}

func (o *memoryOutbox) OpenDeliveries(_ context.Context, tenant, id, settings string, targets []string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.away != nil {
		return o.away
	}
	delete(o.waiting, id)
	at := slices.IndexFunc(o.notices, func(n jig.Notice) bool { return n.ID == id })
	for _, target := range targets {
		if version, gone := o.gone[tenant+target]; !gone || version != settings {
			d := outbox.Delivery{Notice: o.notices[at], Target: target}
			o.rows = append(o.rows, &row{Delivery: d, status: outbox.StatusPending, next: o.Now()})
		}
	}
	return nil
}

func (o *memoryOutbox) TakeDeliveries(_ context.Context, limit, perTenant int, underWay []outbox.Delivery, lease time.Duration) ([]outbox.Delivery, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var taken []outbox.Delivery
	for _, r := range o.rows {
		tenants := 0
		busy := slices.ContainsFunc(append(slices.Clone(underWay), taken...), func(d outbox.Delivery) bool {
			if d.Notice.Tenant == r.Notice.Tenant {
				tenants++
			}
			return d.Notice.Tenant == r.Notice.Tenant && d.Target == r.Target
		})
		if r.status == outbox.StatusPending && !r.next.After(o.Now()) && !busy && tenants < perTenant && len(taken) < limit {
			r.next = o.Now().Add(lease)
			taken = append(taken, r.Delivery)
		}
	}
	return taken, o.away
}

func (o *memoryOutbox) SettleDelivery(_ context.Context, d outbox.Delivery, a outbox.Attempt) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.away != nil || o.mute != nil {
		return cmpError(o.away, o.mute)
	}
	for _, r := range o.rows {
		same := r.Notice.Tenant == d.Notice.Tenant && r.Target == d.Target
		if same && a.Rest > 0 && !r.next.After(o.Now()) {
			r.next = o.Now().Add(a.Rest)
		}
		if same && r.Notice.ID == d.Notice.ID {
			r.status, r.err, r.next = a.Status, a.Error, o.Now().Add(a.Wait)
			if !a.Held {
				r.Attempts++
			}
		}
	}
	if a.Status == outbox.StatusGone {
		o.gone[d.Notice.Tenant+d.Target] = a.Settings
	}
	return nil
}

func cmpError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *memoryOutbox) ForgetNotices(context.Context, time.Duration) (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forgets++
	return 1, o.away
}

// request is a message that a receiver got.
type request struct {
	header http.Header
	body   []byte
}

// receiver is a server that returns prepared answers in order and repeats the last one.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	got     []request
	answers []func(w http.ResponseWriter)
}

func answer(status int, header ...string) func(w http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
	}
}

func newReceiver(t *testing.T, answers ...func(w http.ResponseWriter)) *receiver {
	t.Helper()
	r := &receiver{answers: answers}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		reply := answer(http.StatusNoContent)
		if len(r.answers) > 0 {
			reply = r.answers[min(len(r.got), len(r.answers)-1)]
		}
		r.got = append(r.got, request{q.Header.Clone(), body})
		r.mu.Unlock()
		reply(w)
	}))
	t.Cleanup(r.Close)
	return r
}

// messages returns the messages that the server has received so far.
func (r *receiver) messages() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// secret signs the messages in tests.
const secret = "a secret of more than twenty-four bytes"

func (r *receiver) webhook(kinds ...jig.NoticeKind) tenancy.Webhook {
	return tenancy.Webhook{URL: r.URL + "/hook", Secret: []byte(secret), Events: kinds}
}

// desk is an outbox with its tenants' settings.
type desk struct {
	*memoryOutbox
	log *lockedBuffer

	mu       sync.Mutex
	settings map[string]tenancy.Settings
	broken   error
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newDesk(hooks ...tenancy.Webhook) *desk {
	c := &clock{now: time.Now()}
	return &desk{
		memoryOutbox: &memoryOutbox{clock: c, waiting: map[string]time.Time{}, gone: map[string]string{}},
		log:          &lockedBuffer{},
		settings:     map[string]tenancy.Settings{"acme": {Version: "v1", Webhooks: hooks}},
	}
}

func (d *desk) set(tenant, version string, hooks ...tenancy.Webhook) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settings[tenant] = tenancy.Settings{Version: version, Webhooks: hooks}
}

// dispatcher returns a dispatcher for the desk. It waits at most timeout for an answer; 0 means the default.
func (d *desk) dispatcher(timeout time.Duration) *notify.Dispatcher {
	return &notify.Dispatcher{
		Outbox: d.memoryOutbox,
		Settings: func(_ context.Context, tenant string) (tenancy.Settings, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.settings[tenant], d.broken
		},
		Sender: notify.NewWebhooks(notify.WebhookOptions{Transport: &http.Transport{}, Timeout: timeout, Now: d.Now}),
		Logger: slog.New(slog.NewTextHandler(d.log, nil)),
		Now:    d.Now,
	}
}

// state returns the delivery of a notice.
func (d *desk) state(t *testing.T, id string) row {
	t.Helper()
	d.memoryOutbox.mu.Lock()
	defer d.memoryOutbox.mu.Unlock()
	at := slices.IndexFunc(d.rows, func(r *row) bool { return r.Notice.ID == id })
	require.GreaterOrEqual(t, at, 0, id)
	return *d.rows[at]
}

func step(t *testing.T, d *notify.Dispatcher) int {
	t.Helper()
	n, err := d.Step(t.Context())
	require.NoError(t, err)
	return n
}

// word returns a notice about an approval of the tenant acme.
func word(id string) jig.Notice {
	return jig.Notice{
		ID: id, Tenant: "acme", Kind: jig.NoticeRequested, At: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC),
		Approval: jig.Pending{
			Tenant: "acme", SessionID: "ses_1", Kind: jig.PendingApproval, Call: "3.2", Tool: "payment.refund",
			Input: []byte(`{"amount":120}`), Summary: "refunds 120 EUR", Reasons: []string{"it moves money"}, Digest: "d1",
			RequestedBy: "ana", RequestedAt: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC),
			ExpiresAt: time.Date(2026, 11, 22, 9, 30, 0, 0, time.UTC),
			Terms:     &jig.Terms{Requirements: []jig.Requirement{{Rule: "money/refunds", Approvers: jig.Approvers{Groups: []string{"finance"}}, Quorum: 1}}},
		},
	}
}
