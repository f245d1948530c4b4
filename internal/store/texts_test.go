package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/livetext"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// read is the result of WaitText.
type read struct {
	events []jig.Event
	draft  protocol.Draft
	err    error
}

// follow waits for text of a session after a position, or for events after those of its start.
func (a audience) follow(ctx context.Context, db *store.DB, from protocol.TextPosition) <-chan read {
	out := make(chan read, 1)
	go func() {
		r := read{}
		var draft *protocol.Draft
		if r.events, draft, r.err = db.WaitText(ctx, a.tenant, a.session, 2, 0, from, time.Millisecond); draft != nil {
			r.draft = *draft
		}
		out <- r
	}()
	return out
}

// reads follows a session until it has a text from a position on.
func (a audience) reads(t *testing.T, db *store.DB, from protocol.TextPosition, want string) protocol.TextPosition {
	t.Helper()
	var got strings.Builder
	for got.Len() < len(want) {
		r := <-a.follow(patient(t), db, from)
		require.NoError(t, r.err)
		require.Empty(t, r.events)
		require.NotEqual(t, protocol.Draft{}, r.draft, "following ended")
		got.WriteString(r.draft.Text)
		from = r.draft.End()
	}
	require.Equal(t, want, got.String())
	return from
}

// prompt makes a store ask often whether somebody follows.
func prompt() store.Options {
	return store.Options{AskEvery: time.Millisecond, TextEvery: time.Millisecond}
}

func TestTexts_ReachFollowersInOtherProcesses(t *testing.T) {
	t.Parallel()
	a := newAudience(t)
	writer, reader := a.open(t, prompt()), a.open(t, store.Options{})
	w := writer.WriteText(a.tenant, a.session, 2)
	w.Add("One ")
	begun := a.reads(t, reader, protocol.TextPosition{}, "One ")
	w.Add("Two ")
	next := a.reads(t, reader, begun, "Two ")
	require.Equal(t, 2, next.Pass)
	require.Equal(t, 8, next.Offset)
	a.reads(t, a.open(t, store.Options{}), protocol.TextPosition{}, "One Two ")
	a.reads(t, writer, protocol.TextPosition{}, "One Two ")

	// Whoever reads the text gets its end, and the event of the turn.
	waiting := a.follow(patient(t), reader, next)
	w.Add("Three")
	w.End("")
	var got strings.Builder
	for over := false; !over; {
		r := <-waiting
		require.NoError(t, r.err)
		got.WriteString(r.draft.Text)
		over, next = r.draft.Over, r.draft.End()
		waiting = a.follow(patient(t), reader, next)
	}
	require.Equal(t, "Three", got.String())
	seq := a.append(t, writer)
	r := <-waiting
	require.NoError(t, r.err)
	require.Equal(t, seq, r.events[len(r.events)-1].Seq)
	require.Equal(t, protocol.Draft{}, r.draft)
}

// Events come first. With them comes the rest of a text, for those who have begun to read it.
func TestTexts_ComeWithEvents(t *testing.T) {
	t.Parallel()
	a := newAudience(t)
	db := a.open(t, store.Options{})
	w := db.WriteText(a.tenant, a.session, 1)
	w.Add("One ")
	begun := a.reads(t, db, protocol.TextPosition{}, "One ")
	w.Add("Two")
	w.End("")
	a.append(t, db)
	r := <-a.follow(patient(t), db, begun)
	require.NoError(t, r.err)
	require.NotEmpty(t, r.events)
	require.Equal(t, "Two", r.draft.Text)
	require.True(t, r.draft.Over)
	r = <-a.follow(patient(t), db, protocol.TextPosition{})
	require.NotEmpty(t, r.events)
	require.Empty(t, r.draft.Text)
}

func TestTexts_FailureReachesFollowers(t *testing.T) {
	t.Parallel()
	a := newAudience(t)
	writer, reader := a.open(t, prompt()), a.open(t, store.Options{})
	w := writer.WriteText(a.tenant, a.session, 1)
	w.Add("Half an ans")
	begun := a.reads(t, reader, protocol.TextPosition{}, "Half an ans")
	w.End("the line broke")
	r := <-a.follow(patient(t), reader, begun)
	require.Equal(t, "the line broke", r.draft.Failed)
	again := reader.WriteText(a.tenant, a.session, 1)
	again.Add("Once more")
	a.reads(t, reader, r.draft.End(), "Once more")
	a.reads(t, writer, r.draft.End(), "Once more")
}

// Nothing is sent while nobody follows, while only this process follows, or while others follow sessions of another group, or only events.
func TestTexts_AreNotSentInVain(t *testing.T) {
	t.Parallel()
	a := newAudience(t)
	sent, conn := a.listen(t, "jig_text"), a.connect(t)
	options := prompt()
	options.ListenIdle = silent
	db, other := a.open(t, options), a.open(t, store.Options{})
	w := db.WriteText(a.tenant, a.session, 1)
	w.Add("Nobody follows. ")
	a.reads(t, db, protocol.TextPosition{}, "Nobody follows. ")

	waiting := a.wait(patient(t), other, 2)
	elsewhere := a
	for elsewhere.session = "x"; bucketOf(elsewhere) == bucketOf(a); {
		elsewhere.session += "x"
	}
	ctx, stop := context.WithCancel(patient(t))
	defer stop()
	ended := elsewhere.follow(ctx, other, protocol.TextPosition{})
	a.requireListeners(t, conn, 4) // both for events, and both for the texts of a group
	for range 20 {
		w.Add("Somebody follows another session. ")
		a.append(t, db)
	}
	<-waiting
	db.Close() // sends what is left
	require.Empty(t, sent())
	require.Empty(t, other.Draft(a.tenant, a.session))
	stop()
	require.Equal(t, read{}, <-ended)
}

func bucketOf(a audience) int { return livetext.Session{Tenant: a.tenant, ID: a.session}.Bucket() }

// Everybody who may connect to the database can listen and notify. They see neither text nor whose it is, and cannot make any up.
func TestTexts_AreSealed(t *testing.T) {
	t.Parallel()
	a := newAudience(t)
	sent := a.listen(t, "jig_text")
	writer, reader := a.open(t, prompt()), a.open(t, store.Options{})
	w := writer.WriteText(a.tenant, a.session, 1)
	w.Add("The password is swordfish")
	begun := a.reads(t, reader, protocol.TextPosition{}, "The password is swordfish")
	payloads := sent()
	require.NotEmpty(t, payloads)
	for _, p := range payloads {
		for _, secret := range []string{"swordfish", a.session, a.tenant} {
			require.NotContains(t, p, secret)
		}
	}
	forger, err := livetext.NewSeal([]byte(strings.Repeat("?", livetext.KeyBytes)))
	require.NoError(t, err)
	forged := livetext.Piece{Session: livetext.Session{Tenant: a.tenant, ID: a.session}, Pass: 9, Attempt: "forged", Text: "Send money"}
	conn := a.connect(t)
	for _, payload := range append(forger.Close([]livetext.Piece{forged}, 7900), "garbage", a.tenant+" "+a.session+" 99") {
		_, err = conn.Exec(t.Context(), "select pg_notify('jig_text', $1)", payload)
		require.NoError(t, err)
	}
	w.Add(", or not")
	a.reads(t, reader, begun, ", or not")
}

// A session of another tenant with the same id gets none of the text.
func TestTexts_StayInTheirTenant(t *testing.T) {
	t.Parallel()
	a := newAudience(t)
	writer, reader := a.open(t, prompt()), a.open(t, store.Options{})
	other := a
	other.tenant = storetest.Tenant(t)
	ctx, stop := context.WithCancel(patient(t))
	stolen := other.follow(ctx, reader, protocol.TextPosition{})
	alsoStolen := other.follow(ctx, writer, protocol.TextPosition{})
	w := writer.WriteText(a.tenant, a.session, 1)
	w.Add("ours")
	a.reads(t, reader, protocol.TextPosition{}, "ours")
	a.reads(t, writer, protocol.TextPosition{}, "ours")
	stop()
	require.Equal(t, read{}, <-stolen)
	require.Equal(t, read{}, <-alsoStolen)
	require.Empty(t, reader.Draft(other.tenant, a.session))
}

// If the connection that listens is lost, its process gets the whole text again, also what was written in the meantime.
func TestTexts_SurviveALostConnection(t *testing.T) {
	t.Parallel()
	a := newAudience(t)
	conn := a.connect(t)
	writer, reader := a.open(t, prompt()), a.open(t, store.Options{PollEvery: 20 * time.Millisecond})
	w := writer.WriteText(a.tenant, a.session, 1)
	w.Add("One ")
	begun := a.reads(t, reader, protocol.TextPosition{}, "One ")
	for _, pid := range a.listeners(t, conn) {
		_, err := conn.Exec(t.Context(), "select pg_terminate_backend($1::int)", pid)
		require.NoError(t, err)
	}
	w.Add("Two")
	a.reads(t, reader, begun, "Two")
}

// A process stops asking for the texts of a group some time after its followers have left, and asks again for the next one.
func TestTexts_FollowersComeAndGo(t *testing.T) {
	t.Parallel()
	a := newAudience(t)
	conn := a.connect(t)
	writer, reader := a.open(t, prompt()), a.open(t, store.Options{ListenIdle: 20 * time.Millisecond})
	w := writer.WriteText(a.tenant, a.session, 1)
	from := protocol.TextPosition{}
	for range 3 {
		w.Add("more ")
		from = a.reads(t, reader, from, "more ")
		require.Eventually(t, func() bool { return len(a.listeners(t, conn)) == 0 }, 2*time.Minute, 5*time.Millisecond)
	}
}
