// Package prompt contains the tools that ask a model: prompt.direct asks one question, prompt.skill asks one under the instructions of a
// skill, and agent.run hands a task to an agent. It must not depend on providers, nor on how skills and sessions are stored.
//
// The model's answer is the result of the call. If the call has a schema, the answer must contain JSON that fits it; if it does not, the model
// is asked once more and told what is wrong. A call that failed also reports the tokens that it used, because they were paid for.
//
// Begin with [Tools]. talk.go has the conversation with the model, and find.go finds the JSON in an answer. Of agent.run, only the contract is
// here: the engine runs its calls in sessions of their own.
package prompt

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/schema"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// The limits of prompt.direct and prompt.skill.
const (
	// Timeout bounds one attempt, including the repair of an answer.
	Timeout = 10 * time.Minute
	// MaxAttempts bounds the attempts of one call.
	MaxAttempts = chat.MaxRequests
	// DefaultMaxTokens bounds an answer, in tokens, if the call sets no limit.
	DefaultMaxTokens = 4096
)

// Model sends requests to models.
type Model interface {
	// Answer asks the model once; progress is called as text arrives. Errors are *jig.Error: RATE_LIMITED and UNAVAILABLE (with RetryAfter
	// if known) may be retried, others may not.
	Answer(ctx context.Context, request chat.Request, progress func(text string)) (chat.Turn, error)
}

// Skills finds skills.
type Skills interface {
	// Skill returns a tenant's skill. If the tenant has no skill with that name, it returns NOT_FOUND with the most similar names as the
	// hint.
	Skill(ctx context.Context, tenant, name string) (spec.Skill, error)
}

// Options are the settings of the tools.
type Options struct {
	// Model answers the questions; required.
	Model Model
	// Skills finds the skills of prompt.skill; required.
	Skills Skills
	// DefaultModel (provider/model) is used when a call names no model. If it is empty, such a call is refused.
	DefaultModel string
}

// Tools returns the tools of this package.
func Tools(options Options) []tools.Tool {
	f := &family{Options: options, schemas: schema.NewCompiler(schema.Options{})}
	asking := jig.Tool{
		OutputSchema: json.RawMessage(answerSchema), Permission: jig.PermissionDraft, Risk: jig.RiskSafe, Approval: jig.ApprovalAuto,
		Idempotent: true, Execution: jig.ExecutionActivity, Timeout: Timeout, MaxAttempts: MaxAttempts, RetryFor: chat.RetryFor, Tags: []string{"model"},
		Labels: &jig.Labels{},
	}
	direct, skilled := asking, asking
	direct.Name, direct.InputSchema = toolname.PromptDirect, inputSchema("prompt")
	direct.Description = "Asks a language model one question and returns its answer as text, or, when a schema is given, as JSON that fits it (output). " +
		"The model sees system and prompt alone: nothing of this conversation, no tools. Use it to write, sum up, classify or extract from text that you put " +
		"into the prompt; for work that needs tools use agent.run. Each call costs tokens (usage)."
	skilled.Name, skilled.InputSchema = toolname.PromptSkill, inputSchema("prompt", "skill")
	skilled.Description = "Asks a language model one question under the instructions and files of a skill and returns its answer as text, or, when a schema " +
		"is given, as JSON that fits it (output). Use it when a skill says how this kind of work is done; the model sees the skill, system and prompt alone, and " +
		"calls no tools. Each call costs tokens (usage)."
	return []tools.Tool{tools.Raw(direct, f.direct), tools.Raw(skilled, f.skill), agentTool()}
}

// family holds what the handlers share.
type family struct {
	Options
	schemas *schema.Compiler
}

// question is the input of prompt.direct and prompt.skill.
type question struct {
	Skill     string          `json:"skill"`
	Model     string          `json:"model"`
	System    string          `json:"system"`
	Prompt    string          `json:"prompt"`
	Schema    json.RawMessage `json:"schema"`
	MaxTokens int             `json:"max_tokens"`
}

// properties returns the properties of a question, in JSON Schema.
func properties() map[string]any {
	return map[string]any{
		"skill": map[string]any{"type": "string", "minLength": 1, "maxLength": 128, "description": "the skill's name"},
		"model": map[string]any{
			"type": "string", "minLength": 1, "maxLength": 256,
			"description": "provider/model, e.g. anthropic/<model> or openai/<model>; default: the worker's",
		},
		"system": map[string]any{"type": "string", "description": "instructions to the model: who it is and how it answers"},
		"prompt": map[string]any{"type": "string", "pattern": `\S`, "description": "the question, with all that is needed to answer it"},
		"schema": map[string]any{"type": "object", "description": "JSON Schema (2020-12) that the answer is to fit; without it the answer is text"},
		"max_tokens": map[string]any{
			"type": "integer", "minimum": 1, "maximum": 1_000_000, "default": DefaultMaxTokens, "description": "bound of the answer in tokens",
		},
	}
}

// inputSchema returns the input schema of a question. It has the property skill only if skill is required.
func inputSchema(required ...string) json.RawMessage {
	known := properties()
	if len(required) == 1 {
		delete(known, "skill")
	}
	raw, err := json.Marshal(map[string]any{"type": "object", "properties": known, "required": required, "additionalProperties": false})
	if err != nil {
		return nil // registration refuses a tool without a schema
	}
	return raw
}

