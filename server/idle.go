package server

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"

	"github.com/jig-run/jig/internal/httpapi"
)

// maxIdle is the maximum number of connections from the network of a client's address on which no request is being served.
const maxIdle = 100

// idle bounds the connections that wait for a request, by the network of the client's address. Those of proxies are not bounded.
type idle struct {
	proxies []netip.Prefix

	mu sync.Mutex
	// from holds the waiting connections of each network, the oldest first, and at finds them.
	from map[string]*list.List
	at   map[net.Conn]*list.Element
}

func newIdle(proxies []netip.Prefix) *idle {
	return &idle{proxies: proxies, from: map[string]*list.List{}, at: map[net.Conn]*list.Element{}}
}

// note implements ConnState of [http.Server]. If a network has too many waiting connections, it closes the oldest one.
func (i *idle) note(c net.Conn, state http.ConnState) {
	client, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return
	}
	ip := client.Addr().Unmap().WithZone("")
	if slices.ContainsFunc(i.proxies, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return
	}
	network := httpapi.Network(ip)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.remove(network, c)
	if state != http.StateNew && state != http.StateIdle { // a request that arrives slowly still counts as waiting
		return
	}
	waiting := i.from[network]
	if waiting == nil {
		waiting = list.New()
		i.from[network] = waiting
	}
	i.at[c] = waiting.PushBack(c)
	if waiting.Len() > maxIdle {
		oldest, _ := waiting.Front().Value.(net.Conn) //nolint:errcheck // the list holds nothing else
		i.remove(network, oldest)
		go func() { _ = oldest.Close() }() // with TLS it may block for seconds
	}
}

// remove forgets a connection. It must be called with the lock.
func (i *idle) remove(network string, c net.Conn) {
	at, waits := i.at[c]
	if !waits {
		return
	}
	delete(i.at, c)
	waiting := i.from[network]
	if waiting.Remove(at); waiting.Len() == 0 {
		delete(i.from, network)
	}
}
