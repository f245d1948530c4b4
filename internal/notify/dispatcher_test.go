package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/notify"
	"github.com/jig-run/jig/internal/notify/outbox"
)

func TestDispatcher_DeliversOnceSigned(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	d := newDesk(r.webhook())
	d.add(word("ntc_1"))
	dispatcher := d.dispatcher(0)
	require.Equal(t, 1, step(t, dispatcher))
	for range 3 {
		require.Zero(t, step(t, dispatcher))
		d.clock.add(time.Hour)
	}
	require.Equal(t, outbox.StatusSent, d.state(t, "ntc_1").status)

	got := r.messages()
	require.Len(t, got, 1)
	hook, err := standardwebhooks.NewWebhookRaw([]byte(secret))
	require.NoError(t, err)
	require.NoError(t, hook.Verify(got[0].body, got[0].header))
	require.Error(t, hook.Verify(append(got[0].body, ' '), got[0].header))
	require.Equal(t, "ntc_1", got[0].header.Get("webhook-id"))
	require.Equal(t, "application/json", got[0].header.Get("Content-Type"))

	var body struct {
		Type, Timestamp string
		Data            jig.Notice
	}
	require.NoError(t, json.Unmarshal(got[0].body, &body))
	require.Equal(t, "approval.requested", body.Type)
	require.Equal(t, "2026-11-21T09:30:00Z", body.Timestamp)
	require.Equal(t, word("ntc_1"), body.Data)
	require.NotContains(t, string(got[0].body), secret)

	require.Equal(t, 1, strings.Count(d.log.String(), "msg=notice "))
	for _, part := range []string{"tenant=acme", "kind=approval.requested", "session=ses_1", "call=3.2", "tool=payment.refund", `approvers="group finance"`} {
		require.Contains(t, d.log.String(), part)
	}
}

func TestNoWebhook_NotificationIsLogged(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	d := newDesk(r.webhook(jig.NoticeDecided))
	n := word("ntc_1")
	n.Approvers = &jig.Approvers{People: []string{"ben"}}
	n.Status, n.By = jig.CallDenied, "eva"
	d.add(n)
	dispatcher := d.dispatcher(0)
	for range 2 {
		require.Zero(t, step(t, dispatcher))
		d.clock.add(time.Hour)
	}
	require.Empty(t, r.messages())
	require.Equal(t, 1, strings.Count(d.log.String(), "msg=notice "))
	require.Contains(t, d.log.String(), "approvers=ben status=denied by=eva")
}

// Every failure is retried with the same id after a longer wait, and after the last retry the delivery is given up.
func TestDispatcher_RetriesUntilItGivesUp(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, answer(http.StatusInternalServerError))
	d := newDesk(r.webhook())
	d.add(word("ntc_1"))
	dispatcher := d.dispatcher(0)
	require.Equal(t, 1, step(t, dispatcher))
	waits := []time.Duration{
		5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
	}
	for i, wait := range waits {
		require.Equal(t, outbox.StatusPending, d.state(t, "ntc_1").status)
		d.clock.add(wait - time.Millisecond)
		require.Zero(t, step(t, dispatcher), "attempt %d came too soon", i+2)
		d.clock.add(wait/5 + time.Second)
		require.Equal(t, 1, step(t, dispatcher), "attempt %d", i+2)
	}
	require.Equal(t, outbox.StatusGivenUp, d.state(t, "ntc_1").status)
	require.Contains(t, d.state(t, "ntc_1").err, "answered 500")
	d.clock.add(1000 * time.Hour)
	require.Zero(t, step(t, dispatcher))
	got := r.messages()
	require.Len(t, got, len(waits)+1)
	for _, m := range got {
		require.Equal(t, "ntc_1", m.header.Get("webhook-id"))
		require.Equal(t, got[0].body, m.body)
	}
	require.NotEqual(t, got[0].header.Get("webhook-timestamp"), got[7].header.Get("webhook-timestamp"))
	require.NotEqual(t, got[0].header.Get("webhook-signature"), got[7].header.Get("webhook-signature"))
	require.Equal(t, 1, strings.Count(d.log.String(), "level=ERROR"))
	require.NotContains(t, d.log.String(), "/hook", "the path of a webhook may be a secret")
}

