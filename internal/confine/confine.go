// Package confine marks contexts in which jig's own adapters must not write, or not reach the network. It must not know why.
package confine

import (
	"context"
	"errors"
)

// ErrOffline is the error of a connection in a context that must not reach the network.
var ErrOffline = errors.New("the network must not be reached here")

type readOnlyKey struct{}

type offlineKey struct{}

// ReadOnly returns a context in which the store refuses to write.
func ReadOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, readOnlyKey{}, true)
}

// Offline returns a context in which outbound connections are refused.
func Offline(ctx context.Context) context.Context {
	return context.WithValue(ctx, offlineKey{}, true)
}

// IsReadOnly reports whether the store must refuse to write.
func IsReadOnly(ctx context.Context) bool { return ctx.Value(readOnlyKey{}) != nil }

// IsOffline reports whether outbound connections must be refused.
func IsOffline(ctx context.Context) bool { return ctx.Value(offlineKey{}) != nil }
