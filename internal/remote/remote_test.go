package remote_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/remote"
)

// The credential goes to the address that the user named and to no other, whatever that one answers. Go's own client would send it on to another
// port of the host, also without TLS.
func TestDial_FollowsNoRedirect(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer other.Close()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL+r.URL.Path, status) }))
		_, err := remote.Dial(t.Context(), remote.Options{URL: server.URL, Token: func(context.Context) (string, error) { return "secret", nil }})
		require.Equal(t, jig.CodeUnavailable, jig.CodeOf(err))
		require.Contains(t, jig.AsError(err).Hint, "JIG_URL")
		server.Close()
	}
	require.False(t, reached.Load())
}

// A credential does not travel in clear text, except within this machine.
func TestDial_WantsTLS(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://jig.example.com", "http://10.0.0.1:8480", "ftp://jig.example.com", "jig.example.com", "https://ana@jig.example.com", ""} {
		_, err := remote.Dial(t.Context(), remote.Options{URL: address, Token: func(context.Context) (string, error) {
			require.Fail(t, "nobody asks for the credential")
			return "", nil
		}})
		require.Equal(t, []string{"INVALID_INPUT", "url"}, []string{string(jig.CodeOf(err)), jig.AsError(err).Field}, address)
	}
}
