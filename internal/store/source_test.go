package store_test

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// source is the code of this package with its types.
type source struct {
	files  *token.FileSet
	syntax []*ast.File
	info   *types.Info
	// values holds what is assigned to each variable and field.
	values map[types.Object][]assigned
	// functions holds the declaration of each function.
	functions map[types.Object]*ast.FuncDecl
}

// assigned is an assigned expression; of one that has several results, the one with the number result.
type assigned struct {
	expr   ast.Expr
	result int
}

// loadPackage reads and type-checks the package.
func loadPackage(t *testing.T) *source {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-f",
		`{{if not .DepOnly}}{{range .GoFiles}}{{.}} {{end}}{{end}}={{.ImportPath}}={{.Export}}`, ".").Output()
	require.NoError(t, err)
	exports := map[string]string{}
	s := &source{files: token.NewFileSet(), values: map[types.Object][]assigned{}, functions: map[types.Object]*ast.FuncDecl{}}
	for line := range strings.Lines(string(out)) {
		parts := strings.Split(strings.TrimSpace(line), "=")
		exports[parts[1]] = parts[2]
		for _, name := range strings.Fields(parts[0]) {
			file, err := parser.ParseFile(s.files, name, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			s.syntax = append(s.syntax, file)
		}
	}
	s.info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
	}
	config := types.Config{Importer: importer.ForCompiler(s.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	_, err = config.Check("store", s.files, s.syntax, s.info)
	require.NoError(t, err)
	for _, file := range s.syntax {
		ast.Inspect(file, s.index)
	}
	return s
}

// index records what is assigned to variables and fields, and where functions are declared.
func (s *source) index(n ast.Node) bool {
	assign := func(to, from ast.Expr, result int) {
		if o := s.object(to); o != nil {
			s.values[o] = append(s.values[o], assigned{from, result})
		}
	}
	switch n := n.(type) {
	case *ast.FuncDecl:
		s.functions[s.info.Defs[n.Name]] = n
	case *ast.KeyValueExpr:
		assign(n.Key, n.Value, 0)
	case *ast.RangeStmt:
		assign(n.Value, n.X, 0)
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if len(n.Rhs) == len(n.Lhs) {
				assign(to, n.Rhs[i], 0)
			} else {
				assign(to, n.Rhs[0], i)
			}
		}
	}
	return true
}

// object returns the variable, field or function that an expression names. For an element it returns the list.
func (s *source) object(e ast.Expr) types.Object {
	switch e := e.(type) {
	case *ast.Ident:
		return s.info.ObjectOf(e)
	case *ast.SelectorExpr:
		return s.info.Uses[e.Sel]
	case *ast.IndexExpr:
		return s.object(e.X)
	}
	return nil
}

// text returns the value of a constant string, or "".
func (s *source) text(e ast.Expr) string {
	if v := s.info.Types[e].Value; v != nil && v.Kind() == constant.String {
		return constant.StringVal(v)
	}
	return ""
}

// literals returns the constant strings in the code.
func (s *source) literals() map[string]bool {
	set := map[string]bool{}
	for e := range s.info.Types {
		set[s.text(e)] = true
	}
	return set
}

// use is a place in the code that runs a statement.
type use struct {
	// name is the statement's name, or "" when it is not a constant.
	name string
	// function is the declaration around it.
	function string
	at       token.Position
	// call is the call of tx.queue or of ask, or nil when the code gets the statement in another way. Its arguments from the number after on are
	// those of the statement.
	call  *ast.CallExpr
	after int
	// reader is the function that reads the rows, and into the type of what it reads: "" and nil when nothing is read.
	reader string
	into   types.Type
}

