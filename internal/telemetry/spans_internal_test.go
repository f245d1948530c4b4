package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
)

// recorded returns a tracer and the spans that it has ended.
func recorded(content bool, more ...sdktrace.TracerProviderOption) (*Tracer, func() tracetest.SpanStubs) {
	recorder := tracetest.NewSpanRecorder()
	t := newTracer(Settings{On: true, Content: content}, append(more, sdktrace.WithSpanProcessor(recorder))...)
	return t, func() tracetest.SpanStubs { return tracetest.SpanStubsFromReadOnlySpans(recorder.Ended()) }
}

// talker answers with a text, or fails.
type talker struct{ err error }

func (m talker) Answer(context.Context, chat.Request, func(string)) (chat.Turn, error) {
	return chat.Turn{Text: "private answer", Stop: chat.StopEnd}, m.err
}

func (talker) Check(string) error { return nil }

// work has a tracer write one span of each kind, each with content.
func work(ctx context.Context, t *testing.T, tracer *Tracer) {
	t.Helper()
	failed := jig.Errorf(jig.CodeUnavailable, "private error")
	session := jig.Session{
		Tenant: "acme", ID: "acme.s-1", Agent: jig.Agent{Name: "probe", Model: "script/probe"}, Task: "private task", Input: json.RawMessage(`"private input"`),
	}
	call := jig.Call{
		Tenant: "acme", SessionID: session.ID, ID: "1.1", Pass: 1, Tool: "test.write", Input: []byte(`"private argument"`), Verdict: jig.VerdictAsk,
		Status: jig.CallReserved,
	}
	tracer.SessionStarted(ctx, session, session.CreatedAt)
	in, end := tracer.Pass(ctx, session, 1)
	request := chat.Request{Model: "script/probe", System: "private system", SessionID: session.ID, Pass: 1}
	for _, err := range []error{nil, errors.New("private failure")} {
		_, answered := tracer.Model(talker{err}).Answer(in, request, nil)
		require.Equal(t, err, answered)
	}
	end(failed)
	tracer.Asked(ctx, session, jig.Pending{Call: "1.1", Tool: "test.write", Input: json.RawMessage(`"private"`), Reasons: []string{"private"}})
	tracer.Decided(ctx, call)
	_, ended := tracer.Call(ctx, call, 1)
	ended(jig.ToolResult{Data: json.RawMessage(`"private output"`), Error: failed})
	tracer.CallBegun(ctx, call)
	call.Status, call.Result = jig.CallDenied, &jig.ToolResult{Error: failed}
	tracer.CallRefused(ctx, call)
	tracer.SessionEnded(ctx, ledger.End{Tenant: "acme", SessionID: session.ID, Pass: 1, Status: jig.StatusFailed, Answer: "private", Error: failed})
}

func TestContent_IsLeftOutByDefault(t *testing.T) {
	t.Parallel()
	tracer, spans := recorded(false)
	work(t.Context(), t, tracer)
	require.Len(t, spans(), 10)
	require.NotContains(t, fmt.Sprint(spans()), "private")

	tracer, spans = recorded(true)
	work(t.Context(), t, tracer)
	said := fmt.Sprint(spans())
	for _, content := range []string{"private task", "private input", "private system", "private answer", "private argument", "private output"} {
		require.Contains(t, said, content)
	}
	for _, never := range []string{"private error", "private failure"} { // messages of errors may repeat what a provider was sent
		require.NotContains(t, said, never)
	}
}

// All spans of a session are in one trace, whoever writes them, and a sampler keeps all of them or none.
func TestSampling_FollowsTheSession(t *testing.T) {
	t.Parallel()
	none, spans := recorded(false, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(0))))
	work(t.Context(), t, none)
	require.Empty(t, spans())
	first, some := recorded(false)
	second, others := recorded(false)
	work(t.Context(), t, first)
	work(t.Context(), t, second)
	roots := 0
	for i, span := range some() {
		require.Equal(t, traceID("acme.s-1"), span.SpanContext.TraceID(), span.Name)
		require.Equal(t, span.SpanContext.TraceID(), others()[i].SpanContext.TraceID())
		if !span.Parent.IsValid() {
			roots++
		}
	}
	require.Equal(t, 1, roots, "only the session has no parent")
	require.Equal(t, some()[0].SpanContext.SpanID(), others()[0].SpanContext.SpanID(), "a span that is written again is the same")
	unsampled := trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID("x"), SpanID: spanID("x", "", ""), Remote: true})
	work(context.WithValue(t.Context(), carriedKey{}, carried{Session: unsampled}), t, first)
	require.Len(t, some(), 10, "what the client did not sample is not written")
}

// What is no span counts as none.
func TestParse_ReadsTraceparent(t *testing.T) {
	t.Parallel()
	valid := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	require.Equal(t, valid, format(parse(valid)))
	for _, text := range []string{"", "x", "00-0-0-0", "00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b71692033-01", valid + "-1"} {
		require.False(t, parse(text).IsValid(), text)
	}
}
