package notify_test

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/notify"
	"github.com/jig-run/jig/internal/tenancy"
)

func send(t *testing.T, timeout time.Duration, to tenancy.Webhook) *jig.Error {
	t.Helper()
	sender := notify.NewWebhooks(notify.WebhookOptions{Transport: &http.Transport{}, Timeout: timeout})
	return jig.AsError(sender.Send(t.Context(), word("ntc_1"), to))
}

func TestWebhook_ReadsTheAnswer(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]*jig.Error{
		200: nil, 202: nil, 204: nil,
		301: {Code: jig.CodeUnavailable}, 307: {Code: jig.CodeUnavailable}, 400: {Code: jig.CodeUnavailable}, 404: {Code: jig.CodeUnavailable},
		410: {Code: jig.CodeNotFound, Reason: notify.ReasonGone}, 429: {Code: jig.CodeRateLimited}, 503: {Code: jig.CodeUnavailable},
	} {
		r := newReceiver(t, answer(status, "Location", "/elsewhere"))
		err := send(t, 0, r.webhook())
		require.Len(t, r.messages(), 1, status)
		if want == nil {
			require.Nil(t, err, status)
			continue
		}
		require.NotNil(t, err, status)
		require.Equal(t, want.Code, err.Code, status)
		require.Equal(t, want.Reason, err.Reason, status)
		require.NotContains(t, err.Error(), "/hook", status)
	}
}

func TestWebhook_RedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := newReceiver(t)
	for _, status := range []int{301, 302, 303, 307, 308} {
		r := newReceiver(t, answer(status, "Location", elsewhere.URL+"/x"))
		err := send(t, 0, r.webhook())
		require.NotNil(t, err, status)
		require.Contains(t, err.Message, "redirects are not followed")
	}
	require.Empty(t, elsewhere.messages())
}

func TestWebhook_SlowServerTimesOut(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	r := newReceiver(t, func(http.ResponseWriter) { <-release })
	defer close(release)
	err := send(t, 50*time.Millisecond, r.webhook())
	require.NotNil(t, err)
	require.Equal(t, jig.CodeTimeout, err.Code)
	require.NotContains(t, err.Error(), "/hook")
}

// Only a few bytes of an endless answer are read.
func TestWebhook_EndlessAnswerIsCutShort(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(w http.ResponseWriter) {
		for {
			if _, err := w.Write([]byte(strings.Repeat("x", 8<<10))); err != nil {
				return
			}
		}
	})
	require.Nil(t, send(t, 10*time.Second, r.webhook()))
}

func TestWebhook_ErrorHidesTheAddress(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	failure := send(t, 0, tenancy.Webhook{URL: "http://" + address + "/hook?token=x", Secret: []byte(secret)})
	require.Equal(t, jig.CodeUnavailable, failure.Code)
	require.Contains(t, failure.Message, "cannot be reached")
	require.NotContains(t, failure.Error(), "token")

	failure = send(t, 0, tenancy.Webhook{URL: "http://[::1/hook?token=x", Secret: []byte(secret)})
	require.Equal(t, jig.CodeInvalidInput, failure.Code)
	require.Equal(t, "webhooks.url", failure.Field)
	require.NotContains(t, failure.Error(), "token")
}

// Documents stored before plain HTTP was refused must not make a worker send messages unencrypted.
func TestSend_PlainHTTPOnlyToLocalhost(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://hooks.example.com/x", "http://10.0.0.1/x", "http://127.0.0.1.example.com/x", "http://localhost.example.com/x"} {
		err := send(t, 0, tenancy.Webhook{URL: address, Secret: []byte(secret)})
		require.NotNil(t, err, address)
		require.Equal(t, "webhooks.url", err.Field, address)
		require.Equal(t, jig.CodeInvalidInput, err.Code, address)
	}
	require.False(t, tenancy.Webhook{URL: "https://hooks.example.com/x"}.Readable())
	require.False(t, tenancy.Webhook{URL: "http://[::ffff:127.0.0.1]/x"}.Readable())
}

func TestWebhook_ShortSecretsAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", strings.Repeat("x", 23)} {
		r := newReceiver(t)
		hook := r.webhook()
		hook.Secret = []byte(text)
		err := send(t, 0, hook)
		require.NotNil(t, err, text)
		require.Equal(t, "webhooks.secret", err.Field, text)
		require.Empty(t, r.messages(), text)
	}
	r := newReceiver(t)
	hook := r.webhook()
	hook.Secret = []byte(strings.Repeat("\x00", 24))
	require.Nil(t, send(t, 0, hook))
}

func TestTarget_DependsOnlyOnTheURL(t *testing.T) {
	t.Parallel()
	a := tenancy.Webhook{URL: "https://a.example/hook", Secret: []byte("one")}
	again := tenancy.Webhook{URL: a.URL, Secret: []byte("two"), Events: []jig.NoticeKind{jig.NoticeDecided}}
	require.Equal(t, notify.Target(a), notify.Target(again))
	require.NotEqual(t, notify.Target(a), notify.Target(tenancy.Webhook{URL: "https://b.example/hook"}))
	require.Len(t, notify.Target(a), 32)
}
