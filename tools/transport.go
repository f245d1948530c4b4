package tools

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"

	"github.com/jig-run/jig"
)

// Transport returns a transport for the HTTP clients of tools; nil means a copy of [http.DefaultTransport]. If no connection was established,
// nothing can have been sent, and the error is UNAVAILABLE with NotExecuted set: no host of that name, a refused connection, a failed TLS
// handshake. Jig then repeats the call later, even if its tool is not idempotent, and asks nobody.
//
// Other errors are those of next. So are all errors of a redirect, and all of a run of a tool in which a request other than GET, HEAD or
// OPTIONS was sent before: the call has had an effect then, or may have had one.
func Transport(next *http.Transport) http.RoundTripper {
	if next == nil {
		if standard, ok := http.DefaultTransport.(*http.Transport); ok {
			next = standard.Clone()
		} else {
			next = &http.Transport{Proxy: http.ProxyFromEnvironment}
		}
	}
	return transport{next}
}

type transport struct{ next *http.Transport }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	effect, ok := ctx.Value(effectKey{}).(*atomic.Bool)
	if !ok {
		effect = &atomic.Bool{}
	}
	var connected atomic.Bool
	response, err := t.next.RoundTrip(request.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			connected.Store(true)
			switch request.Method {
			case "", http.MethodGet, http.MethodHead, http.MethodOptions:
			default:
				effect.Store(true)
			}
		},
	})))
	if err == nil || connected.Load() || effect.Load() || request.Response != nil {
		return response, err //nolint:wrapcheck // a transport returns the error of the one that it watches
	}
	code := jig.CodeUnavailable
	switch ctx.Err() {
	case context.DeadlineExceeded:
		code = jig.CodeTimeout
	case context.Canceled:
		code = jig.CodeInternal // the registry says CANCELED if the call was
	}
	return nil, &jig.Error{Code: code, Message: err.Error(), NotExecuted: true, Cause: err}
}

// CloseIdleConnections is called by [http.Client.CloseIdleConnections].
func (t transport) CloseIdleConnections() { t.next.CloseIdleConnections() }

// effectKey is the key of what a run of a tool has sent: whether any of its requests may have had an effect.
type effectKey struct{}

// watched returns the context of a run of a tool.
func watched(ctx context.Context) context.Context {
	return context.WithValue(ctx, effectKey{}, &atomic.Bool{})
}

// unreachable returns an error as UNAVAILABLE if it says only that the network failed, or that the other side was down.
func unreachable(err error) error {
	e := jig.AsError(err)
	if e == nil || e.Code != jig.CodeInternal || e.Reason != "" || !broken(e) {
		return err
	}
	return &jig.Error{Code: jig.CodeUnavailable, Message: e.Message, Hint: e.Hint, NotExecuted: e.NotExecuted, Cause: err}
}

// broken reports whether a request failed because of the network, or because the other side was down: no connection, a connection that broke,
// or a time-out. The same request may succeed later.
func broken(err error) bool {
	var timeout net.Error
	return neverConnected(err) || errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, context.DeadlineExceeded)
}

// neverConnected reports whether a request failed before a connection was established, so that nothing can have been sent.
func neverConnected(err error) bool {
	var op *net.OpError
	var lookup *net.DNSError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &lookup)
}
