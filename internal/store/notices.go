package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/notify/outbox"
)

// noticeIDForm matches ids that can be used in a webhook's header as they are: signatures join them with dots.
var noticeIDForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// notice queues a notice about an approval. It is stored with the transaction, once per ID, so that running the transaction again adds no
// second notice. Approval must name the session and the call. At defaults to now.
func (t *tx) notice(n jig.Notice) error {
	n.Tenant, n.Approval.Tenant = t.tenant, t.tenant
	switch {
	case n.Kind == "":
		return jig.Errorf(jig.CodeInternal, "a notice has no kind").WithField("kind")
	case n.ID == "":
		return jig.Errorf(jig.CodeInternal, "a notice has no id").WithField("id")
	case n.Approval.SessionID == "" || n.Approval.Call == "":
		return jig.Errorf(jig.CodeInternal, "a notice names no session or no call").WithField("approval")
	case n.At.IsZero():
		n.At = time.Now()
	}
	n.At = n.At.UTC()
	if !noticeIDForm.MatchString(n.ID) {
		sum := sha256.Sum256([]byte(n.ID))
		n.ID = "ntc_" + hex.EncodeToString(sum[:16])
	}
	body, err := encode(n)
	if err != nil {
		return err
	}
	t.queue("NoticeInsert", t.tenant, n.ID, string(n.Kind), n.Approval.SessionID, n.Approval.Call, body)
	return nil
}

// noticeRow is a row of the query NoticesTake.
type noticeRow struct {
	TenantID string
	Body     jig.Notice
}

func (r noticeRow) notice() jig.Notice {
	n := r.Body
	n.Tenant = r.TenantID
	return n
}

// TakeNotices takes up to limit notices of all tenants whose deliveries are not open yet: those that have waited longest, in no
// particular order. Nobody else gets them until the lease ends; [DB.OpenDeliveries] removes them for good.
func (db *DB) TakeNotices(ctx context.Context, limit int, lease time.Duration) ([]jig.Notice, error) {
	rows, err := ask(ctx, db, "", list[noticeRow], "NoticesTake", limit, lease)
	if err != nil {
		return nil, err
	}
	notices := make([]jig.Notice, len(rows))
	for i, r := range rows {
		notices[i] = r.notice()
	}
	return notices, nil
}

// OpenDeliveries opens the delivery of a notice to each target, once, so that [DB.TakeNotices] no longer returns the notice. If a target
// is gone under this version of the settings, its delivery is given up at once.
func (db *DB) OpenDeliveries(ctx context.Context, tenant, notice, settings string, targets []string) error {
	return db.once(ctx, tenant, func(t *tx) {
		t.queue("DeliveriesOpen", tenant, notice, targets, settings)
		t.queue("NoticeOpened", tenant, notice)
	})
}

// deliveryRow is a row of the query DeliveriesTake.
type deliveryRow struct {
	noticeRow

	Target   string
	Attempts int
}

// TakeDeliveries takes up to limit due deliveries of all tenants, in no particular order. For each target it takes the delivery that has
// been due longest, unless underWay, the caller's unfinished deliveries, contains one for that target. A tenant gets at most perTenant
// deliveries, counting those in underWay. Nobody else gets the taken deliveries until the lease ends; [DB.SettleDelivery] records each
// outcome.
func (db *DB) TakeDeliveries(ctx context.Context, limit, perTenant int, underWay []outbox.Delivery, lease time.Duration) ([]outbox.Delivery, error) {
	tenants, targets := make([]string, len(underWay)), make([]string, len(underWay))
	for i, d := range underWay {
		tenants[i], targets[i] = d.Notice.Tenant, d.Target
	}
	rows, err := ask(ctx, db, "", list[deliveryRow], "DeliveriesTake", limit, perTenant, tenants, targets, lease)
	if err != nil {
		return nil, err
	}
	taken := make([]outbox.Delivery, len(rows))
	for i, r := range rows {
		taken[i] = outbox.Delivery{Notice: r.notice(), Target: r.Target, Attempts: r.Attempts}
	}
	return taken, nil
}

// SettleDelivery records the outcome of a delivery that was taken. A sent delivery stays sent, and a delivery that has ended ignores
// later failures.
func (db *DB) SettleDelivery(ctx context.Context, d outbox.Delivery, a outbox.Attempt) error {
	tenant, id, counts := d.Notice.Tenant, d.Notice.ID, 1
	if a.Held {
		counts = 0
	}
	return db.once(ctx, tenant, func(t *tx) {
		switch {
		case a.Status == outbox.StatusSent:
			t.queue("DeliverySent", tenant, id, d.Target)
		case a.Status == outbox.StatusPending && a.Held:
			t.queue("DeliveryHeld", tenant, id, d.Target, text(a.Error), a.Wait)
		case a.Status == outbox.StatusPending:
			t.queue("DeliveryFailed", tenant, id, d.Target, text(a.Error), a.Wait)
		default:
			t.queue("DeliveryEnded", tenant, id, d.Target, string(a.Status), counts, text(a.Error), a.Settings)
		}
		if a.Status == outbox.StatusGone {
			t.queue("DeliveriesEndOf", tenant, d.Target, text(a.Error))
		} else if a.Rest > 0 {
			t.queue("DeliveriesRest", tenant, d.Target, a.Rest)
		}
	})
}

// ForgetNotices deletes up to 1,000 notices of all tenants that are older than age and whose deliveries all ended longer than age
// ago. It returns how many it deleted.
func (db *DB) ForgetNotices(ctx context.Context, age time.Duration) (int64, error) {
	gone, err := ask(ctx, db, "", value[int64], "NoticesForget", age, forgetAtOnce)
	return orZero(gone), err
}

// forgetAtOnce is the maximum number of rows that one statement deletes.
const forgetAtOnce = 1000
