package entities

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

// maxAnswerTokens bounds an answer of the model, in tokens.
const maxAnswerTokens = 4096

// Model sends requests to models, as in package prompt.
type Model interface {
	// Answer asks the model once. Errors are *jig.Error: RATE_LIMITED and UNAVAILABLE may be retried, others may not.
	Answer(ctx context.Context, request chat.Request, progress func(text string)) (chat.Turn, error)
}

// Usage counts tokens. If an answer had to be repaired, it is the total of both requests.
type Usage struct {
	Input       int64 `json:"input"`
	Output      int64 `json:"output"`
	CacheRead   int64 `json:"cache_read,omitempty"`
	CacheCreate int64 `json:"cache_create,omitempty"`
}

func (u *Usage) add(v chat.Usage) {
	u.Input, u.Output = u.Input+v.InputTokens, u.Output+v.OutputTokens
	u.CacheRead, u.CacheCreate = u.CacheRead+v.CacheReadTokens, u.CacheCreate+v.CacheCreateTokens
}

// question is a request to the model for an answer in JSON that fits a schema.
type question struct {
	model, system, prompt string
	schema                json.RawMessage
}

// asked says which model answered and how many tokens were used.
type asked struct {
	model string
	usage Usage
}

// modelFor returns the model to ask: the named one, or else the worker's default; "" if no model can be asked.
func (o Options) modelFor(name string) (string, error) {
	name = cmp.Or(name, o.DefaultModel)
	if strings.HasPrefix(name, "script/") {
		return "", jig.Errorf(jig.CodeInvalidInput, "%s is a script: scripts plan the sessions of agents and answer no questions", name).
			WithField("/model").WithHint("name a model: anthropic/<model> or openai/<model>")
	}
	if o.Model == nil {
		return "", nil
	}
	return name, nil
}

// ask asks the model and passes the answer to take, which returns a list of problems. If there are any, ask sends them to the model and
// asks once more. It does not act on problems of the second answer; that is up to the caller. If neither answer contains a JSON object, the
// error is INVALID_OUTPUT.
func (o Options) ask(ctx context.Context, inv jig.Invocation, q question, take func(answer json.RawMessage) (wrong []string, err error)) (asked, error) {
	request := chat.Request{
		Model: q.model, MaxTokens: maxAnswerTokens, SessionID: inv.SessionID, Pass: 1, Tenant: inv.Tenant, Call: inv.CallID,
		System: q.system + "\n\nAnswer with one JSON object that fits the JSON Schema below, and with nothing else: no explanation, no code fence.\n\n" +
			string(q.schema),
		Exchanges: []chat.Exchange{{Pass: 1, Messages: []chat.Message{{Role: chat.RoleUser, Text: q.prompt}}}},
	}
	var done asked
	readable := false
	for {
		turn, err := o.Model.Answer(ctx, request, inv.Progress)
		if err != nil {
			return done, fmt.Errorf("ask %s: %w", q.model, err)
		}
		done.model = cmp.Or(turn.Model, q.model)
		done.usage.add(turn.Usage)
		if err := spoken(turn, q.model); err != nil {
			return done, err
		}
		wrong := []string{"it is not a JSON object"}
		answer := objectIn(turn.Text)
		if answer != nil {
			readable = true
			if wrong, err = take(answer); err != nil {
				return done, err
			}
		}
		if len(wrong) == 0 || request.Pass == 2 {
			break
		}
		turn.Calls, turn.Opaque = nil, nil // these tools were not offered
		request.Pass++
		request.Exchanges[0].Turn = &turn
		request.Exchanges = append(request.Exchanges, chat.Exchange{Pass: 2, Messages: []chat.Message{{
			Role: chat.RoleUser, Text: "Your answer is not right:\n- " + strings.Join(wrong, "\n- ") + "\nAnswer again: the corrected JSON object, whole, and nothing else.",
		}}})
	}
	if !readable {
		return done, jig.Errorf(jig.CodeInvalidOutput, "neither the answer of %s nor the one before is a JSON object", q.model).
			WithReason("schema_mismatch").WithHint("ask a stronger model")
	}
	return done, nil
}

// misfit tells the model why its answer does not fit the schema.
func misfit(problem error) string { return "it does not fit the schema: " + problem.Error() }

// spoken returns an error for an answer that was refused or cut off.
func spoken(turn chat.Turn, model string) error {
	switch turn.Stop {
	case chat.StopRefusal:
		return jig.Errorf(jig.CodeDenied, "the model %s refuses to answer", model).WithReason("refusal").
			WithHint("rephrase it, or ask another model")
	case chat.StopLength:
		return jig.Errorf(jig.CodeInvalidOutput, "the answer of %s was cut off at %d tokens", model, maxAnswerTokens).
			WithReason("cut_off").WithHint("ask for less at once")
	case chat.StopEnd, chat.StopCalls:
	}
	return nil
}

// objectIn returns the JSON object in an answer: everything from the first brace to the last; nil if that is not valid JSON.
func objectIn(text string) json.RawMessage {
	from, to := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if from < 0 || to < from || !json.Valid([]byte(text[from:to+1])) {
		return nil
	}
	return json.RawMessage(text[from : to+1])
}

// plain normalizes a text for comparison: lower case, single spaces.
func plain(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }
