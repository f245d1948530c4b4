package expr

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/jig-run/jig/internal/pattern"
)

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
