package expr

import (
	"cmp"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	"github.com/jig-run/jig/internal/pattern"
)

// guard wraps the steps of a program whose work grows with their operands. The wrapper charges the meter before the step runs.
func (e *Env) guard(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch s := step.(type) {
	case interpreter.InterpretableConstructor:
		return guardConstructor(s), nil
	case interpreter.InterpretableCall:
		return e.guardCall(s), nil
	}
	return step, nil
}

func (e *Env) guardCall(call interpreter.InterpretableCall) interpreter.InterpretableV2 {
	if free(call.Function()) {
		return call
	}
	rule := ruleOf(call)
	switch call.Function() {
	case operators.Equals:
		return &guardedCall{InterpretableCall: call, before: rule, args: call.Args(), apply: equal, binary: types.Equal}
	case operators.NotEquals:
		return &guardedCall{InterpretableCall: call, before: rule, args: call.Args(), apply: notEqual}
	case operators.Add:
		return &guardedCall{InterpretableCall: call, before: rule, args: call.Args(), apply: add, binary: addTwo}
	case operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo:
		binary := func(a, b ref.Val) ref.Val { return arithmetic(call.Function(), a, b) }
		apply := func(_ *meter, args []ref.Val) ref.Val { return binary(args[0], args[1]) }
		return &guardedCall{InterpretableCall: call, before: rule, args: call.Args(), apply: apply, binary: binary}
	}
	if call.Function() == overloads.Matches {
		return guardMatches(call)
	}
	overload := e.bindings[call.OverloadID()]
	if overload == nil {
		overload = e.bindings[call.Function()]
	}
	if overload == nil || overload.NonStrict {
		return call
	}
	if call.Function() == jsonEncodeName {
		overload = &functions.Overload{Unary: e.jsonEncode}
	}
	guarded := &guardedCall{InterpretableCall: call, before: rule, args: call.Args(), apply: applyOverload(call, overload)}
	switch {
	case call.Function() == "sort", call.Function() == "@sortByAssociatedKeys":
		guarded.apply = e.sorted(guarded.apply)
	case truth(call.Function()) && len(guarded.args) == 2 && overload.Binary != nil:
		guarded.binary = binaryOf(call, overload)
	case call.Function() == operators.In && overload.Binary != nil:
		guarded.pair, guarded.binary = chargeInTwo, binaryOf(call, overload)
	case call.Function() == overloads.Size:
		guarded.size = overload.Unary
	case call.Function() == overloads.TypeConvertString:
		guarded.apply = digits(guarded.apply)
	}
	return guarded
}

type applier func(m *meter, args []ref.Val) ref.Val

// guardedCall evaluates its arguments, charges the meter, calls the function and charges for the result.
type guardedCall struct {
	interpreter.InterpretableCall
	args   []interpreter.InterpretableV2
	before rule
	apply  applier
	// binary replaces apply for two arguments that are too small to be charged. size replaces it for one argument whose parts are not read.
	binary func(left, right ref.Val) ref.Val
	size   func(ref.Val) ref.Val
	// pair charges for two arguments of any size, before binary is called.
	pair func(m *meter, left, right ref.Val)
}

func (g *guardedCall) Eval(vars interpreter.Activation) ref.Val {
	return g.Exec(interpreter.AsFrame(vars))
}

func (g *guardedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	if g.size != nil {
		v := g.args[0].Exec(frame)
		if types.IsUnknownOrError(v) {
			return v
		}
		switch v.(type) {
		case traits.Lister, traits.Mapper:
			return types.LabelErrNode(g.ID(), g.size(v))
		}
		return g.call(frame, []ref.Val{v}, true)
	}
	if g.binary == nil {
		return g.execAll(frame)
	}
	left := g.args[0].Exec(frame)
	if types.IsUnknownOrError(left) {
		return left
	}
	right := g.args[1].Exec(frame)
	if types.IsUnknownOrError(right) {
		return right
	}
	if err := cmp.Or(g.refused(left), g.refused(right)); err != nil {
		return err
	}
	if g.pair != nil {
		g.pair(meterOf(frame), left, right)
		return types.LabelErrNode(g.ID(), g.binary(left, right))
	}
	if _, growing := left.(traits.MutableLister); growing {
		return types.LabelErrNode(g.ID(), g.binary(left, right)) // a macro's list; the added value was charged when it was made
	}
	if heavy(left) || heavy(right) {
		return g.call(frame, []ref.Val{left, right}, true)
	}
	return types.LabelErrNode(g.ID(), named(g.Function(), g.binary(left, right), left, right))
}

func (g *guardedCall) execAll(frame *interpreter.ExecutionFrame) ref.Val {
	args := make([]ref.Val, len(g.args))
	charged := g.before.always
	for i, arg := range g.args {
		args[i] = arg.Exec(frame)
		if types.IsUnknownOrError(args[i]) {
			return args[i]
		}
		if err := g.refused(args[i]); err != nil {
			return err
		}
		charged = charged || heavy(args[i])
	}
	return g.call(frame, args, charged)
}

func (g *guardedCall) call(frame *interpreter.ExecutionFrame, args []ref.Val, charged bool) ref.Val {
	var m *meter
	if charged {
		m = meterOf(frame)
		g.before.charge(m, args)
	}
	result := named(g.Function(), g.apply(m, args), args...)
	if g.before.light {
		return types.LabelErrNode(g.ID(), result)
	}
	if weight := shallow(result); weight > valueWeight {
		if m == nil {
			m = meterOf(frame)
		}
		m.spend(weight)
	}
	return types.LabelErrNode(g.ID(), result)
}

// heavy reports whether the work on a value is worth charging.
func heavy(v ref.Val) bool {
	switch x := v.(type) {
	case types.Int, types.Bool, types.Double, types.Null, types.Uint:
		return false
	case types.String:
		return len(x) > valueWeight
	}
	return compound(v) || shallow(v) > valueWeight
}

// guardConstructor turns a list or map of constants into a constant. Other lists and maps are charged each time they are made.
func guardConstructor(c interpreter.InterpretableConstructor) interpreter.InterpretableV2 {
	constant := true
	for _, v := range c.InitVals() {
		_, isConst := v.(interpreter.InterpretableConst)
		constant = constant && isConst
	}
	if constant {
		if v := c.Eval(interpreter.EmptyActivation()); !types.IsUnknownOrError(v) {
			return interpreter.NewConstValue(c.ID(), v)
		}
	}
	return &guardedConstructor{InterpretableConstructor: c, weight: int64(96 + valueWeight*len(c.InitVals()))}
}

type guardedConstructor struct {
	interpreter.InterpretableConstructor
	weight int64
}

func (g *guardedConstructor) Eval(vars interpreter.Activation) ref.Val {
	return g.Exec(interpreter.AsFrame(vars))
}

func (g *guardedConstructor) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	meterOf(frame).spend(g.weight)
	return g.InterpretableConstructor.Eval(frame)
}

func equal(_ *meter, args []ref.Val) ref.Val { return types.Equal(args[0], args[1]) }

func notEqual(_ *meter, args []ref.Val) ref.Val {
	eq, ok := types.Equal(args[0], args[1]).(types.Bool)
	return types.Bool(!ok || !bool(eq))
}

// add is the + operator. Lists that are joined outside a comprehension are copied: cel-go would chain them, and it walks a chain from its
// beginning for every element.
func add(_ *meter, args []ref.Val) ref.Val { return addTwo(args[0], args[1]) }

func addTwo(a, b ref.Val) ref.Val {
	left, leftList := a.(traits.Lister)
	right, rightList := b.(traits.Lister)
	if _, growing := a.(traits.MutableLister); leftList && rightList && !growing {
		all := make([]ref.Val, 0, sizeOf(left)+sizeOf(right))
		for _, list := range []traits.Lister{left, right} {
			for i, n := types.Int(0), types.Int(sizeOf(list)); i < n; i++ {
				all = append(all, list.Get(i))
			}
		}
		return types.NewRefValList(types.DefaultTypeAdapter, all)
	}
	return arithmetic(operators.Add, a, b)
}

