package model

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/cache"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/expr"
)

// script is a deterministic planner: CEL rules that choose the next calls or the final answer, based on what happened so far. It is for
// tests and for automations that need no model; it uses no tokens and contacts no service.
//
// Its expressions read `input` (the session's input), `session` (its id), `task` (the first message), `pass` (from 1), `calls` (all earlier
// calls in the order requested, each {id, pass, tool, input, success, status, summary, data, error: {code, message, reason}}), `last` (the
// calls of the previous pass) and `messages` ({text, by, pass}).
type script struct {
	// Rules are tried in order; the first rule that matches is used.
	Rules []scriptRule `json:"rules"`
}

// scriptRule yields either calls or an answer.
type scriptRule struct {
	// When is a CEL condition; empty means true.
	When string `json:"when,omitempty"`
	// Let are values for the rule, evaluated in order. Each one can read those before it as `vars.<name>`.
	Let []letRule `json:"let,omitempty"`
	// Say is a template for the text that accompanies the calls.
	Say string `json:"say,omitempty"`
	// ForEach is a CEL expression that returns a list. The calls are repeated for each element, available as `item`, with `index` from 0. A
	// rule whose list is empty does not match.
	ForEach string `json:"for_each,omitempty"`
	// Calls are the tool calls to request.
	Calls []callRule `json:"calls,omitempty"`
	// Answer is a template for the final answer.
	Answer string `json:"answer,omitempty"`
}

// letRule gives a name to the value of a CEL expression.
type letRule struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// callRule is a call. Its tool and the strings in its input are templates.
type callRule struct {
	// ForEach is a CEL expression that returns a list: the call is made for each element, as with the rule's ForEach. Only one of the two
	// may be set.
	ForEach string          `json:"for_each,omitempty"`
	Tool    string          `json:"tool"`
	Input   json.RawMessage `json:"input,omitempty"`
}

// scriptProvider plans with scripts and compiles each script once.
type scriptProvider struct {
	compiled *cache.Cache[[sha256.Size]byte, *plan]
}

// maxScripts is the number of compiled scripts that are cached.
const maxScripts = 256

func (p *scriptProvider) check(string) error { return nil }

func (p *scriptProvider) answer(ctx context.Context, name string, request chat.Request, progress func(string)) (chat.Turn, error) {
	plan, err := p.plan(request.Script)
	if err != nil {
		return chat.Turn{}, err
	}
	vars, err := scriptVars(request)
	if err != nil {
		return chat.Turn{}, err
	}
	turn, err := plan.next(ctx, vars)
	if err != nil {
		return chat.Turn{}, err
	}
	turn.Model = "script/" + name
	used := idsOf(conversation(request.Exchanges))
	for i, asked := 0, len(used); i < len(turn.Calls); i++ {
		turn.Calls[i].ProviderID = unusedID("", used, asked+i+1)
	}
	if turn.Text != "" {
		progress(turn.Text)
	}
	return turn, nil
}

func (p *scriptProvider) plan(script json.RawMessage) (*plan, error) {
	return p.compiled.Get(sha256.Sum256(script), func(*plan, bool) (*plan, error) {
		env, err := expr.ScriptUse().Env()
		if err != nil {
			return nil, jig.AsError(err)
		}
		made, problems := compileScript(env, script)
		if len(problems) > 0 {
			first := problems[0]
			return nil, first.Err.WithField(first.Path)
		}
		return made, nil
	})
}

func parseScript(raw json.RawMessage) (script, error) {
	var s script
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, jig.Errorf(jig.CodeInvalidInput, "this is not a script: %w", err).
			WithHint(`a script is {"rules": [{"when": …, "calls": [{"tool": …, "input": {…}}]}, {"answer": …}]}`)
	}
	if len(s.Rules) == 0 {
		return s, jig.Errorf(jig.CodeInvalidInput, "the script has no rules").WithField("rules")
	}
	return s, nil
}

// plan is a compiled script.
type plan struct{ rules []*plannedRule }

type plannedRule struct {
	when, forEach *expr.Program
	let           []plannedLet
	say, answer   *expr.Template
	calls         []plannedCall
}

