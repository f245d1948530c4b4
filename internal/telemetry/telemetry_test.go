package telemetry_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/setting"
	"github.com/jig-run/jig/internal/telemetry"
)

func read(t *testing.T, env map[string]string) (telemetry.Settings, error) {
	t.Helper()
	r := setting.Reader{Env: env}
	return telemetry.ReadSettings(&r), r.Err()
}

func TestSettings_AreRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env map[string]string
		on  bool
	}{
		"nothing is set":         {nil, false},
		"an endpoint":            {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}, true},
		"an endpoint for traces": {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://localhost:4318/v1/traces"}, true},
		"disabled":               {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", "OTEL_SDK_DISABLED": "true"}, false},
		"no exporter":            {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", "OTEL_TRACES_EXPORTER": "none"}, false},
		"only content":           {map[string]string{telemetry.EnvContent: "true"}, false},
	} {
		s, err := read(t, c.env)
		require.NoError(t, err, name)
		require.Equal(t, c.on, s.On, name)
		require.Equal(t, c.env[telemetry.EnvContent] == "true", s.Content, name)
	}
	_, err := read(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
	require.ErrorContains(t, err, "OTEL_EXPORTER_OTLP_PROTOCOL is not http/protobuf")
	require.Equal(t, "OTEL_EXPORTER_OTLP_PROTOCOL", jig.AsError(err).Field)
}

// Without a collector there is no tracer, nothing is added to Temporal's options, to the handler or to the model, and nothing is allocated.
func TestTracer_DoesNothingIfOff(t *testing.T) { //nolint:paralleltest // AllocsPerRun wants no parallel tests
	tracer, err := telemetry.Start(t.Context(), telemetry.Settings{Content: true}, "jig-worker", slog.Default())
	require.NoError(t, err)
	require.Nil(t, tracer)
	require.Nil(t, tracer.Propagators())
	handler, model := http.NewServeMux(), &silent{}
	require.Same(t, handler, tracer.Handler(handler))
	require.Same(t, model, tracer.Model(model))
	require.NoError(t, tracer.Stop(t.Context()))
	require.Zero(t, testing.AllocsPerRun(10, func() { everything(t.Context(), tracer) }))
}

// silent is a model that fails.
type silent struct{}

func (*silent) Answer(context.Context, chat.Request, func(string)) (chat.Turn, error) {
	return chat.Turn{}, errors.New("the model was told a secret")
}

func (*silent) Check(string) error { return nil }

// everything has a tracer write one span of each kind that activities write.
func everything(ctx context.Context, tracer *telemetry.Tracer) {
	session := jig.Session{Tenant: "acme", ID: "s-1", Agent: jig.Agent{Name: "probe", Model: "script/probe"}}
	call := jig.Call{Tenant: "acme", SessionID: "s-1", ID: "1.1", Pass: 1, Tool: "test.write", Verdict: jig.VerdictAsk, Status: jig.CallReserved}
	tracer.SessionStarted(ctx, session, session.CreatedAt)
	in, end := tracer.Pass(ctx, session, 1)
	end(nil)
	tracer.Asked(in, session)
	tracer.Decided(ctx, call)
	_, ended := tracer.Call(ctx, call, 1)
	ended(jig.ToolResult{})
	tracer.CallBegun(ctx, call)
	tracer.CallRefused(ctx, call)
	tracer.SessionEnded(ctx, ledger.End{Status: jig.StatusCompleted})
}

// The handler does not hide the pattern of the route from the request of its caller.
func TestHandler_KeepsThePattern(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	tracer, err := telemetry.Start(t.Context(), telemetry.Settings{On: true}, "jig-server", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/sessions/{session}", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	})
	request, answer := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/sessions/s-1", nil), httptest.NewRecorder()
	tracer.Handler(mux).ServeHTTP(answer, request)
	require.Equal(t, "GET /v1/sessions/{session}", request.Pattern)
}
