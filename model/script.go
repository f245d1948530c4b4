package model

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"

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
	env      func() (*expr.Env, error)
	compiled *cache.Cache[[sha256.Size]byte, *plan]
}

// maxScripts is the number of compiled scripts that are cached.
const maxScripts = 256

func newScriptProvider() *scriptProvider {
	return &scriptProvider{env: sync.OnceValues(expr.ScriptEnv), compiled: cache.New[[sha256.Size]byte, *plan](0, maxScripts)}
}

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
		env, err := p.env()
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
