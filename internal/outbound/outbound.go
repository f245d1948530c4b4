// Package outbound makes HTTP connections to addresses that somebody else chose: a model, a document or a tenant. It must not know what is
// sent or why.
package outbound

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"code.dny.dev/ssrf"

	"github.com/jig-run/jig/internal/confine"
)

// dialTimeout limits how long connecting may take, and then the TLS handshake.
const dialTimeout = 10 * time.Second

// Options say which addresses besides public ones can be reached.
type Options struct {
	// AllowLoopback allows 127.0.0.0/8 and ::1.
	AllowLoopback bool
	// AllowHosts are names or addresses, as host or host:port, that may lead anywhere.
	AllowHosts []string
}

// Transport returns a transport that connects only to public addresses and to those that the options allow, whatever a host name resolves
// to. It ignores proxies from the environment, because a proxy could reach what is forbidden here. The caller sets the limits of responses
// and idle connections.
func Transport(o Options) *http.Transport {
	settings := []ssrf.Option{ssrf.WithAnyPort()}
	if o.AllowLoopback {
		settings = append(settings,
			ssrf.WithAllowedV4Prefixes(netip.MustParsePrefix("127.0.0.0/8")), ssrf.WithAllowedV6Prefixes(netip.MustParsePrefix("::1/128")))
	}
	guarded := &net.Dialer{Timeout: dialTimeout, Control: ssrf.New(settings...).Safe}
	open := &net.Dialer{Timeout: dialTimeout}
	allowed := allowList(o.AllowHosts)
	return &http.Transport{
		Proxy: nil,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if confine.IsOffline(ctx) {
				return nil, confine.ErrOffline
			}
			if allowed(address) {
				return open.DialContext(ctx, network, address)
			}
			return guarded.DialContext(ctx, network, address)
		},
		TLSHandshakeTimeout: dialTimeout,
	}
}

// Confined returns a transport that refuses requests whose context is offline (see package confine), even over a connection that is open.
func Confined(t http.RoundTripper) http.RoundTripper { return confined{t} }

type confined struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (c confined) RoundTrip(request *http.Request) (*http.Response, error) {
	if confine.IsOffline(request.Context()) {
		return nil, confine.ErrOffline
	}
	return c.next.RoundTrip(request) //nolint:wrapcheck // a transport returns the error of the one that it guards
}

// Forbidden reports whether a request failed because its address must not be reached.
func Forbidden(err error) bool {
	return errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork) || errors.Is(err, ssrf.ErrProhibitedPort)
}

// allowList returns a function that matches host:port against names given as host or host:port.
func allowList(hosts []string) func(address string) bool {
	var list []string
	for _, host := range hosts {
		list = append(list, strings.ToLower(strings.TrimSpace(host)))
	}
	return func(address string) bool {
		address = strings.ToLower(address)
		host, _, err := net.SplitHostPort(address)
		return slices.Contains(list, address) || (err == nil && slices.Contains(list, host))
	}
}
