package telemetry

import (
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Handler writes a span for each request that next answers. The span has the pattern of the request's route, but no value from the request. The
// span of an event stream ends when the stream begins.
func (t *Tracer) Handler(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		method := knownMethod(r.Method)
		ctx, span := t.tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.String("http.request.method", method)))
		*r = *r.WithContext(ctx) // the caller reads the pattern from its request
		answer := &answered{ResponseWriter: w}
		end := func() {
			if _, route, ok := strings.Cut(r.Pattern, " "); ok {
				span.SetName(method + " " + route)
				span.SetAttributes(attribute.String("http.route", route))
			}
			if answer.status != 0 {
				span.SetAttributes(attribute.Int("http.response.status_code", answer.status))
			}
			if answer.status >= http.StatusInternalServerError {
				span.SetAttributes(attribute.String("error.type", strconv.Itoa(answer.status)))
				span.SetStatus(codes.Error, "")
			}
			span.End()
		}
		answer.streams = end
		defer end() // a span that has ended stays as it is
		next.ServeHTTP(answer, r)
	})
}

// knownMethod returns a method, or the name that the conventions have for all others.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "_OTHER"
}

// answered remembers the status of an answer.
type answered struct {
	http.ResponseWriter
	status  int
	streams func()
}

// WriteHeader implements [http.ResponseWriter].
func (a *answered) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
		if strings.HasPrefix(a.Header().Get("Content-Type"), "text/event-stream") {
			a.streams()
		}
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *answered) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(b) //nolint:wrapcheck // it is the caller's writer
}

// Unwrap lets [http.ResponseController] find the connection.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }
