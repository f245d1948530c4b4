package store_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/notify/outbox"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// box is a store on a database of its own, because taking notices affects all tenants.
type box struct {
	*store.DB
	owner, app string
	sessions   map[string]string
}

func newBox(t *testing.T, tenants ...string) box {
	t.Helper()
	b := box{sessions: map[string]string{}}
	b.owner, b.app = storetest.NewDatabase(t)
	b.DB = storetest.Open(t, b.owner, b.app, store.Options{})
	for _, tenant := range tenants {
		b.sessions[tenant] = storetest.Session(t, b.DB, tenant).ID
	}
	return b
}

// notice returns a notice about an approval in a tenant's session.
func (b box) notice(tenant, id string) jig.Notice {
	return jig.Notice{
		ID: id, Kind: jig.NoticeRequested, At: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC),
		Approval: jig.Pending{SessionID: b.sessions[tenant], Kind: jig.PendingApproval, Call: "1.1", Tool: "file.write", Input: []byte(`{"path":"a"}`)},
	}
}

func (b box) add(t *testing.T, tenant string, ids ...string) {
	t.Helper()
	for _, id := range ids {
		require.NoError(t, b.Notice(t.Context(), tenant, false, b.notice(tenant, id)))
	}
}

// open stores notices of a tenant and opens their deliveries to targets.
func (b box) open(t *testing.T, tenant string, targets []string, ids ...string) {
	t.Helper()
	b.add(t, tenant, ids...)
	for _, id := range ids {
		require.NoError(t, b.OpenDeliveries(t.Context(), tenant, id, "v1", targets))
	}
}

// take takes due deliveries and also returns their names as "tenant id target".
func (b box) take(t *testing.T, limit, perTenant int, underWay ...outbox.Delivery) ([]string, []outbox.Delivery) {
	t.Helper()
	list, err := b.TakeDeliveries(t.Context(), limit, perTenant, underWay, time.Minute)
	require.NoError(t, err)
	names := make([]string, len(list))
	for i, d := range list {
		names[i] = strings.Join([]string{d.Notice.Tenant, d.Notice.ID, d.Target}, " ")
	}
	return names, list
}

func (b box) notices(t *testing.T, limit int) []string {
	t.Helper()
	list, err := b.TakeNotices(t.Context(), limit, time.Minute)
	require.NoError(t, err)
	ids := make([]string, len(list))
	for i, n := range list {
		ids[i] = n.ID
	}
	return ids
}

// owns runs a statement for one tenant as the owner of the tables.
func (b box) owns(t *testing.T, tenant, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.owner)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", tenant)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// delivery is the progress of a notice's delivery to a target.
type delivery struct {
	Target, Status string
	Attempts       int
	// NextAt is when a pending delivery is due, or until when a dispatcher has leased it.
	NextAt    time.Time
	LastError string
}

func (b box) deliveries(t *testing.T, tenant, notice string) (list []delivery) {
	t.Helper()
	direct(t, b.app, tenant, func(tx pgx.Tx) {
		rows, err := tx.Query(t.Context(), "select target, status, attempts, next_at, last_error from notice_deliveries where notice_id = $1 order by target", notice)
		require.NoError(t, err)
		list, err = pgx.CollectRows(rows, pgx.RowToStructByName[delivery])
		require.NoError(t, err)
	})
	return list
}

func (b box) state(t *testing.T, tenant, id, target string) delivery {
	t.Helper()
	list := b.deliveries(t, tenant, id)
	for _, s := range list {
		if s.Target == target {
			return s
		}
	}
	require.Fail(t, "there is no delivery", "%s %s", id, target)
	return delivery{}
}

func (b box) settle(t *testing.T, d outbox.Delivery, a outbox.Attempt) {
	t.Helper()
	require.NoError(t, b.SettleDelivery(t.Context(), d, a))
}

