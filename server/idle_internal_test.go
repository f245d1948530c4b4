package server

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// dialed is a connection from an address.
type dialed struct {
	net.Conn
	from   string
	closed atomic.Bool
}

func (d *dialed) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(d.from))
}

func (d *dialed) Close() error {
	d.closed.Store(true)
	return nil
}

// Too many connections from a network close the oldest one that serves no request. Those of proxies, and of others, stay.
func TestIdle_ConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	i := newIdle([]netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")})
	open := func(from string) *dialed {
		d := &dialed{from: from}
		i.note(d, http.StateNew)
		return d
	}
	other, busy := open("203.0.113.9:1"), open("203.0.113.7:1")
	i.note(busy, http.StateActive)
	var attacker, proxied []*dialed
	for n := range maxIdle + 2 {
		attacker = append(attacker, open("203.0.113.7:"+strconv.Itoa(n+2)))
		proxied = append(proxied, open("192.0.2.1:"+strconv.Itoa(n+2)))
	}
	require.Eventually(t, func() bool { return attacker[0].closed.Load() && attacker[1].closed.Load() }, time.Minute, time.Millisecond)
	for _, kept := range append(append(proxied, attacker[2:]...), other, busy) {
		require.False(t, kept.closed.Load(), kept.from)
	}
	i.note(busy, http.StateIdle)
	require.Eventually(t, attacker[2].closed.Load, time.Minute, time.Millisecond, "its request is over")
	for _, c := range attacker {
		i.note(c, http.StateClosed)
	}
	i.note(busy, http.StateClosed)
	i.note(other, http.StateClosed)
	require.Empty(t, i.from)
	require.Empty(t, i.at)

	for n := range maxIdle + 1 {
		attacker[n] = open("[2001:db8::" + strconv.FormatInt(int64(n+1), 16) + "]:1")
	}
	require.Eventually(t, attacker[0].closed.Load, time.Minute, time.Millisecond, "an IPv6 network counts as one")
}
