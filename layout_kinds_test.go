package jig_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// comparesKinds lists the files that may compare kinds of documents, with the reason.
func comparesKinds() map[string]string {
	return map[string]string{
		"internal/plan/extractor/progress.go": "a frame runs a composition or fills an entity, and only the latter has progress",
	}
}

var kindName = regexp.MustCompile(`^Kind[A-Z]`)

// A new kind of document is a row of the table in package spec. Code that asks which kind a document has would have to be found for it.
func TestKinds_AreNotComparedOutsideTheirTable(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if _, may := comparesKinds()[s.file]; may || s.test {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			var compared []ast.Expr
			switch x := n.(type) {
			case *ast.BinaryExpr:
				if x.Op == token.EQL || x.Op == token.NEQ {
					compared = []ast.Expr{x.X, x.Y}
				}
			case *ast.CaseClause:
				compared = x.List
			}
			for _, one := range compared {
				require.False(t, s.namesKind(one), "%s compares kinds of documents: let the kind's row in spec/kind.go say what differs", s.file)
			}
			return true
		})
	}
}

// namesKind reports whether an expression contains a constant of package spec for a kind. Conversions and methods of the
// constant do not hide it; the arguments of functions are not examined.
func (s source) namesKind(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.CallExpr:
			converts, ok := x.Fun.(*ast.Ident)
			return !ok || converts.Name == "string"
		case *ast.SelectorExpr:
			from, ok := x.X.(*ast.Ident)
			found = found || ok && from.Name == "spec" && kindName.MatchString(x.Sel.Name)
		case *ast.Ident:
			found = found || s.folder == "spec" && kindName.MatchString(x.Name)
		}
		return true
	})
	return found
}