func TestNotice_IsStoredOnceWithItsTransaction(t *testing.T) {
	t.Parallel()
	b := newBox(t, "one")
	n := b.notice("one", "ntc_1")
	require.NoError(t, b.Notice(t.Context(), "one", true, n))
	require.Empty(t, b.notices(t, 10), "it was rolled back with its transaction")
	require.NoError(t, b.Notice(t.Context(), "one", false, n, n))
	require.NoError(t, b.Notice(t.Context(), "one", false, n))
	list, err := b.TakeNotices(t.Context(), 10, time.Minute)
	require.NoError(t, err)
	n.Tenant, n.Approval.Tenant = "one", "one"
	require.Equal(t, []jig.Notice{n}, list)

	odd := b.notice("one", "ses_1/1.1/approval.requested/x y")
	odd.At = time.Time{}
	began := clock(t)
	require.NoError(t, b.Notice(t.Context(), "one", false, odd, odd))
	list, err = b.TakeNotices(t.Context(), 10, time.Minute)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Regexp(t, `^ntc_[0-9a-f]{32}$`, list[0].ID)
	requireSince(t, began, 0, list[0].At)

	for field, change := range map[string]func(*jig.Notice){
		"id": func(n *jig.Notice) { n.ID = "" }, "kind": func(n *jig.Notice) { n.Kind = "" },
		"approval": func(n *jig.Notice) { n.Approval.Call = "" },
	} {
		bad := b.notice("one", "ntc_2")
		change(&bad)
		err := b.Notice(t.Context(), "one", false, bad)
		requireCode(t, jig.CodeInternal, err)
		require.Equal(t, field, jig.AsError(err).Field)
	}
}

func TestTakeNotices_LeasesThem(t *testing.T) {
	t.Parallel()
	b := newBox(t, "one", "two")
	b.add(t, "one", "ntc_1")
	b.add(t, "two", "ntc_2", "ntc_3")
	require.Equal(t, []string{"ntc_1"}, b.notices(t, 1), "oldest first")
	require.ElementsMatch(t, []string{"ntc_2", "ntc_3"}, b.notices(t, 10))
	require.Empty(t, b.notices(t, 10), "all are taken")
	require.NoError(t, b.OpenDeliveries(t.Context(), "one", "ntc_1", "v1", nil))
	b.owns(t, "one", "update notices set next_at = next_at - interval '61 seconds'")
	b.owns(t, "two", "update notices set next_at = next_at - interval '61 seconds'")
	require.ElementsMatch(t, []string{"ntc_2", "ntc_3"}, b.notices(t, 10), "their lease has ended")
}

func TestOpenDeliveries_OpensOnce(t *testing.T) {
	t.Parallel()
	b := newBox(t, "one")
	b.open(t, "one", []string{"a", "b"}, "ntc_1")
	names, taken := b.take(t, 10, 10)
	require.ElementsMatch(t, []string{"one ntc_1 a", "one ntc_1 b"}, names)
	for _, d := range taken {
		b.settle(t, d, outbox.Attempt{Status: outbox.StatusSent})
	}
	require.NoError(t, b.OpenDeliveries(t.Context(), "one", "ntc_1", "v1", []string{"a", "b"}))
	names, _ = b.take(t, 10, 10)
	require.Empty(t, names)
	require.NoError(t, b.OpenDeliveries(t.Context(), "one", "ntc_none", "v1", []string{"a"}), "a notice that was erased meanwhile")
}

// One delivery runs per target and a few per tenant, and the oldest are taken first.
func TestTakeDeliveries_IsFair(t *testing.T) {
	t.Parallel()
	b := newBox(t, "one", "two")
	b.open(t, "one", []string{"a", "b", "c"}, "ntc_1", "ntc_2")
	b.open(t, "two", []string{"a"}, "ntc_3", "ntc_4")
	names, first := b.take(t, 10, 2)
	require.ElementsMatch(t, []string{"one ntc_1 a", "one ntc_1 b", "two ntc_3 a"}, names)
	names, _ = b.take(t, 10, 2, first...)
	require.Empty(t, names)
	names, second := b.take(t, 10, 3, first...)
	require.Equal(t, []string{"one ntc_1 c"}, names)
	theirs := slices.IndexFunc(first, func(d outbox.Delivery) bool { return d.Notice.Tenant == "two" })
	b.settle(t, first[theirs], outbox.Attempt{Status: outbox.StatusSent})
	names, _ = b.take(t, 10, 3, append(slices.Delete(first, theirs, theirs+1), second...)...)
	require.Equal(t, []string{"two ntc_4 a"}, names)
	names, _ = b.take(t, 1, 10)
	require.Equal(t, []string{"one ntc_2 a"}, names, "the other dispatcher has no unfinished deliveries")
}

