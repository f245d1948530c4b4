package main

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/dev/internal/port"
	"github.com/jig-run/jig/dev/internal/stack"
)

func TestDemo_EvadesDefaultAddressesThatAreTaken(t *testing.T) {
	t.Parallel()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", anyPort)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, taken.Close()) })
	address := taken.Addr().String()
	free, err := port.Claim(t.Context(), anyPort)
	require.NoError(t, err)

	o := options{pgPort: port.Number(address), stack: stack.Options{TemporalAddress: address, UIAddress: free}}
	o.evade(t.Context(), func(string) bool { return false })
	require.Equal(t, options{stack: stack.Options{TemporalAddress: anyPort, UIAddress: free}}, o)

	o = options{pgPort: port.Number(address), stack: stack.Options{TemporalAddress: address, UIAddress: address}}
	given := o
	o.evade(t.Context(), func(string) bool { return true })
	require.Equal(t, given, o, "what the user has given is used, or reported as taken")
}
