package store_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// tenantEvents reads the events after a cursor, all pages, once there are as many as wanted.
func tenantEvents(t *testing.T, db *store.DB, tenant, after string, wanted int) (types []jig.EventType, next string) {
	t.Helper()
	var page protocol.TenantEvents
	require.Eventually(t, func() bool {
		var err error
		page, err = db.TenantEvents(t.Context(), tenant, after, 1000)
		require.NoError(t, err)
		return len(page.Events) >= wanted
	}, time.Minute, 20*time.Millisecond, "tests that run at the same time may hold transactions open for a while")
	for _, e := range page.Events {
		types = append(types, e.Type)
	}
	return types, page.Next
}

func TestTenantEvents_AreThoseThatConcernPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begin, err := w.TenantEvents(t.Context(), w.tenant, "", 0)
	require.NoError(t, err)
	require.Empty(t, begin.Events, "without a cursor there is only the present one")
	require.NoError(t, w.AppendEvents(t.Context(), w.tenant, w.session,
		jig.Event{Type: jig.EventToolStarted, CallID: "1.1"}, jig.Event{Type: jig.EventToolNeedsApproval, CallID: "1.1"}, jig.Event{Type: jig.EventToolApproved, CallID: "1.1"}))
	types, next := tenantEvents(t, w.DB, w.tenant, begin.Next, 2)
	require.Equal(t, []jig.EventType{jig.EventToolNeedsApproval, jig.EventToolApproved}, types[len(types)-2:])
	require.NotContains(t, types, jig.EventToolStarted)
	page, err := w.TenantEvents(t.Context(), w.tenant, next, 0)
	require.NoError(t, err)
	require.Empty(t, page.Events)
	require.Equal(t, next, page.Next)

	server := storetest.Server(t)
	again, _ := tenantEvents(t, server, w.tenant, begin.Next, 2)
	require.Equal(t, types, again, "the server reads them, too")
	_, err = server.TenantEvents(t.Context(), "other-"+w.tenant[:20], begin.Next, 0)
	requireCode(t, jig.CodeInvalidInput, err)
	_, err = w.TenantEvents(t.Context(), w.tenant, "nonsense", 0)
	requireCode(t, jig.CodeInvalidInput, err)
	future, err := w.EventsCursor(w.tenant, math.MaxInt64)
	require.NoError(t, err)
	_, err = w.TenantEvents(t.Context(), w.tenant, future, 0)
	requireCode(t, jig.CodeExpired, err)
}

// An event whose transaction began earlier and commits later is not lost: later events wait for it.
func TestTenantEvents_WaitForOlderTransactions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begin, err := w.TenantEvents(t.Context(), w.tenant, "", 0)
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), storetest.URL(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	late, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = late.Exec(t.Context(), "select set_config('jig.tenant', $1, true)", w.tenant)
	require.NoError(t, err)
	second := storetest.Session(t, w.DB, w.tenant).ID
	_, err = late.Exec(t.Context(), `insert into events (tenant_id, session_id, seq, at, type, data) values ($1, $2, 1000, now(), 'tool.asked', '{}')`,
		w.tenant, second)
	require.NoError(t, err)

	require.NoError(t, w.AppendEvents(t.Context(), w.tenant, w.session, jig.Event{Type: jig.EventToolNeedsApproval, CallID: "1.1"}))
	page, err := w.TenantEvents(t.Context(), w.tenant, begin.Next, 0)
	require.NoError(t, err)
	for _, e := range page.Events {
		require.NotEqual(t, jig.EventToolNeedsApproval, e.Type, "it may only come after the event of the older transaction")
	}
	require.True(t, page.Waiting)
	require.NoError(t, late.Commit(t.Context()))
	count := len(page.Events)
	types, _ := tenantEvents(t, w.DB, w.tenant, page.Next, 2)
	require.Equal(t, []jig.EventType{jig.EventToolAsked, jig.EventToolNeedsApproval}, types[len(types)-2:])
	all, _ := tenantEvents(t, w.DB, w.tenant, begin.Next, count+2)
	require.Equal(t, append(typesOf(page), types...), all, "two pages have what one has")
}

func typesOf(page protocol.TenantEvents) (types []jig.EventType) {
	for _, e := range page.Events {
		types = append(types, e.Type)
	}
	return types
}

// A watcher hears of what another process commits in any session of the tenant.
func TestWatchTenant_HearsOfOtherProcesses(t *testing.T) {
	t.Parallel()
	a := newAudience(t)
	writer, reader := a.open(t, store.Options{NotifyEvery: time.Millisecond, AskEvery: time.Millisecond}), a.open(t, store.Options{PollEvery: time.Hour})
	ctx := patient(t)
	begin, err := reader.TenantEvents(ctx, a.tenant, "", 0)
	require.NoError(t, err)
	news := reader.WatchTenant(ctx, a.tenant)
	<-news                              // it may have missed something before
	require.Eventually(t, func() bool { // until it listens
		require.NoError(t, writer.AppendEvents(ctx, a.tenant, a.session, jig.Event{Type: jig.EventToolApproved, CallID: "1.1"}))
		select {
		case <-news:
			return true
		case <-time.After(50 * time.Millisecond):
			return false
		}
	}, time.Minute, time.Millisecond)
	types, _ := tenantEvents(t, reader, a.tenant, begin.Next, 1)
	require.Contains(t, types, jig.EventToolApproved)
}

// Text comes between the events, never after the event of the turn that has the whole of it.
func TestFollow_SendsEventsAndText(t *testing.T) {
	t.Parallel()
	a := newAudience(t)
	writer, reader := a.open(t, prompt()), a.open(t, store.Options{})
	pages := reader.Follow(patient(t), a.tenant, a.session, 0, 0)
	next := func() protocol.EventsPage {
		page, open := <-pages
		require.True(t, open)
		return page
	}
	require.NotEmpty(t, next().Events)
	w := writer.WriteText(a.tenant, a.session, 2)
	w.Add("One ")
	text := ""
	for text != "One " {
		page := next()
		require.NotNil(t, page.Draft)
		text += page.Draft.Text
	}
	w.Add("Two")
	w.End("")
	require.NoError(t, writer.AppendEvents(t.Context(), a.tenant, a.session, jig.Event{Type: jig.EventPassCompleted, Pass: 2}))
	for {
		page := next()
		if page.Draft != nil {
			text += page.Draft.Text
			continue
		}
		require.Equal(t, jig.EventPassCompleted, page.Events[len(page.Events)-1].Type)
		break
	}
	late := writer.WriteText(a.tenant, a.session, 2)
	late.Add("too late")
	require.NoError(t, writer.AppendEvents(t.Context(), a.tenant, a.session, jig.Event{Type: jig.EventSessionCompleted}))
	for page := next(); len(page.Events) == 0; page = next() {
		require.Fail(t, "text of a pass that has ended", "%+v", page.Draft)
	}
	require.True(t, text == "One Two" || text == "One ", "the end may get lost, but nothing else: %q", text)
}