func TestSettleDelivery_RecordsTheOutcome(t *testing.T) {
	t.Parallel()
	b := newBox(t, "one")
	b.open(t, "one", []string{"a"}, "ntc_1")
	_, taken := b.take(t, 10, 10)
	d := taken[0]
	require.Zero(t, d.Attempts)
	require.JSONEq(t, `{"path":"a"}`, string(d.Notice.Approval.Input))
	due := func() {
		b.owns(t, "one", "update notice_deliveries set next_at = clock_timestamp() where status = 'pending'")
		_, taken = b.take(t, 10, 10)
		require.Len(t, taken, 1)
	}

	began := clock(t)
	b.settle(t, d, outbox.Attempt{Status: outbox.StatusPending, Error: "answered 500\x00", Wait: 10 * time.Minute})
	s := b.state(t, "one", "ntc_1", "a")
	require.Equal(t, 1, s.Attempts)
	require.Equal(t, "answered 500\uFFFD", s.LastError)
	requireSince(t, began, 10*time.Minute, s.NextAt)
	names, _ := b.take(t, 10, 10)
	require.Empty(t, names, "it is not due")
	due()
	require.Equal(t, 1, taken[0].Attempts)

	b.settle(t, d, outbox.Attempt{Status: outbox.StatusPending, Held: true, Error: "stopped"})
	require.Equal(t, 1, b.state(t, "one", "ntc_1", "a").Attempts)
	due()

	b.settle(t, d, outbox.Attempt{Status: outbox.StatusSent})
	b.settle(t, d, outbox.Attempt{Status: outbox.StatusPending, Error: "late"})
	b.settle(t, d, outbox.Attempt{Status: outbox.StatusGivenUp, Error: "late"})
	b.settle(t, d, outbox.Attempt{Status: outbox.StatusSent})
	s = b.state(t, "one", "ntc_1", "a")
	require.Equal(t, string(outbox.StatusSent), s.Status)
	require.Equal(t, 2, s.Attempts)
	require.Empty(t, s.LastError)

	b.open(t, "one", []string{"a"}, "ntc_2")
	_, taken = b.take(t, 10, 10)
	b.settle(t, taken[0], outbox.Attempt{Status: outbox.StatusGivenUp, Error: "enough"})
	require.Equal(t, string(outbox.StatusGivenUp), b.state(t, "one", "ntc_2", "a").Status)
	require.Equal(t, 1, b.state(t, "one", "ntc_2", "a").Attempts)
	b.settle(t, taken[0], outbox.Attempt{Status: outbox.StatusSent})
	require.Equal(t, string(outbox.StatusSent), b.state(t, "one", "ntc_2", "a").Status, "another dispatcher delivered it after all")
}

func TestTarget_OtherDeliveriesAreDelayed(t *testing.T) {
	t.Parallel()
	b := newBox(t, "one", "two")
	b.open(t, "one", []string{"a", "b"}, "ntc_1", "ntc_2")
	b.open(t, "two", []string{"a"}, "ntc_3")
	_, taken := b.take(t, 1, 10)
	require.Equal(t, "a", taken[0].Target)
	began := clock(t)
	b.settle(t, taken[0], outbox.Attempt{Status: outbox.StatusPending, Wait: time.Hour, Rest: time.Minute})
	names, _ := b.take(t, 10, 10)
	require.ElementsMatch(t, []string{"one ntc_1 b", "two ntc_3 a"}, names)
	requireSince(t, began, time.Minute, b.state(t, "one", "ntc_2", "a").NextAt)
	requireSince(t, began, time.Hour, b.state(t, "one", "ntc_1", "a").NextAt)
}

