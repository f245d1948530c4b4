package expr

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// checkPatterns refuses regular expressions that are written out in the source and are malformed or too large.
func checkPatterns(source string, checked *ast.AST) *IssueError {
	var found *IssueError
	sum := int64(0)
	ast.PostOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if found != nil || e.Kind() != ast.CallKind || e.AsCall().FunctionName() != overloads.Matches {
			return
		}
		args := e.AsCall().Args()
		last := args[len(args)-1]
		if last.Kind() != ast.LiteralKind {
			return
		}
		if pattern, ok := last.AsLiteral().(types.String); ok {
			size, err := patternSize(string(pattern))
			if sum += size; err == nil && sum > maxPatternSum {
				err = fmt.Errorf("the regular expressions are too large together: more than %d steps", maxPatternSum)
			}
			if err != nil {
				found = &IssueError{Source: source, Message: err.Error(), Offset: offsetOf(checked.SourceInfo(), last.ID())}
			}
		}
	}))
	return found
}

// patternSize is the number of instructions of a regular expression: what a matcher may do for each byte of the text.
func patternSize(pattern string) (int64, error) {
	if len(pattern) > maxPattern {
		return 0, fmt.Errorf("the regular expression has %d bytes, at most %d are allowed", len(pattern), maxPattern)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("not a regular expression: %w", err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, fmt.Errorf("not a regular expression: %w", err)
	}
	if len(program.Inst) > maxPatternSize {
		return 0, fmt.Errorf("the regular expression is too large: %d steps, at most %d are allowed", len(program.Inst), maxPatternSize)
	}
	return int64(len(program.Inst)), nil
}

// guardMatches compiles a constant pattern once, any other when it is used, and charges for the text times the pattern.
func guardMatches(call interpreter.InterpretableCall) interpreter.InterpretableV2 {
	var constant *pattern
	if c, ok := call.Args()[1].(interpreter.InterpretableConst); ok {
		if text, ok := c.Value().(types.String); ok {
			constant, _ = newPattern(string(text)) //nolint:errcheck // checkPatterns has refused what does not compile
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
				if p, err = newPattern(string(source)); err != nil {
					return types.WrapErr(err)
				}
				m.spend(p.size * compiledWeight)
			}
			m.spendProduct(int64(len(text)), 1+p.size/4)
			return types.Bool(p.compiled.MatchString(string(text)))
		},
	}
}

// compiledWeight is about what compiling one instruction of a pattern allocates.
const compiledWeight = 256

type pattern struct {
	compiled *regexp.Regexp
	size     int64
}

func newPattern(source string) (*pattern, error) {
	size, err := patternSize(source)
	if err != nil {
		return nil, err
	}
	compiled, err := regexp.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("not a regular expression: %w", err)
	}
	return &pattern{compiled: compiled, size: size}, nil
}
