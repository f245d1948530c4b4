package tools

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/jig-run/jig"
)

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
