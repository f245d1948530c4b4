package e2e_test

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// collector receives traces as OpenTelemetry collectors do.
type collector struct {
	*httptest.Server

	mu    sync.Mutex
	spans []received
	// raw is everything that arrived, as text.
	raw strings.Builder
}

// received is a span with the name of the service that sent it.
type received struct {
	*tracepb.Span

	service string
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collectorpb.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Authorization") != "Bearer of-the-collector" || proto.Unmarshal(body, &sent) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw.WriteString(protojson.Format(&sent))
		for _, resource := range sent.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				for _, span := range scope.GetSpans() {
					c.spans = append(c.spans, received{span, attributeOf(resource.GetResource().GetAttributes(), "service.name")})
				}
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
		answer, err := proto.Marshal(&collectorpb.ExportTraceServiceResponse{})
		if err == nil {
			_, _ = w.Write(answer) //nolint:errcheck // the exporter would send again
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// environment returns the settings that send traces to the collector.
func (c *collector) environment(more ...string) []string {
	return append([]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20of-the-collector", "OTEL_BSP_SCHEDULE_DELAY=100",
	}, more...)
}

// all returns the spans so far.
func (c *collector) all() []received {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]received{}, c.spans...)
}

// names returns the names of the spans so far.
func (c *collector) names() (names []string) {
	for _, span := range c.all() {
		names = append(names, span.GetName()+" of "+attributeOf(span.GetAttributes(), "gen_ai.conversation.id"))
	}
	return names
}

// named waits for the only span with a name that belongs to a session.
func (c *collector) named(t *testing.T, session, name string) (found received) {
	t.Helper()
	require.True(t, eventually(t.Context(), patience, func() bool {
		n := 0
		for _, span := range c.all() {
			if span.GetName() == name && (session == "" || attributeOf(span.GetAttributes(), "gen_ai.conversation.id") == session) {
				found = span
				n++
			}
		}
		return n == 1
	}), "there is not exactly one span %q of %s among %v", name, session, c.names())
	return found
}