func TestSettleDelivery_EndsDeliveriesToAGoneTarget(t *testing.T) {
	t.Parallel()
	b := newBox(t, "one", "two")
	b.open(t, "one", []string{"a", "b"}, "ntc_1", "ntc_2")
	b.open(t, "two", []string{"a"}, "ntc_3")
	_, taken := b.take(t, 1, 10)
	require.Equal(t, "a", taken[0].Target)
	b.settle(t, taken[0], outbox.Attempt{Status: outbox.StatusGone, Error: "answered 410", Settings: "v1"})
	require.Equal(t, string(outbox.StatusGone), b.state(t, "one", "ntc_1", "a").Status)
	require.Equal(t, string(outbox.StatusGivenUp), b.state(t, "one", "ntc_2", "a").Status)
	require.Equal(t, string(outbox.StatusPending), b.state(t, "one", "ntc_2", "b").Status)
	require.Equal(t, string(outbox.StatusPending), b.state(t, "two", "ntc_3", "a").Status)
	b.open(t, "one", []string{"a"}, "ntc_4")
	require.Equal(t, string(outbox.StatusGivenUp), b.state(t, "one", "ntc_4", "a").Status)
	b.add(t, "one", "ntc_5")
	require.NoError(t, b.OpenDeliveries(t.Context(), "one", "ntc_5", "v2", []string{"a"}))
	require.Equal(t, string(outbox.StatusPending), b.state(t, "one", "ntc_5", "a").Status, "the settings have changed")
}

// With concurrent takers, each delivery is taken once.
func TestTakeDeliveries_ConcurrentCallersGetDifferentOnes(t *testing.T) {
	t.Parallel()
	b := newBox(t, "one")
	var targets []string
	for i := range 40 {
		targets = append(targets, fmt.Sprint("t", i))
	}
	b.open(t, "one", targets, "ntc_1")
	taken, errs := make([][]outbox.Delivery, 6), make([]error, 6)
	var wg sync.WaitGroup
	for i := range taken {
		wg.Go(func() {
			for range 10 {
				list, err := b.TakeDeliveries(t.Context(), 8, 100, nil, time.Minute)
				if err != nil {
					errs[i] = err
				}
				taken[i] = append(taken[i], list...)
			}
		})
	}
	wg.Wait()
	times := map[string]int{}
	for i := range taken {
		require.NoError(t, errs[i])
		for _, d := range taken[i] {
			times[d.Target]++
		}
	}
	require.Len(t, times, 40)
	for target, n := range times {
		require.Equal(t, 1, n, target)
	}
}

func TestForgetNotices_DeletesOldOnes(t *testing.T) {
	t.Parallel()
	b := newBox(t, "one", "two")
	b.open(t, "one", []string{"a"}, "ntc_sent", "ntc_late", "ntc_waits")
	b.open(t, "one", nil, "ntc_logged")
	b.open(t, "two", nil, "ntc_theirs", "ntc_young")
	b.add(t, "one", "ntc_fresh")
	for _, id := range []string{"ntc_sent", "ntc_late"} {
		b.settle(t, outbox.Delivery{Notice: jig.Notice{Tenant: "one", ID: id}, Target: "a"}, outbox.Attempt{Status: outbox.StatusSent})
	}
	b.owns(t, "one", "update notices set created_at = now() - interval '8 days'")
	b.owns(t, "two", "update notices set created_at = now() - interval '8 days' where id = 'ntc_theirs'")
	b.owns(t, "one", "update notice_deliveries set ended_at = now() - interval '8 days' where notice_id = 'ntc_sent'")
	for _, want := range []int64{3, 0} {
		gone, err := b.ForgetNotices(t.Context(), 7*24*time.Hour)
		require.NoError(t, err)
		require.Equal(t, want, gone)
	}
	require.ElementsMatch(t, []string{"ntc_fresh", "ntc_late", "ntc_waits"}, b.ids(t, "one"))
	require.ElementsMatch(t, []string{"ntc_young"}, b.ids(t, "two"))
}

// ids lists the notices that the application role sees with a tenant set.
func (b box) ids(t *testing.T, tenant string) (ids []string) {
	t.Helper()
	direct(t, b.app, tenant, func(tx pgx.Tx) {
		rows, err := tx.Query(t.Context(), "select id from notices union all select notice_id from notice_deliveries where notice_id not in (select id from notices)")
		require.NoError(t, err)
		ids, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
	})
	return ids
}

// A tenant that knows every id of another tenant cannot use them.
func TestNotices_AreSeparatedByTenant(t *testing.T) {
	t.Parallel()
	b := newBox(t, "one", "thief")
	b.open(t, "one", []string{"a"}, "ntc_1")
	before := b.state(t, "one", "ntc_1", "a")
	require.Equal(t, []string{"ntc_1"}, b.ids(t, "one"))
	for _, tenant := range []string{"", "thief", jig.GlobalTenant} {
		require.Empty(t, b.ids(t, tenant), tenant)
	}
	require.Empty(t, b.deliveries(t, "thief", "ntc_1"))
	stolen := outbox.Delivery{Notice: jig.Notice{Tenant: "thief", ID: "ntc_1"}, Target: "a"}
	for _, status := range []outbox.Status{outbox.StatusSent, outbox.StatusPending, outbox.StatusGone, outbox.StatusGivenUp} {
		b.settle(t, stolen, outbox.Attempt{Status: status, Wait: time.Hour, Rest: time.Hour})
	}
	require.NoError(t, b.OpenDeliveries(t.Context(), "thief", "ntc_1", "v1", []string{"b"}))
	require.Error(t, b.Notice(t.Context(), "thief", false, b.notice("one", "ntc_2")), "a session of another tenant")
	require.Equal(t, before, b.state(t, "one", "ntc_1", "a"))

	for _, sql := range []string{"delete from notices", "delete from notice_deliveries", "update notices set tenant_id = 'thief'"} {
		direct(t, b.app, "one", func(tx pgx.Tx) {
			_, err := tx.Exec(t.Context(), sql)
			var pg *pgconn.PgError
			require.ErrorAs(t, err, &pg, sql)
			require.Equal(t, "42501", pg.Code, sql)
		})
	}
	direct(t, b.app, "thief", func(tx pgx.Tx) {
		_, err := tx.Exec(t.Context(), "select set_config('jig.sweep', 'on', true)")
		require.NoError(t, err)
		var n int
		require.NoError(t, tx.QueryRow(t.Context(), "select count(*) from notices").Scan(&n))
		require.Zero(t, n, "the setting jig.sweep works only for the owner")
	})
}

func TestNotices_AreDeletedWithTheirSession(t *testing.T) {
	t.Parallel()
	b := newBox(t, "one", "two")
	b.open(t, "one", []string{"a"}, "ntc_1")
	b.open(t, "two", []string{"a"}, "ntc_2")
	require.NoError(t, b.CancelSession(t.Context(), ledger.End{Tenant: "one", SessionID: b.sessions["one"]}))
	n, err := b.PruneTenant(t.Context(), "one", time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, int64(1), n)
	require.NoError(t, b.EraseTenant(t.Context(), "two"))
	for _, tenant := range []string{"one", "two"} {
		require.Empty(t, b.ids(t, tenant))
	}
}

// Opening and deciding an approval leave notices.
func TestApprovals_CreateNotices(t *testing.T) {
	t.Parallel()
	b := newBox(t, "one")
	w := world{DB: b.DB, tenant: "one", session: b.sessions["one"]}
	w.begin(t, 1)
	c := w.asking(t)
	next := func(kind jig.NoticeKind) jig.Notice {
		list, err := b.TakeNotices(t.Context(), 10, time.Minute)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, kind, list[0].Kind)
		return list[0]
	}
	requested := next(jig.NoticeRequested)
	require.Equal(t, c.ID, requested.Approval.Call)
	require.Equal(t, w.session, requested.Approval.SessionID)
	w.decide(t, "k", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})
	require.Equal(t, jig.CallReserved, next(jig.NoticeDecided).Status)

	w.reserve(t, c)
	require.Equal(t, ledger.ReserveUnknown, w.reserve(t, c).Outcome)
	require.Equal(t, jig.PendingReconcile, next(jig.NoticeRequested).Approval.Kind)
	w.reconcile(t, "r", jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeHappened, By: "ben"})
	known := next(jig.NoticeDecided)
	require.Equal(t, jig.PendingReconcile, known.Approval.Kind)
	require.Equal(t, []string{"succeeded", "ben", "happened"}, []string{string(known.Status), known.By, known.Reason})
}
