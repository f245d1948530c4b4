package port_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/dev/internal/port"
)

func TestClaim_PicksAFreePort(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 20 {
		addr, err := port.Claim(t.Context(), "127.0.0.1:0")
		require.NoError(t, err)
		require.NotZero(t, port.Number(addr))
		require.False(t, seen[addr], "%s was picked twice", addr)
		seen[addr] = true

		listener, err := net.Listen("tcp", addr)
		require.NoError(t, err)
		require.NoError(t, listener.Close())
	}
}

func TestClaim_NamesTheTakenAddress(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })

	_, err = port.Claim(t.Context(), listener.Addr().String())
	var taken *port.TakenError
	require.ErrorAs(t, err, &taken)
	require.Equal(t, listener.Addr().String(), taken.Addr)
	require.ErrorContains(t, err, listener.Addr().String())
}

func TestClaim_RefusesNonsense(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"", "7233", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:70000"} {
		_, err := port.Claim(t.Context(), addr)
		require.Error(t, err, "%q", addr)
	}
}
