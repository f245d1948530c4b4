package server

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// The health check of the container finds a server on whatever address it listens, and fails as soon as it stops.
func TestProbe_ReportsReadiness(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(s *Settings) { s.PublicURL = "https://jig.example.com" })
	asked := Settings{Address: r.listener.Addr().String()}
	require.NoError(t, asked.Probe(t.Context()), "probes may come to any address")
	answer, err := http.Get("http://" + asked.Address + "/v1/me")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusMisdirectedRequest, answer.StatusCode)
	r.api.Drain()
	require.ErrorContains(t, asked.Probe(t.Context()), "not ready")
	r.Stop(t.Context())
	err = asked.Probe(t.Context())
	require.Equal(t, jig.CodeUnavailable, jig.CodeOf(err))
	require.Equal(t, EnvAddress, jig.AsError(err).Field)
	require.Equal(t, EnvAddress, jig.AsError(Settings{Address: "8480"}.Probe(t.Context())).Field)
}
