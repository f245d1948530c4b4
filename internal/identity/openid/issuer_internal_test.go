package openid

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// An issuer that does not answer keeps nobody waiting whose token has a known key.
func TestIssuer_KeysAreFetchedBesideRequests(t *testing.T) {
	t.Parallel()
	hang, asked := make(chan struct{}), make(chan struct{}, 1)
	answers := true
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		if !answers {
			asked <- struct{}{}
			<-hang
		}
		_, _ = w.Write([]byte(`{"issuer": "` + server.URL + `", "jwks_uri": "` + server.URL + `/keys"}`)) //nolint:errcheck // the client is gone
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"keys": []}`)) //nolint:errcheck // the client is gone
	})
	i := newIssuer(server.URL, http.DefaultTransport)
	_, keys, err := i.discover(t.Context())
	require.NoError(t, err)

	answers = false
	i.client.Transport = http.DefaultTransport // without the memory of earlier answers
	i.known.at = i.known.at.Add(-keysFor)
	for range 3 {
		_, again, err := i.discover(t.Context())
		require.NoError(t, err)
		require.Same(t, keys, again)
	}
	<-asked
	close(hang)
	require.Eventually(t, func() bool {
		_, again, err := i.discover(t.Context())
		return err == nil && again != keys
	}, 10*time.Second, 5*time.Millisecond)

	i.known.at = i.known.at.Add(-keysAtMost)
	server.Close()
	_, _, err = i.discover(t.Context())
	require.ErrorContains(t, err, "cannot be reached", "keys are not trusted forever")
}

// transport answers requests.
type transport func(r *http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// Requests that come while the first discovery hangs share it, and do not wait for long.
func TestIssuer_FirstDiscoveryIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const url = "https://login.example.com"
		var asked atomic.Int32
		hang := make(chan struct{})
		i := newIssuer(url, transport(func(*http.Request) (*http.Response, error) {
			asked.Add(1)
			<-hang
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"issuer": "` + url + `", "jwks_uri": "` + url + `/keys"}`))}, nil
		}))
		began := time.Now()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				_, _, err := i.discover(t.Context())
				require.ErrorContains(t, err, "has not answered yet")
			})
		}
		all.Wait()
		_, _, err := i.discover(t.Context())
		require.ErrorContains(t, err, "has not answered yet")
		require.Equal(t, patience, time.Since(began), "later requests do not wait at all")
		require.EqualValues(t, 1, asked.Load())
		close(hang)
		synctest.Wait()
		_, _, err = i.discover(t.Context())
		require.NoError(t, err)
	})
}

// A token whose key must be fetched waits for the issuer's keys, but not for long.
func TestIssuer_KeysThatHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const url = "https://login.example.com"
		hang := make(chan struct{})
		i := newIssuer(url, transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/keys" {
				<-hang
				return nil, errors.New("too late")
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"issuer": "` + url + `", "jwks_uri": "` + url + `/keys"}`))}, nil
		}))
		_, keys, err := i.discover(t.Context())
		require.NoError(t, err)
		began := time.Now()
		watched := &watchedKeys{keys: keys}
		_, err = watched.VerifySignature(t.Context(), "eyJhbGciOiJSUzI1NiIsImtpZCI6ImEifQ.e30.c2ln")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, watched.failed, context.DeadlineExceeded, "the keys are missing; the signature may be right")
		require.Equal(t, patience, time.Since(began))
		close(hang)
		synctest.Wait()
	})
}

// While the issuer's keys cannot be fetched, the known ones count, for an hour at most.
func TestIssuer_KeysOutliveAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const url = "https://login.example.com"
		var down atomic.Bool
		i := newIssuer(url, transport(func(r *http.Request) (*http.Response, error) {
			if down.Load() && r.URL.Path == "/keys" {
				return &http.Response{StatusCode: http.StatusBadGateway, Body: http.NoBody}, nil
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"issuer": "` + url + `", "jwks_uri": "` + url + `/keys", "keys": []}`))}, nil
		}))
		_, keys, err := i.discover(t.Context())
		require.NoError(t, err)
		require.NoError(t, i.known.fetchKeys(t.Context()))
		known := func() bool {
			_, _, err := i.discover(t.Context()) // begins another attempt
			require.NoError(t, err)
			synctest.Wait()
			_, again, err := i.discover(t.Context())
			require.NoError(t, err)
			return again == keys
		}
		down.Store(true)
		time.Sleep(keysFor)
		require.True(t, known())
		time.Sleep(keysAtMost - keysFor - fetchEvery)
		require.True(t, known())
		down.Store(false)
		time.Sleep(fetchEvery - time.Millisecond)
		require.True(t, known(), "the last answer of the issuer is remembered")
		time.Sleep(time.Millisecond)
		require.False(t, known())
		synctest.Wait()
	})
}

// Keys that have counted for an hour do not count while the issuer's new ones cannot be fetched. Logins can begin.
func TestIssuer_OldKeysEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const url = "https://login.example.com"
		i := newIssuer(url, transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/keys" {
				return nil, errors.New("away")
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"issuer": "` + url + `", "jwks_uri": "` + url + `/keys"}`))}, nil
		}))
		_, keys, err := i.discover(t.Context())
		require.NoError(t, err)
		time.Sleep(keysAtMost)
		_, again, err := i.discover(t.Context())
		require.NoError(t, err)
		require.NotSame(t, keys, again)
	})
}
