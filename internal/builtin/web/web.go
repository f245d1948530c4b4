// Package web contains the tools http.get and http.post. Addresses of internal networks cannot be reached unless the operator allows them,
// and every redirect is checked like the first address. The package must not depend on the caller or on the purpose of a call.
package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/outbound"
	"github.com/jig-run/jig/tools"
)

// The limits of the tools.
const (
	// Timeout bounds a request, including redirects and the body.
	Timeout = 30 * time.Second
	// MaxAttempts bounds the attempts of http.get, because a model that chose a wrong address must learn it soon.
	MaxAttempts = 3
	// MaxBody bounds the response body that is returned, in bytes after decompression.
	MaxBody = 1 << 20
	// MaxRequestBody is the largest body that http.post sends, in bytes.
	MaxRequestBody = 1 << 20
	// MaxRedirects is the number of redirects that http.get follows; http.post follows none.
	MaxRedirects = 5

	maxURL          = 8 << 10
	maxHeaders      = 50
	maxHeaderValue  = 8 << 10
	maxShownHeader  = 1 << 10
	maxHeaderBytes  = 256 << 10
	idleConnections = 32
	idleTimeout     = 10 * time.Second
)

// Options are the settings of the tools. With the zero value, only public addresses can be reached.
type Options struct {
	// AllowLoopback allows 127.0.0.0/8 and ::1.
	AllowLoopback bool
	// AllowHosts are names or addresses, as host or host:port, that may be reached even if they lead to internal addresses. Default: none.
	AllowHosts []string
	// UserAgent is sent unless a call sets its own; default "jig".
	UserAgent string
}

// Tools returns the tools of this package.
func Tools(options Options) []tools.Tool {
	if options.UserAgent == "" {
		options.UserAgent = "jig"
	}
	f := family{userAgent: options.UserAgent}
	f.getter = &http.Client{Transport: transport(options, true), CheckRedirect: checkRedirect}
	f.poster = &http.Client{Transport: transport(options, false), CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // only this address was approved
	}}
	return []tools.Tool{
		tools.New(jig.Tool{
			Name: "http.get", Category: "http",
			Description: "Fetches a web address (http or https) and returns status, headers and the body as text. Use it to read a page or an API; not to " +
				"change anything, and not for files of the working directory. An answer like 404 is a result, not a failure: look at status. At most 1 MiB of the " +
				"body (truncated says that there is more); binary bodies are refused; addresses of internal networks cannot be reached.",
			Permission: jig.PermissionRead, Risk: jig.RiskModerate, Idempotent: true, Timeout: Timeout, MaxAttempts: MaxAttempts, Tags: []string{"web"},
			Labels: &jig.Labels{Reads: []string{jig.ReadsUntrusted}, Sends: true},
		}, f.get, tools.Fill(func(_ context.Context, _ jig.Invocation, in *getInput) error { return normalize(&in.Headers) }), tools.AdjustInput(nameHeaders)),
		tools.New(jig.Tool{
			Name: "http.post", Category: "http",
			Description: "Sends a body to a web address (http or https) by POST and returns status, headers and the body as text. Use it to make another " +
				"system do something; to read use http.get. A person has to approve it. A string body is sent unchanged, anything else as JSON. An answer like " +
				"500 is a result, not a failure: look at status. Redirects are not followed.",
			Permission: jig.PermissionWrite, Risk: jig.RiskHigh, Timeout: Timeout, Tags: []string{"web", "write"},
			ConcurrencyKey: `'http ' + input.url`,
			Labels:         &jig.Labels{Reads: []string{jig.ReadsUntrusted}, Sends: true},
		}, f.post, tools.Fill(func(_ context.Context, _ jig.Invocation, in *postInput) error { return normalize(&in.Headers) }), tools.AdjustInput(nameHeaders),
			tools.WithPreview(f.previewPost)),
	}
}

// family holds what the handlers share.
type family struct {
	getter, poster *http.Client
	userAgent      string
}

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