// uses lists the places that run a statement.
func (s *source) uses() []use {
	var list []use
	readers := map[ast.Node]use{}
	for _, decl := range s.functions {
		ast.Inspect(decl, func(n ast.Node) bool {
			u := use{function: decl.Name.Name}
			if n != nil {
				u.at = s.files.Position(n.Pos())
			}
			switch n := n.(type) {
			case *ast.IndexExpr:
				if s.named(n.X, "queries") {
					list = append(list, u)
				}
			case *ast.CallExpr:
				switch {
				case len(n.Args) == 2 && s.named(n.Fun, "list", "first", "value", "column") && strings.HasSuffix(s.info.TypeOf(n.Args[0]).String(), ".QueuedQuery"):
					read := n.Args[0]
					if call, ok := read.(*ast.CallExpr); !ok || !s.named(call.Fun, "queue") {
						list = append(list, u)
					}
					into := element(element(s.info.TypeOf(n.Args[1]))) // of *[]T or **T
					readers[read] = use{reader: s.object(n.Fun).Name(), into: into}
				case s.named(n.Fun, "queue") && s.functions[s.object(n.Fun)] != nil:
					u.name, u.call, u.after, u.reader, u.into = s.text(n.Args[0]), n, 1, readers[n].reader, readers[n].into
					list = append(list, u)
				case s.named(n.Fun, "ask") && s.functions[s.object(n.Fun)] != nil:
					u.name, u.call, u.after, u.reader = s.text(n.Args[4]), n, 5, s.object(n.Args[3]).Name()
					if read, ok := s.info.TypeOf(n.Args[3]).(*types.Signature); ok {
						u.into = element(element(read.Params().At(1).Type())) // of *[]T or **T
					}
					list = append(list, u)
				}
			}
			return true
		})
	}
	return list
}

// element returns what a pointer points to or a slice consists of.
func element(t types.Type) types.Type {
	switch t := t.Underlying().(type) {
	case *types.Pointer:
		return t.Elem()
	case *types.Slice:
		return t.Elem()
	}
	return t
}

// named reports whether an expression names a field or a function of this package that has one of some names.
func (s *source) named(e ast.Expr, names ...string) bool {
	o := s.object(e)
	return o != nil && o.Pkg() != nil && o.Pkg().Path() == "store" && slices.Contains(names, o.Name())
}

// arguments returns the types of the arguments that a call of tx.queue or ask sends with a statement, which begin with the number after.
func (s *source) arguments(call *ast.CallExpr, after int) ([]types.Type, error) {
	args, err := call.Args[after:], error(nil)
	if call.Ellipsis.IsValid() {
		if args, err = s.elements(args[0]); err != nil {
			return nil, err
		}
	}
	list := make([]types.Type, len(args))
	for i, arg := range args {
		if at, ok := arg.(*ast.IndexExpr); ok && types.IsInterface(s.info.TypeOf(arg)) {
			elements, err := s.elements(at.X)
			if err != nil {
				return nil, err
			}
			n, err := strconv.Atoi(s.info.Types[at.Index].Value.ExactString())
			if err != nil {
				return nil, err
			}
			arg = elements[n]
		}
		list[i] = s.info.TypeOf(arg)
	}
	return list, nil
}

// elements returns the elements of a list that is a literal, an append to one, a variable or field that is assigned once, or the
// result of a function that returns one list.
func (s *source) elements(e ast.Expr) ([]ast.Expr, error) {
	switch e := e.(type) {
	case *ast.CompositeLit:
		return e.Elts, nil
	case *ast.CallExpr:
		if !s.isBuiltin(e, "append") {
			return s.results(e, 0)
		}
		list, err := s.elements(e.Args[0])
		if err != nil || !e.Ellipsis.IsValid() {
			return append(slices.Clone(list), e.Args[1:]...), err
		}
		more, err := s.elements(e.Args[1])
		return append(slices.Clone(list), more...), err
	case *ast.Ident, *ast.SelectorExpr:
		var from []assigned
		for _, v := range s.values[s.object(e)] {
			if call, ok := v.expr.(*ast.CallExpr); !ok || !s.isBuiltin(call, "make") {
				from = append(from, v)
			}
		}
		if len(from) == 1 {
			if call, ok := from[0].expr.(*ast.CallExpr); ok && !s.isBuiltin(call, "append") {
				return s.results(call, from[0].result)
			}
			return s.elements(from[0].expr)
		}
	}
	return nil, fmt.Errorf("%s: the arguments are not known before the code runs", s.files.Position(e.Pos()))
}

// results returns the elements of a result of a function that returns it in one place.
func (s *source) results(call *ast.CallExpr, n int) ([]ast.Expr, error) {
	var found []ast.Expr
	if decl := s.functions[s.object(call.Fun)]; decl != nil {
		ast.Inspect(decl, func(node ast.Node) bool {
			if r, ok := node.(*ast.ReturnStmt); ok && !s.info.Types[r.Results[n]].IsNil() {
				found = append(found, r.Results[n])
			}
			_, inner := node.(*ast.FuncLit)
			return !inner
		})
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%s: the arguments are not known before the code runs", s.files.Position(call.Pos()))
	}
	return s.elements(found[0])
}

func (s *source) isBuiltin(call *ast.CallExpr, name string) bool {
	f, ok := call.Fun.(*ast.Ident)
	return ok && f.Name == name && s.info.Types[f].IsBuiltin()
}
