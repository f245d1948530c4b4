package prompt

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/schema"
)

// maxShown bounds the part of an unusable answer that goes into the failure's data, in bytes.
const maxShown = 8 << 10

// usage counts tokens; see answerSchema.
type usage struct {
	Input       int64 `json:"input"`
	Output      int64 `json:"output"`
	CacheRead   int64 `json:"cache_read,omitempty"`
	CacheCreate int64 `json:"cache_create,omitempty"`
}

func (u *usage) add(v chat.Usage) {
	u.Input, u.Output = u.Input+v.InputTokens, u.Output+v.OutputTokens
	u.CacheRead, u.CacheCreate = u.CacheRead+v.CacheReadTokens, u.CacheCreate+v.CacheCreateTokens
}

// answered is the data of a result. A failure also has it if the model has answered, because the tokens were paid for.
type answered struct {
	Text   *string         `json:"text,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
	Model  string          `json:"model,omitempty"`
	Usage  usage           `json:"usage"`
}

// talk is one question to a model. If the answer does not fit, it asks once more.
type talk struct {
	model    Model
	progress func(string)
	request  chat.Request
	// schema is the schema that the answer must fit; nil accepts any text.
	schema *schema.Schema

	// turn is the latest answer; nil before the first one.
	turn *chat.Turn
	used usage
}

func (t *talk) run(ctx context.Context) jig.ToolResult {
	output, err := t.hold(ctx)
	if err != nil {
		return t.failure(err)
	}
	data := answered{Output: output, Model: t.turn.Model, Usage: t.used}
	summary := string(output)
	if t.schema == nil {
		data.Text, summary = &t.turn.Text, t.turn.Text
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return t.failure(jig.Errorf(jig.CodeInternal, "writing the answer: %w", err))
	}
	return jig.ToolResult{Success: true, Data: raw, Summary: summary}
}

// failure returns a failed result. If the model was asked, the result has the model's answer and the tokens used.
func (t *talk) failure(err error) jig.ToolResult {
	result := jig.Failure(err)
	if t.turn == nil {
		return result
	}
	shown := jig.Cut(t.turn.Text, maxShown-len("…"))
	if raw, err := json.Marshal(answered{Text: &shown, Model: t.turn.Model, Usage: t.used}); err == nil {
		result.Data = raw
	}
	return result
}

// hold asks the model and returns the value that fits the schema, or nil if there is no schema. If the first answer does not fit, it asks
// once more.
func (t *talk) hold(ctx context.Context) (json.RawMessage, error) {
	if err := t.ask(ctx); err != nil || t.schema == nil {
		return nil, err
	}
	output, misfit := find(t.turn.Text, t.schema)
	if misfit == nil {
		return output, nil
	}
	t.correct(misfit)
	if err := t.ask(ctx); err != nil {
		return nil, err
	}
	if output, misfit = find(t.turn.Text, t.schema); misfit == nil {
		return output, nil
	}
	e := jig.Errorf(jig.CodeInvalidOutput, "the model's answer does not fit the schema, nor did the one before: %s", misfit.Message).
		WithReason("schema_mismatch").WithHint("data has its last answer; simplify the schema, give more detail in the prompt, or use a stronger model")
	e.Violations = misfit.Violations
	return nil, e
}

// ask asks the model once. It returns an error for an answer that was refused or cut off, or that has no text.
func (t *talk) ask(ctx context.Context) error {
	turn, err := t.model.Answer(ctx, t.request, t.progress)
	if err != nil {
		return fmt.Errorf("ask %s: %w", t.request.Model, err)
	}
	t.turn = &turn
	t.used.add(turn.Usage)
	switch turn.Stop {
	case chat.StopRefusal:
		return jig.Errorf(jig.CodeDenied, "the model %s refuses to answer", t.request.Model).WithReason("refusal").
			WithHint("rephrase the prompt, or ask another model; data has its answer")
	case chat.StopLength:
		return jig.Errorf(jig.CodeInvalidOutput, "the answer of %s was cut off at %d tokens", t.request.Model, t.request.MaxTokens).
			WithReason("cut_off").WithHint("raise max_tokens, or ask for less")
	case chat.StopEnd, chat.StopCalls:
	}
	if strings.TrimSpace(turn.Text) == "" { // it has only calls, of tools that were not offered
		return jig.Errorf(jig.CodeUnavailable, "the model %s answered without a text", t.request.Model).WithReason(jig.ReasonNoAnswer)
	}
	return nil
}

// correct prepares the next question, which shows the model what is wrong with its answer.
func (t *talk) correct(misfit *jig.Error) {
	turn := *t.turn
	if len(turn.Calls) > 0 { // these tools were not offered, so only the text goes back
		turn.Calls, turn.Opaque = nil, nil
	}
	last := len(t.request.Exchanges) - 1
	t.request.Exchanges[last].Turn = &turn
	t.request.Exchanges = append(t.request.Exchanges, chat.Exchange{
		Pass: t.request.Exchanges[last].Pass + 1, Messages: []chat.Message{{Role: chat.RoleUser, Text: correction(misfit)}},
	})
	t.request.Pass++
	t.progress("\n\n[the answer does not fit its schema; asking once more]\n\n")
}

func correction(misfit *jig.Error) string {
	var b strings.Builder
	b.WriteString("Your answer does not fit the JSON Schema:\n")
	if len(misfit.Violations) == 0 {
		fmt.Fprintf(&b, "- %s\n", misfit.Message)
	}
	for _, v := range misfit.Violations {
		b.WriteString("- " + strings.TrimSpace(v.Pointer+" "+v.Message) + "\n")
	}
	b.WriteString("Answer again: the corrected JSON value, whole, and nothing else.")
	return b.String()
}

// structured tells the model which form its answer must have.
func structured(raw json.RawMessage) string {
	text := raw
	var compact bytes.Buffer
	if json.Compact(&compact, raw) == nil {
		text = compact.Bytes()
	}
	return "Answer with one JSON value that fits the JSON Schema below, and with nothing else: no explanation, no code fence.\n\n" + string(text)
}
