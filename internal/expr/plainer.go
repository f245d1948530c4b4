package expr

import (
	"strings"

	"github.com/google/cel-go/common/ast"
)

// Before an expression is checked, it is rewritten so that every type is known at once and no type is composed of two others: an empty list
// or map in the source, an optional.none() and a computed key of a map get the type dyn. Otherwise a few names could have types that are
// larger than memory, for example by nesting {x: x} repeatedly. The rewrite is undone afterwards.

// firstPlainID is the first id for nodes that exist only while a source is checked.
const firstPlainID = 1 << 40

type plainer struct {
	factory ast.ExprFactory
	parsed  *ast.AST
	next    int64
	// made holds the ids of empty lists and maps that macros create, and of others that must not be rewritten.
	made map[int64]bool
	back []func(checked *ast.AST)
}

// plain rewrites a parsed expression in place. The returned function undoes that in the checked expression.
func plain(parsed *ast.AST) func(checked *ast.AST) {
	p := &plainer{factory: ast.NewExprFactory(), parsed: parsed, next: firstPlainID, made: map[int64]bool{}}
	var found []ast.Expr
	ast.PreOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() { //nolint:exhaustive // nothing else is changed
		case ast.ComprehensionKind:
			p.macro(e.AsComprehension())
		case ast.CallKind:
			if e.AsCall().FunctionName() == "format" { // the checker counts its values
				for _, arg := range e.AsCall().Args() {
					p.made[arg.ID()] = true
				}
			}
			found = append(found, e)
		case ast.ListKind, ast.MapKind:
			found = append(found, e)
		}
	}))
	for _, e := range found {
		p.change(e)
	}
	return func(checked *ast.AST) {
		for _, back := range p.back {
			back(checked)
		}
	}
}

// unusedVariable is the loop variable of cel.bind and of the macros of optionals, whose expansions loop over an empty list.
const unusedVariable = "#unused"

func (p *plainer) macro(c ast.ComprehensionExpr) {
	if c.IterVar() == unusedVariable {
		p.made[c.IterRange().ID()] = true
		return
	}
	p.made[c.AccuInit().ID()] = true
}

func (p *plainer) change(e ast.Expr) {
	switch e.Kind() { //nolint:exhaustive // nothing else is changed
	case ast.ListKind:
		if e.AsList().Size() == 0 && !p.made[e.ID()] {
			e.SetKindCase(p.factory.NewList(e.ID(), []ast.Expr{p.unknown(e)}, nil))
			p.back = append(p.back, func(*ast.AST) { e.SetKindCase(p.factory.NewList(e.ID(), nil, nil)) })
		}
	case ast.MapKind:
		p.changeMap(e)
	case ast.CallKind:
		c := e.AsCall()
		if c.FunctionName() != "none" || len(c.Args()) > 0 || !isOptional(c) {
			return
		}
		e.SetKindCase(p.factory.NewMemberCall(e.ID(), "of", c.Target(), p.unknown(e)))
		p.back = append(p.back, func(checked *ast.AST) {
			if _, ok := callOf(e, "optional.of"); ok {
				e.SetKindCase(p.factory.NewCall(e.ID(), "optional.none"))
				checked.SetReference(e.ID(), ast.NewFunctionReference("optional_none"))
			}
		})
	}
}

func isOptional(c ast.CallExpr) bool {
	name, ok := "", false
	if c.IsMemberFunction() {
		name, ok = qualified(c.Target())
	}
	return ok && strings.TrimPrefix(name, ".") == "optional"
}

func (p *plainer) changeMap(e ast.Expr) {
	if p.made[e.ID()] {
		return
	}
	entries := e.AsMap().Entries()
	if len(entries) == 0 {
		only := p.factory.NewMapEntry(p.id(e), p.unknown(e), p.unknown(e), false)
		e.SetKindCase(p.factory.NewMap(e.ID(), []ast.EntryExpr{only}))
		p.back = append(p.back, func(*ast.AST) { e.SetKindCase(p.factory.NewMap(e.ID(), nil)) })
		return
	}
	changed, computed := make([]ast.EntryExpr, len(entries)), false
	for i, entry := range entries {
		changed[i] = entry
		if of := entry.AsMapEntry(); of.Key().Kind() != ast.LiteralKind {
			computed = true
			changed[i] = p.factory.NewMapEntry(entry.ID(), p.dyn(of.Key(), of.Key()), of.Value(), of.IsOptional())
		}
	}
	if computed {
		e.SetKindCase(p.factory.NewMap(e.ID(), changed))
		p.back = append(p.back, func(*ast.AST) { e.SetKindCase(p.factory.NewMap(e.ID(), entries)) })
	}
}

// id returns a new id with the position of an expression.
func (p *plainer) id(of ast.Expr) int64 {
	p.next++
	if position, ok := p.parsed.SourceInfo().GetOffsetRange(of.ID()); ok {
		p.parsed.SourceInfo().SetOffsetRange(p.next, position)
	}
	return p.next
}

func (p *plainer) unknown(at ast.Expr) ast.Expr { return p.factory.NewIdent(p.id(at), unknownName) }

func (p *plainer) dyn(at, e ast.Expr) ast.Expr {
	return p.factory.NewCall(p.id(at), dynName, e)
}

const (
	dynName = "dyn"
	// unknownName is a variable of type dyn that is never read. It is not a valid name in a source.
	unknownName = "@unknown"
)
