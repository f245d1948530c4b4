package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/jig-run/jig/internal/outbound"
	"github.com/jig-run/jig/tools"
)

// transport returns a transport that dials through the guard. For requests that are not idempotent, keep-alive must be off: if a kept
// connection breaks, net/http repeats a request that has an Idempotency-Key.
func transport(options Options, keepAlive bool) http.RoundTripper {
	t := outbound.Transport(outbound.Options{AllowLoopback: options.AllowLoopback, AllowHosts: options.AllowHosts})
	t.DisableKeepAlives = !keepAlive
	t.MaxIdleConns, t.IdleConnTimeout = idleConnections, idleTimeout
	t.MaxResponseHeaderBytes = maxHeaderBytes
	return outbound.Confined(tools.Transport(t))
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
		return errors.New("only http and https URLs are supported")
	case u.Hostname() == "":
		return errors.New("the URL has no host")
	case u.User != nil:
		return errors.New("the URL contains credentials; write a tool of your own that adds them")
	}
	return nil
}
