package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
)

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
	env      *expr.Env
	problems []expr.Problem
}

func compileScript(env *expr.Env, raw json.RawMessage) (*plan, []expr.Problem) {
	script, err := parseScript(raw)
	if err != nil {
		return nil, []expr.Problem{{Path: jig.AsError(err).Field, Err: jig.AsError(err)}}
	}
	c := &scriptCompiler{env: env}
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
		when:    c.program(r.When, expr.Bool, path+".when"),
		forEach: c.program(r.ForEach, expr.List, path+".for_each"),
		say:     c.template(r.Say, path+".say"),
		answer:  c.template(r.Answer, path+".answer"),
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
		out.let = append(out.let, plannedLet{name: let.Name, value: c.program(let.Value, expr.Any, at+".value"), path: at + ".value"})
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
		forEach: c.program(r.ForEach, expr.List, path+".for_each"), tool: c.template(r.Tool, path+".tool"), path: path,
	}
	input := r.Input
	if len(input) == 0 {
		input = json.RawMessage(`{}`)
	}
	document, problems := c.env.Document(input)
	for _, p := range problems {
		c.problems = append(c.problems, expr.Problem{Path: join(path+".input", p.Path), Err: p.Err})
	}
	out.input = document
	if out.tool != nil && out.tool.Constant() {
		if err := jig.CheckToolName(r.Tool); err != nil && r.Tool != "" {
			c.fail(path+".tool", err)
		}
	}
	return out
}

func (c *scriptCompiler) program(source string, want expr.Type, path string) *expr.Program {
	if source == "" {
		return nil
	}
	p, err := c.env.CompileAs(source, want)
	if err != nil {
		c.fail(path, err)
		return nil
	}
	return p
}

func (c *scriptCompiler) template(source, path string) *expr.Template {
	if source == "" {
		return nil
	}
	t, err := c.env.Template(source)
	if err != nil {
		c.fail(path, err)
		return nil
	}
	return t
}

func join(path, inner string) string {
	if inner == "" || inner[0] == '[' {
		return path + inner
	}
	return path + "." + inner
}

// at adds the path in the script at which an expression failed.
func at(path string, err error) error {
	var e *jig.Error
	if !errors.As(err, &e) {
		return jig.AsError(err)
	}
	return e.WithField(path)
}