func TestDispatcher_HonoursRetryAfter(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(now time.Time) string{
		"seconds": func(time.Time) string { return "600" },
		"date":    func(now time.Time) string { return now.Add(601 * time.Second).UTC().Format(http.TimeFormat) },
	} {
		for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
			t.Run(fmt.Sprint(name, status), func(t *testing.T) {
				t.Parallel()
				d := newDesk()
				r := newReceiver(t, answer(status, "Retry-After", of(d.Now())), answer(http.StatusOK))
				d.set("acme", "v1", r.webhook())
				d.add(word("ntc_1"))
				dispatcher := d.dispatcher(0)
				require.Equal(t, 1, step(t, dispatcher))
				d.clock.add(599 * time.Second)
				require.Zero(t, step(t, dispatcher))
				d.clock.add(125 * time.Second)
				require.Equal(t, 1, step(t, dispatcher))
				require.Equal(t, outbox.StatusSent, d.state(t, "ntc_1").status)
			})
		}
	}
}

func TestDispatcher_LimitsRetryAfter(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, answer(http.StatusServiceUnavailable, "Retry-After", "2000000000"), answer(http.StatusOK))
	d := newDesk(r.webhook())
	d.add(word("ntc_1"))
	dispatcher := d.dispatcher(0)
	require.Equal(t, 1, step(t, dispatcher))
	d.clock.add(24*time.Hour - time.Second)
	require.Zero(t, step(t, dispatcher))
	d.clock.add(5 * time.Hour)
	require.Equal(t, 1, step(t, dispatcher))
}

func TestWebhook_GoneEndpointIsNotRetried(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, answer(http.StatusGone), answer(http.StatusOK))
	d := newDesk(r.webhook())
	d.add(word("ntc_1"))
	dispatcher := d.dispatcher(0)
	require.Equal(t, 1, step(t, dispatcher))
	require.Equal(t, outbox.StatusGone, d.state(t, "ntc_1").status)
	d.add(word("ntc_2"))
	d.clock.add(time.Hour)
	require.Zero(t, step(t, dispatcher))
	d.set("acme", "v2", r.webhook())
	d.add(word("ntc_3"))
	require.Equal(t, 1, step(t, dispatcher))
	got := r.messages()
	require.Len(t, got, 2)
	require.Equal(t, "ntc_3", got[1].header.Get("webhook-id"))
}

func TestWebhook_RemovedEndpointGetsNothing(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, answer(http.StatusBadGateway))
	d := newDesk(r.webhook())
	d.add(word("ntc_1"))
	dispatcher := d.dispatcher(0)
	step(t, dispatcher)
	d.set("acme", "v2")
	d.clock.add(time.Minute)
	require.Equal(t, 1, step(t, dispatcher))
	require.Len(t, r.messages(), 1)
	require.Equal(t, outbox.StatusGivenUp, d.state(t, "ntc_1").status)
	require.Equal(t, 1, d.state(t, "ntc_1").Attempts)
}

// A dispatcher that dies after sending and before storing the outcome leaves the message to another dispatcher, which sends it
// again.
func TestDispatcher_CrashBeforeMarkSendsAgainWithTheSameID(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	d := newDesk(r.webhook())
	d.add(word("ntc_1"))
	d.mute = errors.New("the connection is lost")
	require.Equal(t, 1, step(t, d.dispatcher(0)))
	require.Contains(t, d.log.String(), "may be sent again")
	d.mute = nil
	other := d.dispatcher(0)
	d.clock.add(59 * time.Second)
	require.Zero(t, step(t, other), "the lease still holds")
	d.clock.add(2 * time.Second)
	require.Equal(t, 1, step(t, other))
	d.clock.add(time.Hour)
	require.Zero(t, step(t, other))
	got := r.messages()
	require.Len(t, got, 2)
	require.Equal(t, "ntc_1", got[0].header.Get("webhook-id"))
	require.Equal(t, "ntc_1", got[1].header.Get("webhook-id"))
}

func TestDispatcher_TwoDoNotBothSend(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	d := newDesk(r.webhook())
	const notices = 20
	for i := range notices {
		d.add(word("ntc_" + strconv.Itoa(i)))
	}
	dispatchers := []*notify.Dispatcher{d.dispatcher(0), d.dispatcher(0)}
	var wg sync.WaitGroup
	errs := make([]error, len(dispatchers))
	for i, one := range dispatchers {
		wg.Go(func() {
			for range notices {
				if _, err := one.Step(t.Context()); err != nil {
					errs[i] = err
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	times := map[string]int{}
	for _, m := range r.messages() {
		times[m.header.Get("webhook-id")]++
	}
	require.Len(t, times, notices)
	for id, n := range times {
		require.Equal(t, 1, n, id)
	}
}

// A slow webhook delays neither another webhook of its tenant nor another tenant.
func TestSlowWebhook_DoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	slow := newReceiver(t, func(http.ResponseWriter) { <-release })
	defer close(release)
	quick := newReceiver(t)
	d := newDesk(slow.webhook(), quick.webhook())
	d.set("other", "v1", quick.webhook())
	for i := range 30 {
		d.add(word("ntc_" + strconv.Itoa(i)))
	}
	theirs := word("ntc_theirs")
	theirs.Tenant = "other"
	d.add(theirs)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { d.dispatcher(time.Minute).Run(ctx) })
	require.Eventually(t, func() bool { return len(quick.messages()) == 31 }, 2*time.Minute, 5*time.Millisecond)
	require.Len(t, slow.messages(), 1, "one at a time for a webhook")
	stop()
	running.Wait()
	require.Equal(t, 0, d.state(t, "ntc_0").Attempts, "an interrupted attempt does not count")
	require.Equal(t, outbox.StatusPending, d.state(t, "ntc_0").status)
}

// After a failure that took long, the webhook's other messages wait.
func TestWebhook_SlowFailuresBackOff(t *testing.T) {
	t.Parallel()
	d := newDesk()
	r := newReceiver(t, func(w http.ResponseWriter) {
		d.clock.add(10 * time.Second)
		w.WriteHeader(http.StatusGatewayTimeout)
	}, answer(http.StatusOK))
	d.set("acme", "v1", r.webhook())
	d.add(word("ntc_1"), word("ntc_2"))
	dispatcher := d.dispatcher(0)
	require.Equal(t, 1, step(t, dispatcher))
	d.clock.add(19 * time.Second)
	require.Equal(t, 1, step(t, dispatcher), "only the first is due")
	require.Zero(t, step(t, dispatcher))
	d.clock.add(2 * time.Second)
	require.Equal(t, 1, step(t, dispatcher))
	require.Equal(t, "ntc_2", r.messages()[2].header.Get("webhook-id"))
}

func TestUnreadableSettings_DelayNotices(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, answer(http.StatusBadGateway), answer(http.StatusOK))
	d := newDesk(r.webhook())
	d.add(word("ntc_1"))
	d.broken = errors.New("the document is odd")
	dispatcher := d.dispatcher(0)
	require.Zero(t, step(t, dispatcher))
	require.Contains(t, d.log.String(), "the document is odd")
	d.broken = nil
	d.clock.add(61 * time.Second)
	require.Equal(t, 1, step(t, dispatcher))
	d.broken = errors.New("odd again")
	d.clock.add(10 * time.Second)
	require.Equal(t, 1, step(t, dispatcher))
	require.Equal(t, 1, d.state(t, "ntc_1").Attempts, "it was not tried")
	d.broken = nil
	d.clock.add(31 * time.Second)
	require.Equal(t, 1, step(t, dispatcher))
	require.Equal(t, outbox.StatusSent, d.state(t, "ntc_1").status)
}

func TestRun_RecoversFromADatabaseOutage(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	d := newDesk(r.webhook())
	d.add(word("ntc_1"))
	d.away = errors.New("no database")
	_, err := d.dispatcher(0).Step(t.Context())
	require.ErrorIs(t, err, d.away)
	d.clock.add(2 * time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { d.dispatcher(0).Run(ctx) })
	require.Eventually(t, func() bool { return strings.Contains(d.log.String(), "cannot be sent for now") }, 2*time.Minute, time.Millisecond)
	d.memoryOutbox.mu.Lock()
	d.away = nil
	d.memoryOutbox.mu.Unlock()
	d.clock.add(2 * time.Minute)
	require.Eventually(t, func() bool { return len(r.messages()) == 1 }, 2*time.Minute, time.Millisecond)
	stop()
	running.Wait()
	require.Equal(t, 1, strings.Count(d.log.String(), "cannot be sent for now"))
	require.Contains(t, d.log.String(), "are sent again")
}

func TestOldNotices_AreDeletedHourly(t *testing.T) {
	t.Parallel()
	d := newDesk()
	dispatcher := d.dispatcher(0)
	for range 4 { // at 0:00, 0:30, 1:00 and 1:30
		step(t, dispatcher)
		d.clock.add(30 * time.Minute)
	}
	require.Equal(t, 2, d.forgets)
}
