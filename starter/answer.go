package starter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/jsontext"
)

// ruledAnswered tells printRuled that a question was answered.
const ruledAnswered = jig.Answer(token.ActionAnswer)

// answerFlags are the flags of `answer`.
type answerFlags struct {
	// text is the VALUE argument; nil if it was left out.
	text        *string
	value, note string
	proof       proof
}

func (a *app) answerCommand() *cobra.Command {
	var f answerFlags
	cmd := &cobra.Command{
		Use:   "answer SESSION CALL [VALUE]",
		Short: "Answer a question that an agent asked",
		Long: `Answer a question that an agent asked. VALUE is text, unless it is valid JSON that fits the question's options or schema, e.g. a
number or an object. --value is always JSON, so text needs quotes there. Without either, the command shows the question and prompts
for the answer if it runs on a terminal.`,
		Example: `  jig answer ses_… 3.1
  jig answer ses_… 3.1 "the one in Berlin"
  jig answer ses_… 3.1 --value '{"days": 3}'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 || len(args) > 3 {
				return usagef("%s given; expected SESSION CALL VALUE (put a VALUE of several words in quotes)", plural(len(args), "argument is", "arguments are"))
			}
			return sessionArgs(2, 2)(cmd, args[:2])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 3 {
				f.text = &args[2]
			}
			return a.answer(cmd, a.session(args[0]), args[1], f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.value, "value", "", "the answer as JSON: @file.json, @- or JSON")
	flags.StringVar(&f.note, "note", "", "note for the log")
	a.addProofFlags(cmd, &f.proof)
	return cmd
}

func (a *app) answer(cmd *cobra.Command, session, call string, f answerFlags) error {
	ctx := cmd.Context()
	exact := cmd.Flags().Changed("value")
	switch {
	case exact && f.text != nil:
		return usagef("give VALUE or --value, not both")
	case !exact && f.text == nil && (!a.interactive || a.json()):
		return usagef("the answer is missing: give VALUE or --value")
	}
	if err := f.proof.settle(a, cmd, 1); err != nil {
		return err
	}
	said := jig.Reply{Call: call, By: f.proof.by, Note: f.note, Token: f.proof.token}
	if exact {
		var err error
		if said.Value, err = a.jsonArgument("--value", f.value); err != nil {
			return err
		}
	}
	return a.with(ctx, func(e engine) error {
		var err error
		if session, call, err = a.locatedOne(ctx, e, session, call); err != nil {
			return err
		}
		said.Call = call
		if !exact || said.Token == "" && a.signs() {
			p, err := a.waitingQuestion(ctx, e, session, call)
			if err != nil {
				return err
			}
			if !exact {
				if said.Value, err = a.valueOf(ctx, p, f.text); err != nil {
					return err
				}
			}
			if err := a.signReply(session, &said, p.Digest); err != nil {
				return err
			}
		}
		result, err := e.Reply(ctx, a.flags.tenant, session, said)
		if err != nil {
			return err
		}
		return a.printRuled(session, result, ruledAnswered)
	})
}

// waitingQuestion returns the waiting question with the call's id.
func (a *app) waitingQuestion(ctx context.Context, e engine, session, call string) (jig.Pending, error) {
	list, err := e.Approvals(ctx, a.flags.tenant, session)
	if err != nil {
		return jig.Pending{}, err
	}
	p, found := findWaiting(list, session, call)
	if !found {
		return jig.Pending{}, jig.Errorf(jig.CodeNotFound, "no call %s is waiting in %s", call, session).WithField("call").
			WithHint("see `" + a.command("approvals", "--session", session) + "`")
	}
	if p.Kind != jig.PendingQuestion || p.Question == nil {
		return jig.Pending{}, usage(jig.Errorf(jig.CodeInvalidInput, "%s is not a question, its kind is %s", call, p.Kind).WithField("call").
			WithHint("see `" + a.command("approvals", "--session", session) + "` for the command that answers it"))
	}
	return p, nil
}

// valueOf converts the given text to the value of an answer. Without a text, it shows the question and prompts for the answer.
func (a *app) valueOf(ctx context.Context, p jig.Pending, text *string) (json.RawMessage, error) {
	if text != nil {
		return answerValue(*p.Question, *text)
	}
	a.say("%s", a.cardText(a.err, card{Pending: p}))
	said, err := a.ask(ctx, prompt{pending: p})
	if err == nil && said.value == nil {
		err = usagef("no answer was given")
	}
	return said.value, err
}

// askQuestion asks the person at the terminal to answer a question that was already shown. An empty line leaves the question to somebody
// else.
func (a *app) askQuestion(ctx context.Context, q jig.Question) (reply, error) {
	prompt := "answer (empty to leave it to somebody else): "
	if len(q.Options) > 0 {
		prompt = fmt.Sprintf("number of the answer, 1 to %d (empty to leave it to somebody else): ", len(q.Options))
	}
	for {
		_, _ = fmt.Fprint(a.stderr, prompt)
		line, err := a.readLine(ctx)
		if err != nil || line == "" {
			return reply{}, err
		}
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(q.Options) {
			return reply{value: q.Options[n-1]}, nil
		}
		value, err := answerValue(q, line)
		if err != nil {
			return reply{}, err
		}
		if len(q.Options) == 0 || slices.ContainsFunc(q.Options, func(o json.RawMessage) bool { return sameJSON(o, value) }) {
			return reply{value: value}, nil
		}
		a.say("%s is not one of the answers", oneLine(line, 60))
	}
}

// readLine reads a line from standard input, byte by byte, so that it consumes nothing after the line. It returns errAborted if
// ctx is canceled, for example by Ctrl-C.
func (a *app) readLine(ctx context.Context) (string, error) {
	type read struct {
		line string
		err  error
	}
	done := make(chan read, 1)
	go func() {
		var line []byte
		for buffer := make([]byte, 1); ; {
			n, err := a.stdin.Read(buffer)
			if n == 1 && buffer[0] != '\n' {
				line = append(line, buffer[0])
			}
			if n == 1 && buffer[0] == '\n' || errors.Is(err, io.EOF) {
				done <- read{line: strings.TrimSpace(string(line))}
				return
			}
			if err == nil && len(line) > jig.InlineBytes {
				err = usagef("the answer is longer than %d bytes; use --value @file.json", jig.InlineBytes)
			}
			if err != nil {
				done <- read{err: err}
				return
			}
		}
	}()
	select {
	case <-ctx.Done():
		return "", errAborted
	case r := <-done:
		return r.line, r.err
	}
}

// answerValue converts a person's answer to JSON. If the text is JSON that the question accepts, it is used as it is; otherwise it becomes
// a JSON string.
func answerValue(q jig.Question, text string) (json.RawMessage, error) {
	value := json.RawMessage(strings.TrimSpace(text))
	if json.Valid(value) {
		wanted := slices.ContainsFunc(q.Options, func(o json.RawMessage) bool { return sameJSON(o, value) })
		if wanted || len(q.Options) == 0 && len(q.Schema) > 0 && schemaWants(q.Schema, value) {
			return value, nil
		}
	}
	return jsontext.Encode(text)
}

// schemaWants reports whether a JSON value may match a schema. It looks only at the schema's top level; the engine checks the rest.
func schemaWants(schema, value json.RawMessage) bool {
	var s struct {
		Type  any               `json:"type"`
		Enum  []json.RawMessage `json:"enum"`
		Const json.RawMessage   `json:"const"`
	}
	if json.Unmarshal(schema, &s) != nil { // true and false are schemas too
		return true
	}
	if len(s.Enum) > 0 {
		return slices.ContainsFunc(s.Enum, func(o json.RawMessage) bool { return sameJSON(o, value) })
	}
	if len(s.Const) > 0 {
		return sameJSON(s.Const, value)
	}
	switch types := s.Type.(type) {
	case string:
		return hasType(value, types)
	case []any:
		return slices.ContainsFunc(types, func(t any) bool {
			name, ok := t.(string)
			return ok && hasType(value, name)
		})
	}
	return true
}

// hasType reports whether a JSON value has the JSON Schema type with this name.
func hasType(value json.RawMessage, name string) bool {
	var v any
	if json.Unmarshal(value, &v) != nil {
		return false
	}
	switch v := v.(type) {
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && v == math.Trunc(v)
	case bool:
		return name == "boolean"
	case map[string]any:
		return name == "object"
	case []any:
		return name == "array"
	default:
		return name == "null"
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// plainValue formats a JSON value for people: a string without its quotes, anything else as JSON.
func plainValue(raw json.RawMessage) string {
	var text *string
	if json.Unmarshal(raw, &text) == nil && text != nil {
		return *text
	}
	return string(raw)
}