// attributeOf returns an attribute as text.
func attributeOf(attributes []*commonpb.KeyValue, key string) string {
	for _, a := range attributes {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// links returns the ids of the spans to which a span has links.
func (r received) links() (ids []string) {
	for _, link := range r.GetLinks() {
		ids = append(ids, hex.EncodeToString(link.GetTraceId())+"/"+hex.EncodeToString(link.GetSpanId()))
	}
	return ids
}

func (r received) id() string {
	return hex.EncodeToString(r.GetTraceId()) + "/" + hex.EncodeToString(r.GetSpanId())
}

// under asserts that a span is a child of another one.
func (r received) under(t *testing.T, parent received) {
	t.Helper()
	require.Equal(t, hex.EncodeToString(parent.GetTraceId()), hex.EncodeToString(r.GetTraceId()), "%s and %s belong to different traces", r.GetName(), parent.GetName())
	require.Equal(t, hex.EncodeToString(parent.GetSpanId()), hex.EncodeToString(r.GetParentSpanId()), "%s is not a child of %s", r.GetName(), parent.GetName())
}

// traceparent is the header of a client that writes traces itself.
const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// A session that starts over HTTP and waits for one approval is one tree: the client's own span, the request, the session, its passes with the
// requests to the model, and its calls. The decision has links to what was asked and to the request that decided.
func TestTraces_SessionWithAnApproval(t *testing.T) {
	t.Parallel()
	to := newCollector(t)
	d := newTestEnv(t, to.environment("OPENAI_API_KEY=sk-worker-secret")...)
	d.start()
	c := apiClient{d.serve(), d.apiKey(jig.DefaultTenant, everything()...)}
	id := jig.DefaultTenant + ".s-" + d.name
	answer, body := c.send(http.MethodPost, "/v1/sessions", map[string]any{"id": id, "document": writer(), "task": "the secret task"},
		"Traceparent", traceparent, "Baggage", "token=of-the-client")
	require.Equal(t, http.StatusCreated, answer.StatusCode, string(body))
	asked := c.waits(id)
	request := to.named(t, id, "approval.request file.write")

	// While the session waits, nothing is open that a collector has not got: the wait itself is no span.
	start := to.named(t, "", "POST /v1/sessions")
	session, pass := to.named(t, id, "session draft:probe"), to.named(t, id, "invoke_agent draft:probe")
	chat := to.named(t, id, "chat probe")
	require.Equal(t, "jig-server", start.service)
	require.Equal(t, "jig-worker", session.service)
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", hex.EncodeToString(start.GetTraceId()))
	require.Equal(t, "b7ad6b7169203331", hex.EncodeToString(start.GetParentSpanId()))
	session.under(t, start)
	pass.under(t, session)
	chat.under(t, pass)
	request.under(t, pass)
	require.Equal(t, tracepb.Span_SPAN_KIND_SERVER, start.GetKind())
	require.Equal(t, tracepb.Span_SPAN_KIND_CLIENT, chat.GetKind())
	require.Equal(t, "chat", attributeOf(chat.GetAttributes(), "gen_ai.operation.name"))
	require.Equal(t, "script", attributeOf(chat.GetAttributes(), "gen_ai.provider.name"))
	require.Equal(t, "probe", attributeOf(chat.GetAttributes(), "gen_ai.request.model"))

	decided, body := c.send(http.MethodPost, "/v1/approvals/"+id+"/decision", map[string]any{"call": asked.Call, "answer": "approve", "digest": asked.Digest})
	require.Equal(t, http.StatusOK, decided.StatusCode, string(body))
	require.True(t, eventually(t.Context(), patience, func() bool {
		return get[protocol.SessionResult](c, "/v1/sessions/"+id+"/result?wait=30").Answer == "it is written"
	}))
	decision, call := to.named(t, id, "approval.decision file.write"), to.named(t, id, "execute_tool file.write")
	deciding, ended := to.named(t, "", "POST /v1/approvals/{session}/decision"), to.named(t, id, "session ended")
	decision.under(t, pass)
	call.under(t, pass)
	require.NotEqual(t, start.GetTraceId(), deciding.GetTraceId(), "the person's request is a trace of its own")
	require.ElementsMatch(t, []string{request.id(), deciding.id()}, decision.links())
	require.Equal(t, []string{decision.id()}, call.links())
	require.Equal(t, "approved", attributeOf(decision.GetAttributes(), "jig.approval.outcome"))
	require.Equal(t, asked.Call, attributeOf(call.GetAttributes(), "gen_ai.tool.call.id"))
	require.Equal(t, "completed", attributeOf(ended.GetAttributes(), "jig.session.status"))
	require.GreaterOrEqual(t, decision.GetStartTimeUnixNano(), request.GetEndTimeUnixNano(), "no span covers the wait")

	to.mu.Lock()
	defer to.mu.Unlock()
	for _, private := range []string{
		"the secret task", "hello", "note.txt", "it is written", "Do what the script says", // content
		c.key, c.key[strings.LastIndex(c.key, "_")+1:], "sk-worker-secret", "of-the-collector", "of-the-client", "postgres://", // secrets
	} {
		require.NotContains(t, to.raw.String(), private)
	}
}

// With the setting for it, spans have content, in the form that the conventions describe. A session has a trace of its own if the request that started
// it had none, and so has each of its children.
func TestTraces_ContentIfWanted(t *testing.T) {
	t.Parallel()
	to := newCollector(t)
	d := newTestEnv(t, to.environment("JIG_TRACE_CONTENT=true", "OPENAI_API_KEY=sk-worker-secret")...)
	d.start()
	id := d.run(writer(), map[string]any{"topic": "weather"})
	d.waiting(id)
	d.signal(id, protocol.SignalDeny, map[string]string{"call": "1.1", "by": "ana"})
	require.Equal(t, jig.StatusCompleted, d.finish(id).Status)
	to.named(t, id, "session ended")
	session, denied := to.named(t, id, "session draft:probe"), to.named(t, id, "approval.decision file.write")
	require.Empty(t, session.GetParentSpanId(), "the session begins the trace")
	require.Equal(t, session.GetTraceId(), denied.GetTraceId())
	require.Equal(t, "denied", attributeOf(denied.GetAttributes(), "jig.approval.outcome"))
	require.Len(t, denied.links(), 1, "a signal has no request of its own")
	require.Contains(t, attributeOf(session.GetAttributes(), "jig.session.input"), "weather")
	var said []struct {
		Role         string
		FinishReason string `json:"finish_reason"`
		Parts        []struct {
			Type      string
			Name      string
			Arguments map[string]string
		}
	}
	var first received
	for _, span := range to.all() {
		if span.GetName() == "chat probe" && (first.Span == nil || span.GetStartTimeUnixNano() < first.GetStartTimeUnixNano()) {
			first = span
		}
	}
	require.NoError(t, json.Unmarshal([]byte(attributeOf(first.GetAttributes(), "gen_ai.output.messages")), &said))
	require.Equal(t, "tool_call", said[0].FinishReason)
	require.Equal(t, "tool_call", said[0].Parts[0].Type)
	require.Equal(t, "hello", said[0].Parts[0].Arguments["content"])
	require.Contains(t, attributeOf(first.GetAttributes(), "gen_ai.system_instructions"), "Do what the script says")
	to.mu.Lock()
	defer to.mu.Unlock()
	require.NotContains(t, to.raw.String(), "sk-worker-secret")
}
