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