const answerSchema = `{
	"type": "object",
	"properties": {
		"text": {"type": "string", "description": "the answer, when no schema was given"},
		"output": {"description": "the answer as JSON that fits the schema that was given"},
		"model": {"type": "string", "description": "the model that answered, as its provider names it"},
		"usage": {
			"type": "object",
			"description": "tokens, over both questions when the answer had to be repaired; input without those read from or put into the provider's cache",
			"properties": {
				"input": {"type": "integer"}, "output": {"type": "integer"}, "cache_read": {"type": "integer"}, "cache_create": {"type": "integer"}
			},
			"required": ["input", "output"],
			"additionalProperties": false
		}
	},
	"required": ["usage"],
	"additionalProperties": false
}`

// direct handles prompt.direct.
func (f *family) direct(ctx context.Context, inv jig.Invocation, input json.RawMessage) jig.ToolResult {
	q, err := readQuestion(input)
	if err != nil {
		return notAsked(err, "")
	}
	return f.answer(ctx, inv, q, q.System)
}

// skill handles prompt.skill.
func (f *family) skill(ctx context.Context, inv jig.Invocation, input json.RawMessage) jig.ToolResult {
	q, err := readQuestion(input)
	if err != nil {
		return notAsked(err, "")
	}
	skill, err := f.Skills.Skill(ctx, inv.Tenant, q.Skill)
	if err != nil {
		return notAsked(fmt.Errorf("find skill %s: %w", q.Skill, err), "/skill")
	}
	return f.answer(ctx, inv, q, paragraphs(skillText(skill), q.System))
}

func readQuestion(input json.RawMessage) (q question, err error) {
	if err = json.Unmarshal(input, &q); err != nil {
		// The schema accepts 1.0 and 1e3 as integers; encoding/json does not.
		var whole []byte
		if whole, err = schema.RewriteIntegers(input); err == nil {
			err = json.Unmarshal(whole, &q)
		}
	}
	if err != nil {
		return q, jig.Errorf(jig.CodeInvalidInput, "the input does not fit the tool: %w", err)
	}
	q.MaxTokens = cmp.Or(q.MaxTokens, DefaultMaxTokens)
	return q, nil
}

// answer asks the question with the given system text.
func (f *family) answer(ctx context.Context, inv jig.Invocation, q question, system string) jig.ToolResult {
	name, err := f.modelOf(q)
	if err != nil {
		return notAsked(err, "/model")
	}
	t := talk{model: f.Model, progress: inv.Progress, request: chat.Request{
		Model: name, System: system, MaxTokens: q.MaxTokens, SessionID: inv.SessionID, Pass: 1, Tenant: inv.Tenant, Call: inv.CallID,
		Exchanges: []chat.Exchange{{Pass: 1, Messages: []chat.Message{{Role: chat.RoleUser, Text: q.Prompt}}}},
	}}
	if len(q.Schema) > 0 {
		if t.schema, err = f.schemas.Compile(q.Schema); err != nil {
			return notAsked(inSchema(err), "/schema")
		}
		t.request.System = paragraphs(system, structured(q.Schema))
	}
	return t.run(ctx)
}

// modelOf returns the model to ask.
func (f *family) modelOf(q question) (string, error) {
	name := cmp.Or(q.Model, f.DefaultModel)
	if name == "" {
		return "", jig.Errorf(jig.CodeMissingParam, "no model is named and the worker has no default").
			WithHint("name one (anthropic/<model> or openai/<model>), or set JIG_MODEL in the worker's environment")
	}
	if strings.HasPrefix(name, "script/") {
		return "", jig.Errorf(jig.CodeInvalidInput, "%s is a script, but no script is given here: scripts plan the sessions of agents", name).
			WithHint("name a model (anthropic/<model> or openai/<model>), or run an agent with a script by agent.run")
	}
	return name, nil
}

// notAsked returns the result of a call that failed before the model was asked.
func notAsked(err error, field string) jig.ToolResult {
	e := *jig.AsError(err)
	e.Field = cmp.Or(e.Field, field)
	e.NotExecuted = true
	return jig.Failure(&e)
}

// inSchema rewrites the pointers of a schema's violations as pointers into the input.
func inSchema(err error) error {
	e := *jig.AsError(err)
	e.Code = jig.CodeInvalidInput
	e.Field = "/schema" + e.Field
	violations := make([]jig.Violation, len(e.Violations))
	for i, v := range e.Violations {
		violations[i] = jig.Violation{Pointer: "/schema" + v.Pointer, Message: v.Message, Template: v.Template}
	}
	e.Violations = violations
	e.Hint = cmp.Or(e.Hint, "write a JSON Schema of draft 2020-12")
	return &e
}

// paragraphs joins the texts that are not blank with blank lines.
func paragraphs(texts ...string) string {
	var kept []string
	for _, text := range texts {
		if strings.TrimSpace(text) != "" {
			kept = append(kept, strings.TrimSpace(text))
		}
	}
	return strings.Join(kept, "\n\n")
}
