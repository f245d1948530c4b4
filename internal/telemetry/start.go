package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/setting"
)

// Environment variables. The exporter reads the other OTEL_ variables itself, from the environment of the process.
const (
	envEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	envExporter       = "OTEL_TRACES_EXPORTER"
	envDisabled       = "OTEL_SDK_DISABLED"
	// EnvContent says whether spans contain prompts, answers, and the inputs and outputs of tools.
	EnvContent = "JIG_TRACE_CONTENT"
)

// maxContent bounds the value of an attribute, in characters, unless the environment sets another bound.
const maxContent = 32 << 10

// stopTimeout is how long sending the last spans may take.
const stopTimeout = 5 * time.Second

// Settings say whether to write traces.
type Settings struct {
	// On reports that the environment names a collector.
	On bool
	// Content puts prompts, answers, and the inputs and outputs of tools into spans.
	Content bool
}

// ReadSettings reads the settings.
func ReadSettings(env *setting.Reader) Settings {
	s := Settings{Content: env.Flag(EnvContent)}
	named := env.Text(envTracesEndpoint, env.Text(envEndpoint, "")) != ""
	s.On = named && !env.Flag(envDisabled) && env.Choice(envExporter, "otlp", "none") == "otlp"
	if protocol := env.Text(envTracesProtocol, env.Text(envProtocol, "http/protobuf")); s.On && protocol != "http/protobuf" {
		env.Refuse(envProtocol, "http/protobuf, the only protocol that jig speaks")
	}
	return s
}

// Describe returns the row of the collector for a help text.
func Describe() [2]string {
	return [2]string{envEndpoint, "collector of OpenTelemetry traces, e.g. http://localhost:4318; other OTEL_ variables apply too (docs/telemetry.md); without it no traces are written"}
}

// Tracer writes spans. A nil Tracer writes none.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	content  bool
}

// Start starts a tracer for a service, unless the settings ask for none: then it returns nil.
func Start(ctx context.Context, s Settings, service string, logger *slog.Logger) (*Tracer, error) {
	if !s.On {
		return nil, nil // a nil Tracer writes no spans
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "traces cannot be sent: %w", err).WithField(envEndpoint)
	}
	// The library knows one handler per process. Its own one writes to stderr, where command lines write their last error.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		logger.Warn("traces could not be sent", slog.Any("error", err))
	}))
	// What the environment says about the service wins.
	about, err := resource.Merge(resource.NewSchemaless(attribute.String("service.name", service), attribute.String("service.version", version())),
		resource.Environment())
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the attributes of the service cannot be read: %w", err).WithField("OTEL_RESOURCE_ATTRIBUTES")
	}
	return newTracer(s, sdktrace.WithBatcher(exporter), sdktrace.WithResource(about)), nil
}

func newTracer(s Settings, more ...sdktrace.TracerProviderOption) *Tracer {
	limits := sdktrace.NewSpanLimits()
	if limits.AttributeValueLengthLimit < 0 {
		limits.AttributeValueLengthLimit = maxContent
	}
	provider := sdktrace.NewTracerProvider(append(more, sdktrace.WithIDGenerator(ids{}), sdktrace.WithRawSpanLimits(limits))...)
	return &Tracer{provider: provider, tracer: provider.Tracer("github.com/jig-run/jig", trace.WithInstrumentationVersion(version())), content: s.Content}
}

// version returns the version of the program's main module.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return strings.Trim(info.Main.Version, "()")
	}
	return "devel"
}

// Stop sends the spans that are left, for a few seconds at most, even if ctx has ended.
func (t *Tracer) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return t.provider.Shutdown(ctx) //nolint:wrapcheck // it is only logged
}

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
