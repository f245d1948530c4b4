package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"code.dny.dev/ssrf"
)

// transport returns a transport that dials through the guard. It ignores proxies from the environment, because a proxy could reach what the
// guard forbids. For requests that are not idempotent, keep-alive must be off: if a kept connection breaks, net/http repeats a request that
// has an Idempotency-Key.
func transport(options Options, keepAlive bool) *http.Transport {
	settings := []ssrf.Option{ssrf.WithAnyPort()}
	if options.AllowLoopback {
		settings = append(settings,
			ssrf.WithAllowedV4Prefixes(netip.MustParsePrefix("127.0.0.0/8")), ssrf.WithAllowedV6Prefixes(netip.MustParsePrefix("::1/128")))
	}
	guarded := &net.Dialer{Timeout: dialTimeout, Control: ssrf.New(settings...).Safe}
	open := &net.Dialer{Timeout: dialTimeout}
	allowed := allowList(options.AllowHosts)
	return &http.Transport{
		Proxy: nil,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if allowed(address) {
				return open.DialContext(ctx, network, address)
			}
			return guarded.DialContext(ctx, network, address)
		},
		DisableKeepAlives:      !keepAlive,
		MaxIdleConns:           idleConnections,
		IdleConnTimeout:        dialTimeout,
		TLSHandshakeTimeout:    dialTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
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

var (
	errRedirects = errors.New("too many redirects")
	errRefused   = errors.New("redirect refused")
)

// checkRedirect applies the rules for the first address to each redirect. If the redirect leads to another host, it removes the caller's
// headers, because they may be credentials.
func checkRedirect(next *http.Request, before []*http.Request) error {
	if len(before) > MaxRedirects {
		return errRedirects
	}
	if err := checkURL(next.URL); err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	first := before[0].URL
	if next.URL.Scheme != first.Scheme || next.URL.Host != first.Host {
		for name := range next.Header {
			if name != "User-Agent" && name != "Accept" && name != "Accept-Language" {
				next.Header.Del(name)
			}
		}
	}
	return nil
}

// checkURL refuses anything but a plain web address.
func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("only http and https addresses can be reached")
	case u.Hostname() == "":
		return errors.New("the address has no host")
	case u.User != nil:
		return errors.New("the address holds credentials; write a tool of your own that holds them")
	}
	return nil
}
