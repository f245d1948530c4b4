package expr

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// Members returns the members that the expression reads, in the notation of expressions: input.amount, tool.name, call.input.items. asked
// holds the members whose presence the expression tests with has(…), .? or in. Both lists are sorted.
func (p *Program) Members() (read, asked []string) {
	reads, asking := map[string]bool{}, map[string]bool{}
	ast.PostOrderVisit(p.checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if member, ok := asks(e); ok {
			asking[member] = true
			return
		}
		if e.Kind() == ast.SelectKind {
			reads[chain(e)] = true
		} else if args, ok := callOf(e, operators.Index); ok {
			if name, literal := text(args[1]); literal {
				reads[chain(args[0])+"."+name] = true
			}
		}
	}))
	return sortedSet(reads), sortedSet(asking)
}
