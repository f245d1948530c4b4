package telemetry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

// within returns a context in which the span with a derived id is the parent of the next span. parent may be invalid: then the next span is the
// first of its trace, or a child of the request that started the session.
func (t *Tracer) within(ctx context.Context, session string, parent trace.SpanID) context.Context {
	from := carriedIn(ctx).Session
	begins := !from.IsValid() || from.SpanID() == rootSpan(from.TraceID())
	if !begins {
		if parent.IsValid() {
			from = from.WithSpanID(parent)
		}
		return trace.ContextWithRemoteSpanContext(ctx, from)
	}
	of := from.TraceID()
	if !of.IsValid() {
		of = traceID(session)
	}
	// The sampler decides by the id of the trace. A span that is never ended shows what it decides, because it is not exported.
	ctx = context.WithValue(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), wantedKey{}, wantedIDs{trace: of})
	if !parent.IsValid() {
		return ctx
	}
	_, first := t.tracer.Start(ctx, "session", trace.WithNewRoot())
	return trace.ContextWithRemoteSpanContext(ctx, first.SpanContext().WithSpanID(parent))
}

// start starts a span with a derived id.
func (t *Tracer) start(ctx context.Context, id trace.SpanID, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	wanted := wantedIn(ctx)
	wanted.span = id
	ctx, span := t.tracer.Start(context.WithValue(ctx, wantedKey{}, wanted), name, options...)
	return context.WithValue(ctx, wantedKey{}, wantedIDs{}), span
}

// SessionStarted writes the span of a session: from the time when its start was recorded until a worker took it.
func (t *Tracer) SessionStarted(ctx context.Context, s jig.Session, began time.Time) {
	if t == nil {
		return
	}
	var parent trace.SpanID
	if s.ParentID != "" {
		parent = spanID(ofCall, s.ParentID, s.ParentCall)
	}
	id, name := spanID(ofSession, s.ID, ""), "session "+s.Agent.Name
	if s.Agent.Name == jig.CallAgent {
		id, name = passSpan(s.ID, 1), "session call"
	}
	options := []trace.SpanStartOption{trace.WithAttributes(ofSessionIn(s)...)}
	if !began.IsZero() {
		options = append(options, trace.WithTimestamp(began))
	}
	_, span := t.start(t.within(ctx, s.ID, parent), id, name, options...)
	span.SetAttributes(attribute.String("jig.session.source", string(s.Source)))
	if t.content {
		span.SetAttributes(attribute.String("jig.session.task", s.Task), attribute.String("jig.session.input", string(s.Input)))
	}
	span.End()
}

// SessionEnded writes a span at the end of a session.
func (t *Tracer) SessionEnded(ctx context.Context, end ledger.End) {
	if t == nil || !end.Status.Final() {
		return
	}
	_, span := t.tracer.Start(t.within(ctx, end.SessionID, passSpan(end.SessionID, max(end.Pass, 1))), "session ended", trace.WithAttributes(
		attribute.String("gen_ai.conversation.id", end.SessionID), attribute.String("jig.tenant", end.Tenant),
		attribute.String("jig.session.status", string(end.Status)), attribute.String("jig.session.reason", end.Reason)))
	fail(span, end.Error)
	if t.content {
		span.SetAttributes(attribute.String("jig.session.answer", end.Answer))
	}
	span.End()
}

// Pass starts the span of a pass, in which the model is asked and its calls are admitted. The calls are children of it that run later.
func (t *Tracer) Pass(ctx context.Context, s jig.Session, pass int) (context.Context, func(err error)) {
	if t == nil {
		return ctx, func(error) {}
	}
	ctx, span := t.start(t.within(ctx, s.ID, spanID(ofSession, s.ID, "")), passSpan(s.ID, pass), "invoke_agent "+s.Agent.Name,
		trace.WithAttributes(append(ofSessionIn(s), attribute.String("gen_ai.operation.name", "invoke_agent"),
			attribute.String("gen_ai.request.model", modelName(s.Agent.Model)), attribute.Int("jig.pass", pass))...))
	return ctx, func(err error) {
		failWith(span, err)
		span.End()
	}
}

// Call starts the span of an attempt of a call. The result of the attempt ends it.
func (t *Tracer) Call(ctx context.Context, call jig.Call, attempt int) (context.Context, func(jig.ToolResult)) {
	if t == nil {
		return ctx, func(jig.ToolResult) {}
	}
	ctx, span := t.call(ctx, call, trace.SpanID{}, attribute.Int("jig.call.attempt", attempt))
	return ctx, func(result jig.ToolResult) {
		fail(span, result.Error)
		if t.content {
			span.SetAttributes(attribute.String("gen_ai.tool.call.result", string(result.Data)))
		}
		span.End()
	}
}

// CallBegun writes the span of a call that consists of others: those of a composition, or of the session of an agent.
func (t *Tracer) CallBegun(ctx context.Context, call jig.Call) {
	if t == nil {
		return
	}
	_, span := t.call(ctx, call, spanID(ofCall, call.SessionID, call.ID))
	span.End()
}

