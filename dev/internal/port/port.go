// Package port picks and checks TCP addresses for servers that cannot report well that an address is in use. It does not depend
// on the servers.
package port

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// TakenError says that another process already listens on an address.
type TakenError struct {
	// Addr is the requested address, as host:port.
	Addr string
}

// Error names the address.
func (e *TakenError) Error() string { return e.Addr + " is taken by another process" }

// Claim checks that a server can listen on addr (host:port), and returns addr with port 0 replaced by a free port. It does not
// reserve the address, which is only known to be free when Claim returns. A port that it picked is not picked again for about
// a minute. The error is a *TakenError if another process listens on addr.
func Claim(ctx context.Context, addr string) (string, error) {
	host, number, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("address %q is not host:port: %w", addr, err)
	}
	if _, err := strconv.ParseUint(number, 10, 16); err != nil {
		return "", fmt.Errorf("address %q: the port must be a number from 0 to 65535", addr)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return "", &TakenError{Addr: addr}
	}
	if err != nil {
		return "", fmt.Errorf("listen on %s: %w", addr, err)
	}
	defer listener.Close() // an error of closing an unused listener does not matter
	if number != "0" {
		return addr, nil
	}
	picked := listener.Addr().String()
	_, number, err = net.SplitHostPort(picked)
	if err != nil {
		return "", fmt.Errorf("address %q that the system picked: %w", picked, err)
	}
	if err := linger(ctx, listener); err != nil {
		return "", err
	}
	return net.JoinHostPort(host, number), nil
}

// Number returns the port of a host:port address, or 0 if it has none.
func Number(addr string) int {
	_, number, err := net.SplitHostPort(addr)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return n
}

// linger leaves a connection of the listener in TIME_WAIT. The system does not pick such a port as a free one, but a server can
// still listen on it by number. So parallel tests do not pick each other's ports.
func linger(ctx context.Context, listener net.Listener) error {
	var dialer net.Dialer
	outgoing, err := dialer.DialContext(ctx, "tcp", listener.Addr().String())
	if err != nil {
		return fmt.Errorf("hold the picked port: %w", err)
	}
	incoming, err := listener.Accept()
	if err != nil {
		return errors.Join(fmt.Errorf("hold the picked port: %w", err), outgoing.Close())
	}
	// The side that closes first stays in TIME_WAIT.
	return errors.Join(incoming.Close(), outgoing.Close())
}
