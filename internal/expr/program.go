package expr

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/cache"
	"github.com/jig-run/jig/internal/jsontext"
)

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	env     *Env
	source  string
	want    Type
	gives   Type
	reads   Reads
	checked *ast.AST
	program cel.Program
}

// Source returns the expression as it was written.
func (p *Program) Source() string { return p.source }

// Type returns the type of the result if the source determines it. It returns Any if the type is known only at run time, or if no Type
// constant exists for it.
func (p *Program) Type() Type { return p.gives }

// Eval evaluates the expression with the given variables; see [From] for their possible values. A declared variable that is missing is an
// error only if it is read. The result is nil, bool, int64, uint64, float64, string, []any or map[string]any.
func (p *Program) Eval(ctx context.Context, vars map[string]any) (any, error) {
	return p.evalIn(ctx, p.env.evaluation(vars))
}

func (p *Program) evalIn(ctx context.Context, in *evaluation) (any, error) {
	v, err := p.run(ctx, in)
	if err != nil {
		return nil, err
	}
	out, err := in.out.value(v, 0)
	if err != nil {
		return nil, p.resultError(err)
	}
	return out, nil
}

// EvalJSON is like [Program.Eval] but returns the result as JSON.
func (p *Program) EvalJSON(ctx context.Context, vars map[string]any) (json.RawMessage, error) {
	out, err := p.Eval(ctx, vars)
	if err != nil {
		return nil, err
	}
	return jsontext.Encode(out)
}

// EvalValue is like [Program.Eval] but returns the result as a value for further expressions.
func (p *Program) EvalValue(ctx context.Context, vars map[string]any) (Value, error) {
	v, err := p.run(ctx, p.env.evaluation(vars))
	if err != nil {
		return Value{}, err
	}
	return Value{v: v}, nil
}

// EvalBool evaluates a condition. A result other than true or false is an error.
func (p *Program) EvalBool(ctx context.Context, vars map[string]any) (bool, error) {
	v, err := p.run(ctx, p.env.evaluation(vars))
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, wrongResult(p.source, v.Type().TypeName(), Bool).jig()
	}
	return bool(b), nil
}

func (p *Program) run(ctx context.Context, in *evaluation) (ref.Val, error) {
	if err := ctx.Err(); err != nil {
		return nil, ended(err)
	}
	v, _, err := p.program.ContextEval(ctx, in)
	if in.err != nil {
		return nil, in.err
	}
	if err != nil {
		return nil, p.evalError(ctx, err)
	}
	if p.want != Any && !p.want.holds(v) {
		return nil, wrongResult(p.source, v.Type().TypeName(), p.want).jig()
	}
	return v, nil
}

func (t Type) holds(v ref.Val) bool {
	kind, ok := v.Type().(*cel.Type)
	return ok && t.cel().Kind() == kind.Kind()
}

func (p *Program) resultError(err error) error {
	var e *jig.Error
	if !errors.As(err, &e) {
		return err
	}
	return (&IssueError{Source: p.source, Message: e.Message, Cause: err}).jig()
}

// evaluation is the context in which one expression, or all expressions of one template or document, are evaluated. They share the limits
// and the variables, each of which is converted when it is first read.
type evaluation struct {
	vars  map[string]any
	ready map[string]any
	meter meter
	out   exporter
	err   error
}

func (e *Env) evaluation(vars map[string]any) *evaluation {
	limits := e.use.Limits
	return &evaluation{
		vars:  vars,
		meter: meter{left: limits.Work, limit: limits.Work, steps: limits.Cost, cost: limits.Cost},
		out:   exporter{left: limits.Result, limit: limits.Result},
	}
}

// Parent implements cel.Activation.
func (a *evaluation) Parent() cel.Activation { return nil }

// ResolveName implements cel.Activation.
func (a *evaluation) ResolveName(name string) (any, bool) {
	if name == meterName {
		return &a.meter, true
	}
	v, ok := a.vars[name]
	if !ok {
		return nil, false
	}
	if ready, ok := v.(Value); ok {
		if ready.v == nil {
			return types.NullValue, true
		}
		return ready.v, true
	}
	if ready, ok := a.ready[name]; ok {
		return ready, true
	}
	converted, err := From(v)
	if err != nil {
		a.err = jig.AsError(err).WithField(name)
		return types.WrapErr(err), true
	}
	if a.ready == nil {
		a.ready = make(map[string]any, len(a.vars))
	}
	a.ready[name] = converted.v
	return converted.v, true
}

// maxPrograms is the number of compiled expressions that an Engine keeps.
const maxPrograms = 1_000

// Engine evaluates the expressions that jig itself uses, each compiled once. It is safe for concurrent use.
type Engine struct {
	keys, undos *Env
	// programs holds the compiled expressions by their use and source.
	programs *cache.Cache[programKey, *Program]
}

type programKey struct {
	use    *Env
	source string
}

// NewEngine returns an Engine with an empty cache.
func NewEngine() (*Engine, error) {
	keys, err := ConcurrencyKeyUse().Env()
	if err != nil {
		return nil, err
	}
	undos, err := UndoInputUse().Env()
	if err != nil {
		return nil, err
	}
	return &Engine{keys: keys, undos: undos, programs: cache.New[programKey, *Program](0, maxPrograms)}, nil
}

// ConcurrencyKey evaluates a tool's concurrency key for a call's input. If the result is a string, it is the key; otherwise the key is the JSON
// of the result. An empty source, an empty text and null give the empty key, which means that the call waits for no other.
func (e *Engine) ConcurrencyKey(ctx context.Context, source string, input json.RawMessage) (string, error) {
	if source == "" {
		return "", nil
	}
	p, err := e.compiled(e.keys, source)
	if err != nil {
		return "", err
	}
	v, err := p.Eval(ctx, map[string]any{"input": input})
	if err != nil || v == nil {
		return "", err
	}
	return asText(v)
}

// UndoInput evaluates the input with which the effect of a call is undone, from the call's input and the data of its result. An empty source gives
// the call's input.
func (e *Engine) UndoInput(ctx context.Context, source string, input, result json.RawMessage) (json.RawMessage, error) {
	if source == "" {
		return input, nil
	}
	p, err := e.compiled(e.undos, source)
	if err != nil {
		return nil, err
	}
	return p.EvalJSON(ctx, map[string]any{"input": input, "result": result})
}

func (e *Engine) compiled(use *Env, source string) (*Program, error) {
	return e.programs.Get(programKey{use, source}, func(*Program, bool) (*Program, error) { return use.CompileAs(source, Any) })
}