// truth reports whether a function takes two values and returns a boolean, so that its result needs no charge.
func truth(function string) bool {
	switch function {
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
		overloads.Contains, overloads.StartsWith, overloads.EndsWith:
		return true
	}
	return false
}

// binaryOf is like applyOverload for two arguments, without a slice for them.
func binaryOf(call interpreter.InterpretableCall, o *functions.Overload) func(left, right ref.Val) ref.Val {
	if o.OperandTrait == 0 {
		return o.Binary
	}
	apply := applyOverload(call, o)
	return func(left, right ref.Val) ref.Val {
		if !left.Type().HasTrait(o.OperandTrait) {
			return apply(nil, []ref.Val{left, right})
		}
		return o.Binary(left, right)
	}
}

// applyOverload calls a function as cel-go's planner would: by its binding, or otherwise as a method of its first argument.
func applyOverload(call interpreter.InterpretableCall, o *functions.Overload) applier {
	return func(_ *meter, args []ref.Val) ref.Val {
		if len(args) > 0 && o.OperandTrait != 0 && !args[0].Type().HasTrait(o.OperandTrait) {
			if receiver, ok := args[0].(traits.Receiver); ok {
				return receiver.Receive(call.Function(), call.OverloadID(), args[1:])
			}
			return noOverload(call.Function(), args)
		}
		switch {
		case len(args) == 1 && o.Unary != nil:
			return o.Unary(args[0])
		case len(args) == 2 && o.Binary != nil:
			return o.Binary(args[0], args[1])
		case o.Function != nil:
			return o.Function(args...)
		}
		return noOverload(call.Function(), args)
	}
}

// maxPatterns limits the total size of the regular expressions that are constants in one source, in compiled instructions.
const maxPatterns = 20_000

// checkPatterns refuses regular expressions in the source that are malformed or too large.
func checkPatterns(source string, checked *ast.AST) *IssueError {
	var found *IssueError
	set := pattern.Set{Most: maxPatterns}
	ast.PostOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if found != nil || e.Kind() != ast.CallKind || e.AsCall().FunctionName() != overloads.Matches {
			return
		}
		args := e.AsCall().Args()
		last := args[len(args)-1]
		if last.Kind() != ast.LiteralKind {
			return
		}
		if text, ok := last.AsLiteral().(types.String); ok {
			if _, err := set.Compile(string(text)); err != nil {
				found = &IssueError{Source: source, Message: err.Error(), Offset: offsetOf(checked.SourceInfo(), last.ID())}
			}
		}
	}))
	return found
}

// guardMatches compiles a constant pattern once and any other pattern when it is used. It charges for the length of the text times the size
// of the pattern.
func guardMatches(call interpreter.InterpretableCall) interpreter.InterpretableV2 {
	var constant *pattern.Pattern
	if c, ok := call.Args()[1].(interpreter.InterpretableConst); ok {
		if text, ok := c.Value().(types.String); ok {
			constant, _ = pattern.Compile(string(text)) //nolint:errcheck // checkPatterns has refused patterns that do not compile
		}
	}
	return &guardedCall{
		InterpretableCall: call, args: call.Args(),
		before: rule{always: true, charge: func(*meter, []ref.Val) {}},
		apply: func(m *meter, args []ref.Val) ref.Val {
			text, ok1 := args[0].(types.String)
			source, ok2 := args[1].(types.String)
			if !ok1 || !ok2 {
				return noOverload(overloads.Matches, args)
			}
			p := constant
			if p == nil {
				m.spend(64 * int64(len(source)))
				var err error
				if p, err = pattern.Compile(string(source)); err != nil {
					return types.WrapErr(err)
				}
				m.spend(int64(p.Effort()) * compiledWeight)
			}
			m.spendProduct(int64(len(text)), 1+int64(p.Size())/4)
			return types.Bool(p.MatchString(string(text)))
		},
	}
}

// compiledWeight is the approximate number of bytes that compiling one instruction of a pattern allocates.
const compiledWeight = 256
