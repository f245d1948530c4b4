package spec

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
)

// compileScript compiles every expression and template of a script and reports those that do not compile, each at its place.
func (d *decoder) compileScript(s script) {
	env, err := expr.ScriptUse().Env()
	if err != nil {
		d.at("script", ProblemBadCEL, "", "expressions cannot be checked: %v", err)
		return
	}
	c := compiler{decoder: d, env: env}
	for i, rule := range s.Rules {
		path := indexPath("script.rules", i)
		c.expression(path+".when", rule.When, expr.Bool)
		for j, let := range rule.Let {
			c.expression(indexPath(path+".let", j)+".value", let.Value, expr.Any)
		}
		c.expression(path+".for_each", rule.ForEach, expr.List)
		c.template(path+".say", rule.Say)
		c.template(path+".answer", rule.Answer)
		for j, call := range rule.Calls {
			at := indexPath(path+".calls", j)
			c.expression(at+".for_each", call.ForEach, expr.List)
			c.template(at+".tool", call.Tool)
			if len(call.Input) == 0 {
				continue
			}
			_, problems := env.Document(call.Input)
			for _, p := range problems {
				c.report(expr.JoinPath(at+".input", p.Path), p.Err)
			}
		}
	}
}

// compiler checks the expressions of a document in one environment.
type compiler struct {
	*decoder
	env *expr.Env
}

func (c compiler) expression(path string, source Expression, want expr.Type) {
	if source == "" {
		return
	}
	if _, err := c.env.CompileAs(string(source), want); err != nil {
		c.report(path, err)
	}
}

func (c compiler) template(path, source string) {
	if source == "" {
		return
	}
	if _, err := c.env.Template(source); err != nil {
		c.report(path, err)
	}
}

// report reports an error in the expression at a path. The message includes the position in the expression, because YAML folds
// block text, so that positions in the document cannot be computed from it.
func (c compiler) report(path string, err error) {
	if slices.ContainsFunc(c.problems, func(p Problem) bool { return p.Path == path }) {
		return // reported before: the text has the wrong form
	}
	c.at(path, ProblemBadCEL, jig.AsError(err).Hint, "%s", expressionMessage(err))
}

// expressionMessage returns what is wrong with an expression, on one line.
func expressionMessage(err error) string {
	var issue *expr.IssueError
	if errors.As(err, &issue) {
		line, column := issue.Position()
		return fmt.Sprintf("%s (line %d, column %d of the expression)", issue.Message, line, column)
	}
	return jig.AsError(err).Message
}