type plannedLet struct {
	name  string
	value *expr.Program
	path  string
}

type plannedCall struct {
	forEach *expr.Program
	tool    *expr.Template
	input   *expr.Document
	path    string
}

var letName = regexp.MustCompile(`^[a-z][a-zA-Z0-9_]*$`)

// scriptCompiler collects all problems, so that they are reported together.
type scriptCompiler struct {
	expr.Compiler
	problems []expr.Problem
}

func compileScript(env *expr.Env, raw json.RawMessage) (*plan, []expr.Problem) {
	script, err := parseScript(raw)
	if err != nil {
		return nil, []expr.Problem{{Path: jig.AsError(err).Field, Err: jig.AsError(err)}}
	}
	c := &scriptCompiler{}
	c.Compiler = expr.Compiler{Env: env, Report: c.fail}
	p := &plan{}
	for i, rule := range script.Rules {
		p.rules = append(p.rules, c.rule(rule, fmt.Sprintf("rules[%d]", i)))
	}
	return p, c.problems
}

func (c *scriptCompiler) fail(path string, err error) {
	c.problems = append(c.problems, expr.Problem{Path: path, Err: jig.AsError(err)})
}

func (c *scriptCompiler) rule(r scriptRule, path string) *plannedRule {
	out := &plannedRule{
		when:    c.Program(path+".when", r.When, expr.Bool),
		forEach: c.Program(path+".for_each", r.ForEach, expr.List),
		say:     c.Template(path+".say", r.Say),
		answer:  c.Template(path+".answer", r.Answer),
	}
	switch {
	case len(r.Calls) == 0 && r.Answer == "":
		c.fail(path, jig.Errorf(jig.CodeInvalidInput, "the rule gives neither calls nor an answer"))
	case len(r.Calls) > 0 && r.Answer != "":
		c.fail(path, jig.Errorf(jig.CodeInvalidInput, "the rule gives calls and an answer").WithHint("text that accompanies calls is `say`"))
	case len(r.Calls) == 0 && r.ForEach != "":
		c.fail(path+".for_each", jig.Errorf(jig.CodeInvalidInput, "for_each repeats calls, and the rule has none"))
	}
	var names []string
	for i, let := range r.Let {
		at := fmt.Sprintf("%s.let[%d]", path, i)
		if !letName.MatchString(let.Name) || slices.Contains(names, let.Name) {
			c.fail(at+".name", jig.Errorf(jig.CodeInvalidInput, "%q is not a valid name, or is used twice", let.Name))
		}
		names = append(names, let.Name)
		if let.Value == "" {
			c.fail(at+".value", jig.Errorf(jig.CodeInvalidInput, "the value has no expression"))
		}
		out.let = append(out.let, plannedLet{name: let.Name, value: c.Program(at+".value", let.Value, expr.Any), path: at + ".value"})
	}
	for i, call := range r.Calls {
		if call.ForEach != "" && r.ForEach != "" {
			c.fail(fmt.Sprintf("%s.calls[%d].for_each", path, i), jig.Errorf(jig.CodeInvalidInput, "the rule's for_each already repeats its calls"))
		}
		out.calls = append(out.calls, c.call(call, fmt.Sprintf("%s.calls[%d]", path, i)))
	}
	return out
}

func (c *scriptCompiler) call(r callRule, path string) plannedCall {
	if r.Tool == "" {
		c.fail(path+".tool", jig.Errorf(jig.CodeInvalidInput, "the call names no tool"))
	}
	out := plannedCall{
		forEach: c.Program(path+".for_each", r.ForEach, expr.List), tool: c.Template(path+".tool", r.Tool), path: path,
	}
	input := r.Input
	if len(input) == 0 {
		input = json.RawMessage(`{}`)
	}
	out.input = c.Document(path+".input", input)
	if out.tool != nil && out.tool.Constant() {
		if err := jig.CheckToolName(r.Tool); err != nil && r.Tool != "" {
			c.fail(path+".tool", err)
		}
	}
	return out
}

// at adds the path in the script at which an expression failed.
func at(path string, err error) error {
	var e *jig.Error
	if !errors.As(err, &e) {
		return jig.AsError(err)
	}
	return e.WithField(path)
}
