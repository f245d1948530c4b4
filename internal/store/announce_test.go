package store_test

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// silent is a period that no test reaches, so that nothing finds events by polling.
const silent = time.Hour

// audience is a database in which nobody else listens, with one session.
type audience struct {
	ownerURL, appURL string
	tenant, session  string
}

func newAudience(t *testing.T) audience {
	t.Helper()
	a := audience{tenant: storetest.Tenant(t)}
	a.ownerURL, a.appURL = storetest.NewDatabase(t)
	db := a.open(t, store.Options{})
	a.session = storetest.Session(t, db, a.tenant).ID
	db.Close()
	a.requireListeners(t, a.connect(t), 0) // a connection is gone a moment after it was closed
	return a
}

// open opens the database as another process would. Unless the options say otherwise, it does not poll.
func (a audience) open(t *testing.T, o store.Options) *store.DB {
	t.Helper()
	if o.PollEvery == 0 {
		o.PollEvery = silent
	}
	o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	return storetest.Open(t, a.ownerURL, a.appURL, o)
}

// append appends an event and returns its number.
func (a audience) append(t *testing.T, db *store.DB) int64 {
	t.Helper()
	require.NoError(t, db.AppendEvents(t.Context(), a.tenant, a.session, jig.Event{Type: "custom.x"}))
	found, err := db.Events(t.Context(), a.tenant, a.session, 0, 0)
	require.NoError(t, err)
	return found[len(found)-1].Seq
}

// connect opens a connection as the application's role.
func (a audience) connect(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), a.appURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// overhear returns a function that returns how often the session was announced since the last call.
func (a audience) overhear(t *testing.T) func() int {
	t.Helper()
	heard := a.listen(t, "jig_events")
	return func() int { return strings.Count(strings.Join(heard(), ""), a.session) }
}

// listen returns a function that returns the notifications on a channel since the last call. Its connection listens without holding a lock,
// so that it does not count as a listener.
func (a audience) listen(t *testing.T, channel string) func() []string {
	t.Helper()
	conn, other := a.connect(t), a.connect(t)
	_, err := conn.Exec(t.Context(), "listen "+channel)
	require.NoError(t, err)
	return func() (payloads []string) {
		_, err := other.Exec(t.Context(), "select pg_notify($1, 'that is all')", channel)
		require.NoError(t, err)
		for {
			heard, err := conn.WaitForNotification(patient(t))
			require.NoError(t, err)
			if heard.Payload == "that is all" {
				return payloads
			}
			payloads = append(payloads, heard.Payload)
		}
	}
}

// listeners returns the backends of the connections that count as listeners.
func (a audience) listeners(t *testing.T, conn *pgx.Conn) []uint32 {
	t.Helper()
	rows, err := conn.Query(t.Context(), `select pid from pg_locks where locktype = 'advisory' and mode = 'ShareLock' and granted
		and database = (select oid from pg_database where datname = current_database()) order by pid`)
	require.NoError(t, err)
	pids, err := pgx.CollectRows(rows, pgx.RowTo[uint32])
	require.NoError(t, err)
	return pids
}

// requireListeners waits until there are n listeners and returns their backends.
func (a audience) requireListeners(t *testing.T, conn *pgx.Conn, n int) (pids []uint32) {
	t.Helper()
	require.Eventually(t, func() bool {
		pids = a.listeners(t, conn)
		return len(pids) == n
	}, 2*time.Minute, 5*time.Millisecond)
	return pids
}

// wait waits for events after a number.
func (a audience) wait(ctx context.Context, db *store.DB, after int64) <-chan waited {
	return waitFor(ctx, db, world{tenant: a.tenant, session: a.session}, after)
}

// requireEvent waits for the event with a number.
func requireEvent(t *testing.T, c <-chan waited, seq int64) {
	t.Helper()
	got := <-c
	require.NoError(t, got.err)
	require.NotEmpty(t, got.events)
	require.Equal(t, seq, got.events[0].Seq)
}

func TestAnnouncements_NoneWhileNobodyListens(t *testing.T) {
	t.Parallel()
	a := newAudience(t)
	announced := a.overhear(t)
	db := a.open(t, store.Options{})
	for range 3 {
		a.append(t, db)
	}
	db.Close() // announces what is waiting
	require.Zero(t, announced())
}