// CallRefused writes the span of a call that ended when it was admitted, so that nothing runs. It does nothing for other calls.
func (t *Tracer) CallRefused(ctx context.Context, call jig.Call) {
	if t == nil || !call.Status.Final() {
		return
	}
	_, span := t.call(ctx, call, trace.SpanID{}, attribute.String("jig.call.status", string(call.Status)))
	if call.Result != nil {
		fail(span, call.Result.Error)
	}
	span.End()
}

// call starts the span of a call. An invalid id asks for a random one.
func (t *Tracer) call(ctx context.Context, call jig.Call, id trace.SpanID, more ...attribute.KeyValue) (context.Context, trace.Span) {
	parent := passSpan(call.SessionID, call.Pass)
	if call.Frame != "" {
		parent = spanID(ofCall, call.SessionID, call.Frame)
	}
	attributes := append(ofCallIn(call.Tenant, call.SessionID, call.ID, call.Tool), attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.type", "function"))
	if t.content {
		attributes = append(attributes, attribute.String("gen_ai.tool.call.arguments", string(call.Input)))
	}
	ctx = t.within(ctx, call.SessionID, parent)
	options := []trace.SpanStartOption{trace.WithAttributes(append(attributes, more...)...)}
	if call.Verdict == jig.VerdictAsk && !call.Status.Final() {
		decision := trace.SpanContextFromContext(ctx).WithSpanID(spanID(ofDecision, call.SessionID, call.ID))
		options = append(options, trace.WithLinks(trace.Link{SpanContext: decision}))
	}
	return t.start(ctx, id, "execute_tool "+call.Tool, options...)
}

// Asked writes the spans of approvals and questions that begin to wait for a person, and of approvals that a grant gave.
func (t *Tracer) Asked(ctx context.Context, session jig.Session, pending ...jig.Pending) {
	if t == nil {
		return
	}
	for _, p := range pending {
		id, name := spanID(ofRequest, session.ID, p.Call), "approval.request "+p.Tool
		attributes := append(ofCallIn(session.Tenant, session.ID, p.Call, p.Tool), attribute.String("jig.approval.kind", string(p.Kind)),
			attribute.String("jig.policy.version", p.PolicyVersion))
		if p.Grant != "" {
			id, name = spanID(ofDecision, session.ID, p.Call), "approval.decision "+p.Tool
			attributes = append(attributes, attribute.String("jig.approval.outcome", "granted"))
		}
		_, span := t.start(t.inPass(ctx, session.ID, p.Call), id, name, trace.WithAttributes(attributes...))
		span.End()
	}
}

// Decided writes the span of the end of an approval or question, unless the call still waits. It has links to the request for the approval and to the
// HTTP request of the person who decided.
func (t *Tracer) Decided(ctx context.Context, call jig.Call) {
	if t == nil || call.Status == jig.CallWaiting || call.Status == jig.CallUnknown {
		return
	}
	outcome := string(call.Status)
	if call.Status == jig.CallReserved {
		outcome = "approved"
	}
	request := carriedIn(ctx).Request
	ctx = t.inPass(ctx, call.SessionID, call.ID)
	links := []trace.Link{{SpanContext: trace.SpanContextFromContext(ctx).WithSpanID(spanID(ofRequest, call.SessionID, call.ID))}}
	if request.IsValid() {
		links = append(links, trace.Link{SpanContext: request})
	}
	_, span := t.start(ctx, spanID(ofDecision, call.SessionID, call.ID), "approval.decision "+call.Tool, trace.WithLinks(links...), trace.WithAttributes(
		append(ofCallIn(call.Tenant, call.SessionID, call.ID, call.Tool), attribute.String("jig.approval.outcome", outcome),
			attribute.Float64("jig.approval.waited_s", time.Since(call.CreatedAt).Seconds()))...))
	span.End()
}

// inPass returns a context in which the pass of a call is the parent.
func (t *Tracer) inPass(ctx context.Context, session, call string) context.Context {
	return t.within(ctx, session, spanID(ofPass, session, passOf(call)))
}

func ofSessionIn(s jig.Session) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("gen_ai.conversation.id", s.ID), attribute.String("gen_ai.agent.name", s.Agent.Name),
		attribute.String("gen_ai.agent.version", s.Agent.Version), attribute.String("jig.tenant", s.Tenant),
	}
}

func ofCallIn(tenant, session, call, tool string) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("gen_ai.conversation.id", session), attribute.String("jig.tenant", tenant),
		attribute.String("gen_ai.tool.name", tool), attribute.String("gen_ai.tool.call.id", call),
	}
}

// fail marks a span as failed if there is an error. The span has the error's code; messages may contain what people and models wrote.
func fail(span trace.Span, err *jig.Error) {
	if err == nil {
		return
	}
	span.SetAttributes(attribute.String("error.type", string(err.Code)))
	span.SetStatus(codes.Error, "")
}

func failWith(span trace.Span, err error) {
	if err != nil {
		fail(span, &jig.Error{Code: jig.CodeOf(err)})
	}
}

// modelName returns the name of a model without its provider.
func modelName(model string) string {
	_, name, ok := strings.Cut(model, "/")
	if !ok {
		return model
	}
	return name
}

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
