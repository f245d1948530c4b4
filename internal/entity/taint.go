package entity

import (
	"context"
	"sync/atomic"
)

// Taint accompanies the entities that a call reads and writes: what is written by a session that has read untrusted data is not trusted, and a
// call that reads it has read untrusted data. It is passed in the context, because every way to read an entity must take part.
type Taint struct {
	// Session reports that the session has read untrusted data.
	Session bool
	read    atomic.Bool
}

type taintKey struct{}

// WithTaint returns a context in which entities are read and written under t.
func WithTaint(ctx context.Context, t *Taint) context.Context {
	return context.WithValue(ctx, taintKey{}, t)
}

// Read reports whether anything was read that is not trusted.
func (t *Taint) Read() bool { return t.read.Load() }

// Tainted reports whether what is written in this context is not trusted.
func Tainted(ctx context.Context) bool {
	t, ok := ctx.Value(taintKey{}).(*Taint)
	return ok && t.Session
}

// Traced reports whether somebody wants to know what is read in this context.
func Traced(ctx context.Context) bool {
	_, ok := ctx.Value(taintKey{}).(*Taint)
	return ok
}

// MarkRead records in the context that something was read that is not trusted.
func MarkRead(ctx context.Context) {
	if t, ok := ctx.Value(taintKey{}).(*Taint); ok {
		t.read.Store(true)
	}
}
