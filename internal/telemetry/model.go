package telemetry

import (
	"context"
	"encoding/json"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/jig-run/jig/internal/chat"
)

// Model answers prompts.
type Model interface {
	Answer(ctx context.Context, request chat.Request, progress func(text string)) (chat.Turn, error)
	Check(model string) error
}

// Model returns a model that writes a span for each request to next.
func (t *Tracer) Model(next Model) Model {
	if t == nil {
		return next
	}
	return &tracedModel{Model: next, tracer: t}
}

type tracedModel struct {
	Model

	tracer *Tracer
}

// Answer asks the model.
func (m *tracedModel) Answer(ctx context.Context, request chat.Request, progress func(text string)) (chat.Turn, error) {
	t := m.tracer
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = t.within(ctx, request.SessionID, passSpan(request.SessionID, request.Pass))
	}
	name := modelName(request.Model)
	ctx, span := t.tracer.Start(ctx, "chat "+name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", strings.TrimSuffix(request.Model, "/"+name)),
		attribute.String("gen_ai.request.model", name), attribute.Int("gen_ai.request.max_tokens", request.MaxTokens),
		attribute.String("gen_ai.conversation.id", request.SessionID), attribute.String("jig.tenant", request.Tenant)))
	defer span.End()
	if t.content && span.IsRecording() {
		span.SetAttributes(attribute.String("gen_ai.system_instructions", text([]part{{Type: "text", Content: request.System}})),
			attribute.String("gen_ai.input.messages", text(asked(request))))
	}
	turn, err := m.Model.Answer(ctx, request, progress)
	failWith(span, err)
	if err != nil {
		return turn, err
	}
	span.SetAttributes(attribute.StringSlice("gen_ai.response.finish_reasons", []string{finish(turn.Stop)}),
		attribute.Int64("gen_ai.usage.input_tokens", turn.Usage.InputTokens), attribute.Int64("gen_ai.usage.output_tokens", turn.Usage.OutputTokens))
	if turn.Model != "" {
		span.SetAttributes(attribute.String("gen_ai.response.model", turn.Model))
	}
	if n := turn.Usage.CacheReadTokens; n > 0 {
		span.SetAttributes(attribute.Int64("gen_ai.usage.cache_read.input_tokens", n))
	}
	if n := turn.Usage.CacheCreateTokens; n > 0 {
		span.SetAttributes(attribute.Int64("gen_ai.usage.cache_creation.input_tokens", n))
	}
	if t.content {
		said := spoken(turn)
		said.FinishReason = finish(turn.Stop)
		span.SetAttributes(attribute.String("gen_ai.output.messages", text([]message{said})))
	}
	return turn, nil
}

// finish returns the name that the conventions have for why a model stopped.
func finish(stop chat.StopReason) string {
	switch stop {
	case chat.StopCalls:
		return "tool_call"
	case chat.StopLength:
		return "length"
	case chat.StopRefusal:
		return "content_filter"
	case chat.StopEnd:
	}
	return "stop"
}

// message and part are messages as the conventions describe them.
type message struct {
	Role         string `json:"role"`
	Parts        []part `json:"parts"`
	FinishReason string `json:"finish_reason,omitempty"`
}

type part struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  json.RawMessage `json:"response,omitempty"`
}

// asked returns the messages of a request.
func asked(request chat.Request) (list []message) {
	for _, x := range request.Exchanges {
		for _, m := range x.Messages {
			list = append(list, message{Role: string(m.Role), Parts: []part{{Type: "text", Content: m.Text}}})
		}
		if x.Turn != nil {
			list = append(list, spoken(*x.Turn))
		}
		var results []part
		for _, call := range x.Calls {
			one := part{Type: "tool_call_response", ID: call.ProviderID}
			if call.Result != nil {
				one.Response = call.Result.Data
			}
			results = append(results, one)
		}
		if len(results) > 0 {
			list = append(list, message{Role: "tool", Parts: results})
		}
	}
	return list
}

// spoken returns a turn as a message.
func spoken(turn chat.Turn) message {
	m := message{Role: string(chat.RoleAssistant)}
	if turn.Text != "" {
		m.Parts = append(m.Parts, part{Type: "text", Content: turn.Text})
	}
	for _, call := range turn.Calls {
		m.Parts = append(m.Parts, part{Type: "tool_call", ID: call.ProviderID, Name: call.Name, Arguments: call.Input})
	}
	return m
}

// text returns a value as JSON.
func text(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(encoded)
}
