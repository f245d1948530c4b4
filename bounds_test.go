package jig_test

import (
	"go/ast"
	"go/constant"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bound is a row of the table of bounds in docs/operations.md.
type bound struct {
	what, limit, constant, outcome string
}

func documentedBounds(t *testing.T) []bound {
	t.Helper()
	text, err := os.ReadFile("docs/operations.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## Bounds\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []bound
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || !strings.Contains(cells[2], "`") {
			continue
		}
		rows = append(rows, bound{
			what: strings.TrimSpace(cells[0]), limit: strings.TrimSpace(cells[1]),
			constant: strings.Trim(strings.TrimSpace(cells[2]), "`"), outcome: strings.TrimSpace(cells[3]),
		})
	}
	return rows
}

// integers returns the integer constants declared in a folder, by name.
func integers(t *testing.T, all []source, folder string) map[string]constant.Value {
	t.Helper()
	values := map[string]constant.Value{}
	for range 3 { // a constant may depend on another
		for _, s := range all {
			if s.folder != folder || s.test {
				continue
			}
			for _, decl := range s.syntax.Decls {
				d, ok := decl.(*ast.GenDecl)
				if !ok || d.Tok != token.CONST {
					continue
				}
				for _, spec := range d.Specs {
					v, ok := spec.(*ast.ValueSpec)
					if !ok {
						continue
					}
					for i, name := range v.Names {
						if i < len(v.Values) {
							if n := evaluate(v.Values[i], values); n != nil {
								values[name.Name] = n
							}
						}
					}
				}
			}
		}
	}
	return values
}

// evaluate computes a constant integer expression; nil if it cannot.
func evaluate(e ast.Expr, known map[string]constant.Value) constant.Value {
	switch x := e.(type) {
	case *ast.BasicLit:
		if x.Kind == token.INT {
			return constant.MakeFromLiteral(x.Value, x.Kind, 0)
		}
	case *ast.Ident:
		return known[x.Name]
	case *ast.ParenExpr:
		return evaluate(x.X, known)
	case *ast.BinaryExpr:
		a, b := evaluate(x.X, known), evaluate(x.Y, known)
		if a == nil || b == nil {
			return nil
		}
		if x.Op == token.SHL {
			n, _ := constant.Uint64Val(b)
			return constant.Shift(a, x.Op, uint(n))
		}
		return constant.BinaryOp(a, x.Op, b)
	}
	return nil
}

var limitForm = regexp.MustCompile(`^([0-9][0-9,]*)( KiB| MiB)?( |$)`)

// Each row of the table of bounds in the documentation matches its constant.
func TestBounds_DocumentedOnesAreTheConstants(t *testing.T) {
	t.Parallel()
	all := sources(t)
	rows := documentedBounds(t)
	require.Greater(t, len(rows), 40)
	for _, row := range rows {
		folder, name := path.Split(row.constant)
		in, name, found := strings.Cut(name, ".")
		require.True(t, found, row.constant)
		folder = path.Join(folder, in)
		if folder == "jig" {
			folder = "."
		}
		value := integers(t, all, folder)[name]
		require.NotNil(t, value, "there is no constant %s", row.constant)
		form := limitForm.FindStringSubmatch(row.limit)
		require.NotNil(t, form, "%s: %q", row.constant, row.limit)
		want, err := strconv.ParseInt(strings.ReplaceAll(form[1], ",", ""), 10, 64)
		require.NoError(t, err)
		want <<= map[string]int{"": 0, " KiB": 10, " MiB": 20}[form[2]]
		got, exact := constant.Int64Val(value)
		require.True(t, exact, row.constant)
		require.Equal(t, want, got, "%s: the table says %s", row.constant, row.limit)
		require.NotEmpty(t, row.outcome, row.constant)
	}
}

// Packages whose limits protect against attacks have all of their limits in the table.
func TestBounds_AreDocumented(t *testing.T) {
	t.Parallel()
	var documented []string
	for _, row := range documentedBounds(t) {
		documented = append(documented, row.constant)
	}
	all := sources(t)
	for _, folder := range []string{"internal/pattern", "internal/jsonpath", "internal/schema"} {
		for name := range integers(t, all, folder) {
			if strings.HasPrefix(name, "Max") {
				require.True(t, slices.Contains(documented, folder+"."+name), "docs/operations.md does not list %s.%s", folder, name)
			}
		}
	}
}
