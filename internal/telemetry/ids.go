package telemetry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// The kinds of derived ids.
const (
	ofSession  = "session"
	ofPass     = "pass"
	ofCall     = "call"
	ofRequest  = "approval.request"
	ofDecision = "approval.decision"
)

// spanID derives the id of a span.
func spanID(kind, session, name string) (id trace.SpanID) {
	sum := sha256.Sum256([]byte("jig span\x00" + kind + "\x00" + session + "\x00" + name))
	copy(id[:], sum[:])
	return id
}

// traceID derives the id of the trace of a session that no request with a trace has started.
func traceID(session string) (id trace.TraceID) {
	sum := sha256.Sum256([]byte("jig trace\x00" + session))
	copy(id[:], sum[:])
	return id
}

// passOf returns the number of the pass in which a call was made, as it begins the call's id.
func passOf(call string) string {
	pass, _, _ := strings.Cut(call, ".")
	return pass
}

// passSpan returns the id of the span of a pass. The session of a single call has one span, which is that of its pass.
func passSpan(session string, pass int) trace.SpanID {
	return spanID(ofPass, session, strconv.Itoa(pass))
}

// ids makes the ids of spans: those in the context, and otherwise random ones.
type ids struct{}

// wantedIDs are the ids of the next span.
type wantedIDs struct {
	trace trace.TraceID
	span  trace.SpanID
}

type wantedKey struct{}

func wantedIn(ctx context.Context) wantedIDs {
	if wanted, ok := ctx.Value(wantedKey{}).(wantedIDs); ok {
		return wanted
	}
	return wantedIDs{}
}

// NewIDs implements [sdktrace.IDGenerator] for spans without a parent.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	wanted := wantedIn(ctx)
	if !wanted.trace.IsValid() {
		_, _ = rand.Read(wanted.trace[:])
	}
	return wanted.trace, ids{}.NewSpanID(ctx, wanted.trace)
}

// NewSpanID implements [sdktrace.IDGenerator].
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	wanted := wantedIn(ctx)
	if !wanted.span.IsValid() {
		_, _ = rand.Read(wanted.span[:])
	}
	return wanted.span
}
