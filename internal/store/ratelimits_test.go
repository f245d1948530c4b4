package store_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/ratelimit"
	"github.com/jig-run/jig/internal/store/storetest"
)

// hourly returns a limit of one call per hour.
func hourly(key string, burst int) ratelimit.Claim {
	return ratelimit.Claim{
		Bucket: ratelimit.Bucket{Document: "apis", Limit: "hourly", Key: key}, Rate: 1, Period: time.Hour, Burst: burst, MaxWait: time.Hour,
	}
}

// slots returns a limit of n calls at the same time.
func slots(key string, n int) ratelimit.Claim {
	return ratelimit.Claim{Bucket: ratelimit.Bucket{Document: "apis", Limit: "slots", Key: key}, Concurrency: n, Burst: 1, MaxWait: time.Hour}
}

func (w world) wants(call string, claims ...ratelimit.Claim) ratelimit.Request {
	return ratelimit.Request{Tenant: w.tenant, SessionID: w.session, CallID: call, Pass: 1, Tool: "file.write", Claims: claims, Bounded: true}
}

// asksLimits returns the answer to a call that wants to begin.
func (w world) asksLimits(t *testing.T, call string, claims ...ratelimit.Claim) ratelimit.Answer {
	t.Helper()
	answer, err := w.AskRateLimits(t.Context(), w.wants(call, claims...))
	require.NoError(t, err)
	return answer
}

// passes makes the limits' clock go forward.
func (w world) passes(t *testing.T, d time.Duration) {
	t.Helper()
	w.change(t, "update rate_buckets set next_at = next_at - make_interval(secs => $1)", d.Seconds())
	w.change(t, "update rate_calls set since = since - make_interval(secs => $1)", d.Seconds())
}

// several admits n calls.
func (w world) several(t *testing.T, n int) []jig.Call {
	t.Helper()
	var calls []jig.Call
	for i := range n {
		c := w.call(i + 1)
		c.Signature = strconv.Itoa(i)
		calls = append(calls, c)
	}
	w.admit(t, calls...)
	return calls
}

func TestAskRateLimits_Rate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.several(t, 5)
	all := hourly("a", 2)
	require.Zero(t, w.asksLimits(t, "1.1", all))
	require.Zero(t, w.asksLimits(t, "1.2", all))
	third := w.asksLimits(t, "1.3", all)
	require.Positive(t, third.Wait)
	require.Equal(t, "limit hourly of rate limit apis allows 1 call per 1h", third.Why)
	require.Zero(t, w.asksLimits(t, "1.5", hourly("b", 2)), "another key")

	fourth := w.asksLimits(t, "1.4", all)
	require.Equal(t, third.Why+", 1 waiting before this one", fourth.Why)
	w.asksLimits(t, "1.3", all)
	var held []string
	for _, e := range w.log(t) {
		if e.Type == jig.EventToolHeld {
			held = append(held, e.CallID)
		}
	}
	require.Equal(t, []string{"1.3", "1.4"}, held, "one event when a call begins to wait")
	view, err := w.SessionView(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	require.Equal(t, "waits: "+third.Why, view.Calls[2].Summary)
	require.Empty(t, view.Calls[0].Summary)

	w.passes(t, 61*time.Minute)
	later := hourly("a", 2)
	later.MaxWait = 24 * time.Hour
	require.Positive(t, w.asksLimits(t, "1.4", later).Wait, "1.3 began to wait before it")
	require.Positive(t, w.asksLimits(t, "1.5", later).Wait)
	require.Zero(t, w.asksLimits(t, "1.3", later))
	require.Positive(t, w.asksLimits(t, "1.4", later).Wait)
	view, err = w.SessionView(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	require.Empty(t, view.Calls[2].Summary)
}

// Sessions begin in the order in which they began to wait; a canceled one does not hold up the others.
func TestAskRateLimits_Sessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	starts := hourly("", 1)
	starts.Sessions = true
	ask := func(session string) ratelimit.Answer {
		answer, err := w.AskRateLimits(t.Context(), ratelimit.Request{Tenant: w.tenant, SessionID: session, Claims: []ratelimit.Claim{starts}})
		require.NoError(t, err)
		return answer
	}
	first, second, third := w.session, storetest.Session(t, w.DB, w.tenant).ID, storetest.Session(t, w.DB, w.tenant).ID
	require.Zero(t, ask(first))
	why := "limit hourly of rate limit apis allows 1 session per 1h"
	require.Equal(t, why, ask(second).Why)
	require.Equal(t, why+", 1 waiting before this one", ask(third).Why)
	view, err := w.SessionView(t.Context(), w.tenant, second)
	require.NoError(t, err)
	require.Equal(t, []string{why}, view.Held)
	events, err := w.Events(t.Context(), w.tenant, second, 0, 10)
	require.NoError(t, err)
	require.Equal(t, jig.EventSessionHeld, events[len(events)-1].Type)

	w.change(t, "update sessions set status = 'canceled' where session_id = $1", second)
	require.Equal(t, why, ask(third).Why)
	w.passes(t, 61*time.Minute)
	require.Zero(t, ask(third))
}

// Behind a hundred others, a place in the queue is told by tickets, which each bucket counts by itself.
func TestAskRateLimits_LongQueues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ask := func(session, key string) string {
		limit := hourly(key, 1)
		limit.Sessions, limit.MaxWait = true, 1000*time.Hour
		answer, err := w.AskRateLimits(t.Context(), ratelimit.Request{Tenant: w.tenant, SessionID: session, Claims: []ratelimit.Claim{limit}})
		require.NoError(t, err)
		return answer.Why
	}
	var waiting []string
	for range 121 {
		waiting = append(waiting, storetest.Session(t, w.DB, w.tenant).ID)
		for _, key := range []string{"a", "b"} {
			ask(waiting[len(waiting)-1], key)
		}
	}
	last := storetest.Session(t, w.DB, w.tenant).ID
	require.Contains(t, ask(last, "a"), ", 120 waiting before this one", "the first session began at once")
	require.Contains(t, ask(last, "b"), ", 120 waiting before this one")
	require.Contains(t, ask(waiting[110], "a"), ", 109 waiting before this one", "it keeps its place")
	w.change(t, "update rate_calls set state = 'over' where key = 'a' and session_id = any($1)", waiting[1:31])
	require.Contains(t, ask(last, "a"), ", 90 waiting before this one")
}

// Calls that were canceled while they waited, and calls that nobody asks for any more, do not hold up others.
func TestAskRateLimits_OnlyOpenCallsCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.several(t, 4)
	other := storetest.Session(t, w.DB, w.tenant).ID
	all := hourly("", 1)
	require.Zero(t, w.asksLimits(t, "1.1", all))
	elsewhere := w.wants("1.1", all)
	elsewhere.SessionID = other // a session without calls
	_, err := w.AskRateLimits(t.Context(), elsewhere)
	require.NoError(t, err)
	require.Positive(t, w.asksLimits(t, "1.2", all).Wait)
	require.Positive(t, w.asksLimits(t, "1.3", all).Wait)
	w.passes(t, 30*time.Minute)
	w.change(t, "update rate_calls set until = clock_timestamp() where call_id = '1.2'")
	w.passes(t, 29*time.Minute)
	require.Equal(t, "limit hourly of rate limit apis allows 1 call per 1h", w.asksLimits(t, "1.3", all).Why, "it is the first in the queue")
	w.passes(t, 2*time.Minute)
	all.MaxWait = 24 * time.Hour
	require.Zero(t, w.asksLimits(t, "1.3", all))
}

func TestAskRateLimits_WaitsAtMostMaxWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.several(t, 3)
	all := hourly("", 1)
	all.MaxWait = 10 * time.Minute
	require.Zero(t, w.asksLimits(t, "1.1", all))
	require.False(t, w.asksLimits(t, "1.2", all).Expired)
	w.passes(t, 9*time.Minute)
	soon := w.asksLimits(t, "1.2", all)
	require.False(t, soon.Expired)
	w.passes(t, time.Minute)
	late := w.asksLimits(t, "1.2", all)
	require.True(t, late.Expired)
	require.Equal(t, "the call has waited for 10m, as long as max_wait allows: limit hourly of rate limit apis allows 1 call per 1h", late.Why)
	require.Equal(t, "limit hourly of rate limit apis allows 1 call per 1h", w.asksLimits(t, "1.3", all).Why, "1.2 has left the queue")
	unbounded := w.wants("1.3", all)
	unbounded.Bounded = false
	w.passes(t, 11*time.Minute)
	answer, err := w.AskRateLimits(t.Context(), unbounded)
	require.NoError(t, err)
	require.False(t, answer.Expired)
	require.Positive(t, answer.Wait)
}

