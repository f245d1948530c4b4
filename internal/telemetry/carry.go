package telemetry

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// header is the name of the Temporal header that carries traces.
const header = "jig-trace"

// carried holds the span contexts that reach an activity through Temporal.
type carried struct {
	// Session is the span that started the session, and Request the one of the update that is handled now. Both may be invalid.
	Session, Request trace.SpanContext
}

// written is the form of carried in a header.
type written struct {
	Session string `json:"session,omitempty"`
	Request string `json:"request,omitempty"`
}

type carriedKey struct{}

func carriedIn(ctx context.Context) carried {
	if known, ok := ctx.Value(carriedKey{}).(carried); ok {
		return known
	}
	return carried{}
}

// Propagators returns what the options of a Temporal client need to carry traces to workflows and activities. Without a tracer there is nothing.
func (t *Tracer) Propagators() []workflow.ContextPropagator {
	if t == nil {
		return nil
	}
	return []workflow.ContextPropagator{carrier{}}
}

// carrier writes the spans of requests into headers and reads them there. Workflows only pass them on. A header that cannot be read counts as
// none, because an error would keep the session from moving on.
type carrier struct{}

// Inject writes the span of the context into the header of a request to Temporal.
func (carrier) Inject(ctx context.Context, w workflow.HeaderWriter) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		write(w, written{Request: format(span)})
	}
	return nil
}

// Extract reads the header of an activity.
func (carrier) Extract(ctx context.Context, r workflow.HeaderReader) (context.Context, error) {
	got, ok := read(r)
	if !ok {
		return ctx, nil
	}
	return context.WithValue(ctx, carriedKey{}, carried{Session: parse(got.Session), Request: parse(got.Request)}), nil
}

// ExtractToWorkflow reads the header of a start, of an update or of a signal. The header of the start says to which trace the session belongs.
func (carrier) ExtractToWorkflow(ctx workflow.Context, r workflow.HeaderReader) (workflow.Context, error) {
	got, _ := read(r)
	if started, ok := ctx.Value(carriedKey{}).(written); ok {
		return workflow.WithValue(ctx, carriedKey{}, written{Session: started.Session, Request: got.Request}), nil
	}
	switch {
	case got.Session != "": // another session has started it, or it continues
	case scheduled(ctx): // the header is that of the request which made the schedule
	default:
		got.Session = got.Request
	}
	if got.Session == "" { // sessions that this one starts belong to the same trace
		id := workflow.GetInfo(ctx).WorkflowExecution.ID
		got.Session = format(trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID(id), SpanID: rootSpan(traceID(id)), TraceFlags: trace.FlagsSampled}))
	}
	return workflow.WithValue(ctx, carriedKey{}, written{Session: got.Session}), nil
}

// InjectFromWorkflow writes the header of an activity, of a child workflow or of the next run.
func (carrier) InjectFromWorkflow(ctx workflow.Context, w workflow.HeaderWriter) error {
	if known, ok := ctx.Value(carriedKey{}).(written); ok {
		write(w, known)
	}
	return nil
}

// scheduled reports whether a schedule has started the workflow.
func scheduled(ctx workflow.Context) bool {
	by, ok := workflow.GetTypedSearchAttributes(ctx).GetKeyword(temporal.NewSearchAttributeKeyKeyword("TemporalScheduledById"))
	return ok && by != ""
}

// rootSpan is the id of the parent of the first span of a trace that begins with a session.
func rootSpan(id trace.TraceID) trace.SpanID { return spanID("root", id.String(), "") }

func write(w workflow.HeaderWriter, value written) {
	if payload, err := converter.GetDefaultDataConverter().ToPayload(value); err == nil {
		w.Set(header, payload)
	}
}

func read(r workflow.HeaderReader) (value written, ok bool) {
	payload, ok := r.Get(header)
	if !ok || converter.GetDefaultDataConverter().FromPayload(payload, &value) != nil {
		return written{}, false
	}
	return value, true
}

// format returns a span as the value of the HTTP header traceparent.
func format(span trace.SpanContext) string {
	return fmt.Sprintf("00-%s-%s-%s", span.TraceID(), span.SpanID(), span.TraceFlags()&trace.FlagsSampled)
}

// parse is the reverse of format. The result is invalid if there is no span in the text.
func parse(text string) trace.SpanContext {
	parts := strings.Split(text, "-")
	if len(parts) != 4 {
		return trace.SpanContext{}
	}
	config := trace.SpanContextConfig{Remote: true}
	var err error
	if config.TraceID, err = trace.TraceIDFromHex(parts[1]); err != nil {
		return trace.SpanContext{}
	}
	if config.SpanID, err = trace.SpanIDFromHex(parts[2]); err != nil {
		return trace.SpanContext{}
	}
	if parts[3] == trace.FlagsSampled.String() {
		config.TraceFlags = trace.FlagsSampled
	}
	return trace.NewSpanContext(config)
}
