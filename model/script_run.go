package model

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/expr"
)

// maxScriptCalls bounds the calls of one turn.
const maxScriptCalls = 10_000

// next returns the turn of the first rule that matches.
func (p *plan) next(ctx context.Context, vars map[string]any) (chat.Turn, error) {
	for i, r := range p.rules {
		turn, matched, err := r.try(ctx, vars, fmt.Sprintf("rules[%d]", i))
		if err != nil || matched {
			return turn, err
		}
	}
	return chat.Turn{}, jig.Errorf(jig.CodeInvalidInput, "no rule matched").WithField("rules").
		WithHint("give the script a last rule without `when`")
}

func (r *plannedRule) try(ctx context.Context, vars map[string]any, path string) (turn chat.Turn, matched bool, err error) {
	if r.when != nil {
		ok, err := r.when.EvalBool(ctx, vars)
		if err != nil {
			return turn, false, at(path+".when", err)
		}
		if !ok {
			return turn, false, nil
		}
	}
	if vars, err = r.bind(ctx, vars); err != nil {
		return turn, false, err
	}
	if turn.Text, err = text(ctx, r.say, vars, path+".say"); err != nil {
		return turn, false, err
	}
	if r.answer != nil {
		turn.Text, err = text(ctx, r.answer, vars, path+".answer")
		turn.Stop = chat.StopEnd
		return turn, true, err
	}
	turn.Calls, err = r.ask(ctx, vars, path)
	turn.Stop = chat.StopCalls
	return turn, len(turn.Calls) > 0, err
}

// bind evaluates the rule's values in order; each can read those before it.
func (r *plannedRule) bind(ctx context.Context, vars map[string]any) (map[string]any, error) {
	if len(r.let) == 0 {
		return vars, nil
	}
	own := maps.Clone(vars)
	values := map[string]any{}
	for _, let := range r.let {
		own["vars"] = values
		v, err := let.value.EvalValue(ctx, own)
		if err != nil {
			return nil, at(let.path, err)
		}
		values = maps.Clone(values)
		values[let.name] = v
	}
	ready, err := expr.From(values)
	own["vars"] = ready
	return own, err
}

func (r *plannedRule) ask(ctx context.Context, vars map[string]any, path string) ([]jig.ToolCall, error) {
	var calls []jig.ToolCall
	err := each(ctx, r.forEach, vars, path, func(vars map[string]any) (err error) {
		calls, err = r.round(ctx, vars, calls, path)
		return err
	})
	return calls, err
}

// round adds the rule's calls to calls.
func (r *plannedRule) round(ctx context.Context, vars map[string]any, calls []jig.ToolCall, path string) ([]jig.ToolCall, error) {
	for _, c := range r.calls {
		err := each(ctx, c.forEach, vars, c.path, func(vars map[string]any) error {
			if len(calls) == maxScriptCalls {
				return jig.Errorf(jig.CodeInvalidInput, "the rule gives more than %d calls", maxScriptCalls).WithField(path)
			}
			tool, err := text(ctx, c.tool, vars, path)
			if err != nil {
				return err
			}
			input, err := c.input.Render(ctx, vars)
			if err != nil {
				return at(expr.JoinPath(c.path+".input", jig.AsError(err).Field), err)
			}
			calls = append(calls, jig.ToolCall{Name: tool, Input: input})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return calls, nil
}

// each calls do with the variables for each element of the list that forEach returns, or once if there is no forEach.
func each(ctx context.Context, forEach *expr.Program, vars map[string]any, path string, do func(vars map[string]any) error) error {
	if forEach == nil {
		return do(vars)
	}
	v, err := forEach.Eval(ctx, vars)
	if err != nil {
		return at(path+".for_each", err)
	}
	items, ok := v.([]any)
	if !ok {
		return jig.Errorf(jig.CodeInvalidInput, "for_each does not evaluate to a list").WithField(path + ".for_each")
	}
	if len(items) > maxScriptCalls {
		return jig.Errorf(jig.CodeInvalidInput, "for_each gives more than %d calls", maxScriptCalls).WithField(path + ".for_each")
	}
	own := maps.Clone(vars)
	for i, item := range items {
		own["item"], own["index"] = item, i
		if err := do(own); err != nil {
			return err
		}
	}
	return nil
}

func text(ctx context.Context, t *expr.Template, vars map[string]any, path string) (string, error) {
	if t == nil {
		return "", nil
	}
	s, err := t.EvalText(ctx, vars)
	if err != nil {
		return "", at(path, err)
	}
	return s, nil
}

// scriptVars returns the variables of a script's expressions; each value is converted once.
func scriptVars(r chat.Request) (map[string]any, error) {
	var calls, last, messages []any
	task := ""
	for _, e := range r.Exchanges {
		for _, m := range e.Messages {
			if task == "" && len(messages) == 0 {
				task = m.Text
			}
			messages = append(messages, map[string]any{"text": m.Text, "by": m.By, "pass": m.Pass})
		}
		for _, c := range e.Calls {
			v := scriptCall(c)
			calls = append(calls, v)
			if c.Pass == r.Pass-1 {
				last = append(last, v)
			}
		}
	}
	vars := map[string]any{"session": r.SessionID, "task": task, "pass": r.Pass, "vars": map[string]any{}}
	for name, v := range map[string]any{"input": r.Input, "calls": calls, "last": last, "messages": messages} {
		if list, ok := v.([]any); ok && list == nil {
			v = []any{}
		}
		ready, err := expr.From(v)
		if err != nil {
			return nil, jig.AsError(err).WithField(name)
		}
		vars[name] = ready
	}
	return vars, nil
}

func scriptCall(c jig.Call) map[string]any {
	out := map[string]any{
		"id": c.ID, "pass": c.Pass, "tool": c.Tool, "status": string(c.Status), "success": false, "summary": "",
		"input": jsonOrText(c.Input), "data": nil, "error": nil,
	}
	if c.Result == nil {
		return out
	}
	out["success"], out["summary"], out["data"] = c.Result.Success, c.Result.Summary, jsonOrText(c.Result.Data)
	if e := c.Result.Error; e != nil {
		out["error"] = map[string]any{"code": string(e.Code), "message": e.Message, "reason": e.Reason}
	}
	return out
}

// jsonOrText returns JSON unchanged, nil for nothing, and anything else (arguments that a model wrote) as text.
func jsonOrText(raw []byte) any {
	if len(raw) == 0 {
		return nil
	}
	if !json.Valid(raw) {
		return string(raw)
	}
	return json.RawMessage(raw)
}