// A limit that is raised counts for what waits already.
func TestAskRateLimits_RaisedLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.several(t, 2)
	limit := hourly("", 1)
	require.Zero(t, w.asksLimits(t, "1.1", limit))
	require.Positive(t, w.asksLimits(t, "1.2", limit).Wait)
	limit.Period = time.Minute
	require.LessOrEqual(t, w.asksLimits(t, "1.2", limit).Wait, time.Minute)
	w.passes(t, time.Minute)
	require.Zero(t, w.asksLimits(t, "1.2", limit))
}

// A call that one limit holds back does not hold up others in the queues of the other limits, and takes nothing of them.
func TestAskRateLimits_AllOrNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.several(t, 4)
	narrow, wide := hourly("narrow", 1), hourly("wide", 2)
	require.Zero(t, w.asksLimits(t, "1.1", narrow, wide))
	require.Positive(t, w.asksLimits(t, "1.2", wide, narrow).Wait)
	require.Zero(t, w.asksLimits(t, "1.3", wide), "1.2 took nothing of it")
	require.Positive(t, w.asksLimits(t, "1.4", wide).Wait)
}

func TestAskRateLimits_Concurrency(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	calls := w.several(t, 5)
	two := slots("", 2)
	first, second := calls[0], calls[1]
	for _, c := range calls[:2] {
		require.Zero(t, w.asksLimits(t, c.ID, two))
	}
	require.Equal(t, "limit slots of rate limit apis allows 2 calls at the same time: 2 running", w.asksLimits(t, "1.3", two).Why, "two are about to begin")
	fence := w.reserve(t, first).Fence
	w.reserve(t, second)
	w.change(t, "update rate_calls set until = until - interval '2 minutes' where state = 'running'") // no longer than a minute
	require.Positive(t, w.asksLimits(t, "1.3", two).Wait, "two run")
	require.Zero(t, w.asksLimits(t, second.ID, two), "the next attempt of a call that a dead worker left has its place already")

	w.complete(t, first, fence, jig.CallSucceeded)
	require.Positive(t, w.asksLimits(t, "1.4", two).Wait, "1.3 began to wait before it")
	require.Zero(t, w.asksLimits(t, "1.3", two))
	require.NoError(t, w.CancelSession(t.Context(), ledger.End{Tenant: w.tenant, SessionID: w.session, Status: jig.StatusCanceled}))
	other := w
	other.session = storetest.Session(t, w.DB, w.tenant).ID
	other.begin(t, 1)
	other.several(t, 2)
	require.Zero(t, other.asksLimits(t, "1.1", two), "what was canceled does not count")
	require.Zero(t, other.asksLimits(t, "1.2", two))
}

// Any number of workers together let no more calls begin than the limits allow.
func TestAskRateLimits_ManyWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.several(t, 60)
	second := storetest.New(t)
	var begun, placed atomic.Int64
	var workers sync.WaitGroup
	for i := range 60 {
		workers.Go(func() {
			db := w.DB
			if i%2 == 1 {
				db = second
			}
			for range 3 {
				for claim, count := range map[ratelimit.Claim]*atomic.Int64{hourly("many", 7): &begun, slots("many", 5): &placed} {
					r := w.wants(jig.CallID(1, i+1), claim)
					r.CallID = jig.CallID(1, i+1)
					answer, err := db.AskRateLimits(t.Context(), r)
					if err == nil && answer.Wait == 0 {
						count.Add(1)
					}
				}
			}
		})
	}
	workers.Wait()
	require.EqualValues(t, 7, begun.Load())
	require.GreaterOrEqual(t, placed.Load(), int64(5))
	require.Equal(t, []string{"5"}, w.column(t, "select count(*)::text from rate_calls where state = 'running'"))
}

func TestForgetRates_DeletesWhatHasNoEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.several(t, 3)
	require.Zero(t, w.asksLimits(t, "1.1", hourly("old", 1)))
	require.Positive(t, w.asksLimits(t, "1.2", hourly("old", 1)).Wait)
	require.Zero(t, w.asksLimits(t, "1.3", hourly("new", 1)))
	w.change(t, "update rate_buckets set next_at = clock_timestamp() - interval '2 hours' where key = 'old'")
	w.change(t, "update rate_calls set until = clock_timestamp() - interval '2 hours'")
	n, err := w.ForgetRates(t.Context(), 1000)
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, int64(2))
	require.Equal(t, []string{"new"}, w.column(t, "select key from rate_buckets"))
	require.Empty(t, w.column(t, "select call_id from rate_calls"))
	require.Positive(t, w.asksLimits(t, "1.2", hourly("new", 1)).Wait)
}