// The watchers of a process hear of its commits without announcements.
func TestAnnouncements_NoneForTheOwnWatchers(t *testing.T) {
	t.Parallel()
	a := newAudience(t)
	announced, conn := a.overhear(t), a.connect(t)
	db := a.open(t, store.Options{AskEvery: time.Nanosecond})
	seq := a.append(t, db)
	waiting := a.wait(patient(t), db, seq)
	a.requireListeners(t, conn, 1)
	requireWatching(t, db, world{tenant: a.tenant, session: a.session}, 1)
	for range 20 { // while the connection listens, so that the process would announce if it took itself for another
		a.append(t, db)
	}
	requireEvent(t, waiting, seq+1)
	db.Close()
	require.Zero(t, announced())
}

// A process that starts to listen after others have committed receives what they commit from then on, and so do all listeners.
func TestAnnouncements_ReachLaterListeners(t *testing.T) {
	t.Parallel()
	a := newAudience(t)
	ctx, conn := patient(t), a.connect(t)
	db := a.open(t, store.Options{})
	seq := a.append(t, db)
	var waiting []<-chan waited
	for n := range 2 {
		waiting = append(waiting, a.wait(ctx, a.open(t, store.Options{}), seq))
		a.requireListeners(t, conn, n+1)
	}
	seq = a.append(t, db)
	for _, c := range waiting {
		requireEvent(t, c, seq)
	}
}

// If the connection that listens is lost, the process reads what it has missed, listens again, and counts as a listener again.
func TestAnnouncements_SurviveALostConnection(t *testing.T) {
	t.Parallel()
	a := newAudience(t)
	ctx, conn := patient(t), a.connect(t)
	db, listener := a.open(t, store.Options{}), a.open(t, store.Options{})
	seq := a.append(t, db)
	waiting := a.wait(ctx, listener, seq)
	before := a.requireListeners(t, conn, 1)
	_, err := conn.Exec(ctx, "select pg_terminate_backend($1::int)", before[0])
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		now := a.listeners(t, conn)
		return len(now) == 1 && now[0] != before[0]
	}, 2*time.Minute, 5*time.Millisecond)
	announced := a.overhear(t)
	seq = a.append(t, db)
	requireEvent(t, waiting, seq)
	require.Eventually(t, func() bool { return announced() > 0 }, 2*time.Minute, 5*time.Millisecond)
}

// What could not be announced is announced later.
func TestAnnouncements_AreRepeatedAfterFailures(t *testing.T) {
	t.Parallel()
	a := newAudience(t)
	announcer := a
	announcer.appURL = withName(t, a.appURL, "announcer")
	ctx, conn := patient(t), a.connect(t)
	db, listener := announcer.open(t, store.Options{NotifyEvery: 500 * time.Millisecond}), a.open(t, store.Options{})
	waiting := a.wait(ctx, listener, a.append(t, db))
	a.requireListeners(t, conn, 1)
	seq := a.append(t, db)
	requireEvent(t, waiting, seq) // the next announcement comes half a second later
	waiting = a.wait(ctx, listener, seq)
	seq = a.append(t, db)
	_, err := conn.Exec(ctx, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'announcer'")
	require.NoError(t, err)
	requireEvent(t, waiting, seq)
}

// withName adds the name of the application to the address of a database.
func withName(t *testing.T, address, name string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	q := u.Query()
	q.Set("application_name", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// A process whose watchers have left stops listening after a while, so that others need not announce; a new watcher listens again.
func TestAnnouncements_EndWhenTheWatchersHaveLeft(t *testing.T) {
	t.Parallel()
	a := newAudience(t)
	ctx, conn := patient(t), a.connect(t)
	db, listener := a.open(t, store.Options{}), a.open(t, store.Options{ListenIdle: 20 * time.Millisecond})
	seq := a.append(t, db)
	for range 2 {
		waiting := a.wait(ctx, listener, seq)
		a.requireListeners(t, conn, 1)
		seq = a.append(t, db)
		requireEvent(t, waiting, seq)
		a.requireListeners(t, conn, 0)
	}
}

// A watcher that stays keeps the connection, however long nothing is announced.
func TestAnnouncements_StayWhileSomebodyWatches(t *testing.T) {
	t.Parallel()
	a := newAudience(t)
	ctx, conn := patient(t), a.connect(t)
	db, listener := a.open(t, store.Options{}), a.open(t, store.Options{ListenIdle: time.Millisecond})
	seq := a.append(t, db)
	waiting := a.wait(ctx, listener, seq)
	pids := a.requireListeners(t, conn, 1)
	for range 20 { // more than the idle time passes
		require.Equal(t, pids, a.listeners(t, conn))
	}
	seq = a.append(t, db)
	requireEvent(t, waiting, seq)
}
