// Package port settles on TCP addresses before a server that cannot report a taken one listens there. It knows nothing
// of the servers.
package port

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// TakenError says that somebody listens on an address already.
type TakenError struct {
	// Addr is the address that was asked for, as host:port.
	Addr string
}

// Error names the address.
func (e *TakenError) Error() string { return e.Addr + " is taken by another process" }

// Claim checks that addr (host:port) can be listened on and returns it with a port of 0 replaced by a free one. The
// address is not held: it is free at the moment Claim returns, and a picked port is not picked again for about a minute.
// It fails with a *TakenError when another process listens there.
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
	defer listener.Close() // nothing is lost when closing an unused listener fails
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

// Number is the port of a host:port address; 0 when there is none.
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

// linger leaves a connection of the listener in TIME_WAIT. The system does not hand out such a port as a free one, yet a
// server that asks for it by number gets it; so parallel tests do not pick each other's ports.
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
	// The side that closes first is the one that stays in TIME_WAIT.
	return errors.Join(incoming.Close(), outgoing.Close())
}
