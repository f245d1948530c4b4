package expr

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// cel-go's type checker copies all its type variables for every overload that it tries, and writes types out as texts to look them up. So
// its work grows with the square or the cube of the source's length. That work is estimated before it begins.
const (
	// maxLoops and maxBindings limit nested macros, and maxTypeDepth nested lists, maps and optionals.
	maxLoops     = 8
	maxBindings  = 32
	maxTypeDepth = 16
	maxArguments = 50
	// maxEffort limits the copies of type variables. One takes about 100 bytes and 50 ns.
	maxEffort = 200_000
	// nodeEffort is the effort for a node itself, and for each level of its type's depth when the type is written out.
	nodeEffort = 2
)

// checkCost describes the checker's work for a call of a function: the overloads that it tries and the type variables that these add. The type of
// the result has at least depth minDepth. If the result contains the arguments, it is at most growth levels deeper than the deepest argument.
type checkCost struct {
	overloads, typeParams int
	minDepth, growth      int
	keepsArguments        bool
}

type functionKey struct {
	name   string
	member bool
}

// checkCosts computes the costs of all functions of an environment from their declarations.
func checkCosts(env *cel.Env) map[functionKey]checkCost {
	out := map[functionKey]checkCost{}
	for name, f := range env.Functions() {
		for _, o := range f.OverloadDecls() {
			key := functionKey{name, o.IsMemberFunction()}
			have := out[key]
			have.overloads++
			have.typeParams += len(o.TypeParams())
			before := map[string]int{}
			for _, arg := range o.ArgTypes() {
				variablesOf(arg, 0, func(name string, depth int) {
					if shallowest, has := before[name]; !has || depth < shallowest {
						before[name] = depth
					}
				})
			}
			have.minDepth = max(have.minDepth, variablesOf(o.ResultType(), 0, func(name string, depth int) {
				have.keepsArguments = true
				have.growth = max(have.growth, depth-before[name])
			}))
			out[key] = have
		}
	}
	return out
}

// variablesOf calls found for each type variable in a type, with its depth, and returns how deep the type is nested.
func variablesOf(t *cel.Type, at int, found func(name string, depth int)) int {
	if t.Kind() == types.TypeParamKind {
		found(t.TypeName(), at)
		return at
	}
	deepest := at
	for _, p := range t.Parameters() {
		deepest = max(deepest, variablesOf(p, at+1, found))
	}
	return deepest
}

// estimator adds up the effort of checking a parsed expression.
type estimator struct {
	costs  map[functionKey]checkCost
	scopes []estimated
	// variables counts the checker's type variables, and effort the copies made of them.
	variables, effort int
	// loops and bindings count the macros around the current node.
	loops, bindings int
	at              int64
	message         string
}

// estimated is a name bound by a macro, with the depth of its type.
type estimated struct {
	name  string
	depth int
}

// checkEffort refuses a parsed expression whose type check would take too long.
func (e *Env) checkEffort(source string, parsed *ast.AST) *IssueError {
	w := &estimator{costs: e.checkCosts()}
	w.depth(parsed.Expr())
	if w.message == "" {
		return nil
	}
	return &IssueError{Source: source, Offset: offsetOf(parsed.SourceInfo(), w.at), Message: w.message}
}

func (w *estimator) refuse(e ast.Expr, format string, args ...any) {
	if w.message == "" {
		w.at, w.message = e.ID(), fmt.Sprintf(format, args...)
	}
}

func (w *estimator) overload(times int) { w.effort += times * (w.variables + nodeEffort) }

// depth returns how deep the type of an expression may be, and charges for the expression's parts.
func (w *estimator) depth(e ast.Expr) int {
	if w.message != "" {
		return 0
	}
	deep := w.part(e)
	w.effort += nodeEffort + deep*deep/4
	switch {
	case deep > maxTypeDepth:
		w.refuse(e, "lists, maps and optionals are nested more than %d levels deep", maxTypeDepth)
	case w.effort > maxEffort:
		w.refuse(e, "the expression has too many parts to check; split it into smaller ones")
	}
	return deep
}

func (w *estimator) part(e ast.Expr) int {
	switch e.Kind() {
	case ast.IdentKind:
		for i := len(w.scopes) - 1; i >= 0; i-- {
			if w.scopes[i].name == e.AsIdent() {
				return w.scopes[i].depth
			}
		}
		return 1
	case ast.SelectKind:
		deep := w.depth(e.AsSelect().Operand())
		if e.AsSelect().IsTestOnly() {
			return 0
		}
		return deep
	case ast.CallKind:
		return w.call(e)
	case ast.ListKind:
		deep := 0
		for _, item := range e.AsList().Elements() {
			deep = max(deep, w.depth(item))
			w.overload(1)
		}
		return deep + 1
	case ast.MapKind:
		deep := 0
		for _, entry := range e.AsMap().Entries() {
			w.depth(entry.AsMapEntry().Key())
			deep = max(deep, w.depth(entry.AsMapEntry().Value()))
			w.overload(2)
			if entry.AsMapEntry().Key().Kind() != ast.LiteralKind { // see simplifyTypes
				w.overload(1)
				w.variables++
			}
		}
		return deep + 1
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			w.depth(field.AsStructField().Value())
			w.overload(1)
		}
	case ast.ComprehensionKind:
		return w.comprehension(e)
	case ast.LiteralKind, ast.UnspecifiedExprKind:
	}
	return 0
}

func (w *estimator) call(e ast.Expr) int {
	c, deep := e.AsCall(), 0
	if c.IsMemberFunction() {
		deep = w.depth(c.Target())
	}
	for _, arg := range c.Args() {
		deep = max(deep, w.depth(arg))
	}
	if c.FunctionName() == operators.OptSelect {
		return deep + 1
	}
	if len(c.Args()) > maxArguments {
		w.refuse(e, "a call has more than %d arguments", maxArguments)
	}
	of := w.costs[functionKey{c.FunctionName(), c.IsMemberFunction()}]
	if c.IsMemberFunction() { // it may be a function whose name has dots
		if name, ok := qualified(c.Target()); ok {
			if global, has := w.costs[functionKey{name + "." + c.FunctionName(), false}]; has {
				of = global
			}
		}
	}
	w.overload(of.overloads)
	w.variables += of.typeParams
	if !of.keepsArguments {
		return of.minDepth
	}
	return max(of.minDepth, deep+of.growth)
}

// qualified writes a chain of names with dots.
func qualified(e ast.Expr) (string, bool) {
	switch e.Kind() { //nolint:exhaustive // only these kinds can form a dotted name
	case ast.IdentKind:
		return e.AsIdent(), true
	case ast.SelectKind:
		name, ok := qualified(e.AsSelect().Operand())
		return name + "." + e.AsSelect().FieldName(), ok && !e.AsSelect().IsTestOnly()
	}
	return "", false
}

func (w *estimator) comprehension(e ast.Expr) int {
	c := e.AsComprehension()
	over := w.depth(c.IterRange())
	accumulator := w.depth(c.AccuInit())
	nesting, most := &w.loops, maxLoops
	if c.IterVar() == unusedVariable {
		nesting, most = &w.bindings, maxBindings
	}
	if *nesting++; *nesting > most {
		w.refuse(e, "macros are nested more than %d levels deep", most)
	}
	before := len(w.scopes)
	item := max(over-1, 0)
	w.scopes = append(w.scopes, estimated{c.AccuVar(), accumulator}, estimated{c.IterVar(), item})
	if c.HasIterVar2() {
		w.scopes = append(w.scopes, estimated{c.IterVar2(), item})
	}
	w.depth(c.LoopCondition())
	accumulator = max(accumulator, w.depth(c.LoopStep()))
	w.variables++ // the type of the list or map that the macro starts with
	w.overload(2)
	w.scopes = append(w.scopes[:before], estimated{c.AccuVar(), accumulator})
	result := w.depth(c.Result())
	w.scopes = w.scopes[:before]
	*nesting--
	return result
}

// Limits of a source before it is parsed. The parser takes about 2 KiB for each token. It also looks ahead over all signs in a row, and
// over the rest of the source after each quote that is never closed.
const (
	maxTokens = 8_000
	maxSigns  = 50
)

// scan splits a source into tokens as the parser's lexer does, and refuses sources that would take the parser too long.
func scan(source string) *IssueError {
	tokens, signs := 0, 0
	for i := 0; i < len(source); {
		length, message := token(source, i)
		issue := func(message string) *IssueError {
			return &IssueError{Source: source, Offset: utf8.RuneCountInString(source[:i]), Message: message}
		}
		if message != "" {
			return issue("syntax error: " + message)
		}
		switch c := source[i]; {
		case blank(c) || strings.HasPrefix(source[i:], "//"):
			i += length
			continue
		case (c == '-' || c == '!') && length == 1:
			signs++
		default:
			signs = 0
		}
		if tokens++; tokens > maxTokens {
			return issue("the expression has more than 8,000 words and signs")
		}
		if signs > maxSigns {
			return issue("more than 50 signs in a row")
		}
		i += length
	}
	return nil
}

// token returns the length of the token that begins at i, or a message if no token begins there. It may split a number into several tokens.
func token(source string, i int) (length int, message string) {
	rest := source[i:]
	switch c := source[i]; {
	case blank(c):
		return 1, ""
	case strings.HasPrefix(rest, "//"):
		if end := strings.IndexByte(rest, '\n'); end >= 0 {
			return end, ""
		}
		return len(rest), ""
	case c == '"' || c == '\'':
		return quoted(rest, false)
	case c == '`':
		if end := strings.IndexByte(rest[1:], '`'); end > 0 {
			return end + 2, ""
		}
		return 0, "this name has no closing `"
	case wordByte(c):
		for length < len(rest) && wordByte(rest[length]) {
			length++
		}
		if length < len(rest) && (rest[length] == '"' || rest[length] == '\'') && prefixes[strings.ToLower(rest[:length])] {
			closed, message := quoted(rest[length:], strings.ContainsAny(rest[:length], "rR"))
			return length + closed, message
		}
		return length, ""
	}
	for _, sign := range [...]string{"==", "!=", "<=", ">=", "&&", "||"} {
		if strings.HasPrefix(rest, sign) {
			return 2, ""
		}
	}
	if strings.IndexByte("<>[]{}().,-!?:+*/%", source[i]) >= 0 {
		return 1, ""
	}
	_, size := utf8.DecodeRuneInString(rest)
	return 0, "unexpected '" + strings.ToValidUTF8(rest[:size], "�") + "'"
}

var prefixes = map[string]bool{"r": true, "b": true, "br": true}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

// quoted returns the length of the string literal at the beginning of a source. Three quotes open a long literal if three quotes close it.
func quoted(source string, raw bool) (length int, message string) {
	quote := source[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(source, triple) {
		if end, _ := closed(source, triple, raw); end > 0 {
			return end, ""
		}
	}
	end, escape := closed(source, quote, raw)
	switch {
	case end > 0:
		return end, ""
	case escape:
		return 0, "this text has an unknown escape; a backslash is written \\\\"
	}
	return 0, "this text has no closing " + quote
}

// closed returns the length of a string literal including its quotes. It is 0 if the literal does not end, or has an unknown escape (escape
// is true).
func closed(source, quote string, raw bool) (length int, escape bool) {
	for i := len(quote); i < len(source); {
		switch {
		case strings.HasPrefix(source[i:], quote):
			return i + len(quote), false
		case len(quote) == 1 && (source[i] == '\n' || source[i] == '\r'):
			return 0, false
		case source[i] == '\\' && !raw:
			n := escapeLength(source[i+1:])
			if n == 0 {
				return 0, true
			}
			i += 1 + n
		default:
			i++
		}
	}
	return 0, false
}

// escapeLength returns the length of a valid escape after a backslash, or 0 if it is not valid.
func escapeLength(rest string) int {
	if rest == "" {
		return 0
	}
	digits, set := 0, "0123456789abcdefABCDEF"
	switch c := rest[0]; {
	case strings.IndexByte("abfnrtv\"'\\?`", c) >= 0:
		return 1
	case c == 'x' || c == 'X':
		digits = 2
	case c == 'u':
		digits = 4
	case c == 'U':
		digits = 8
	case c >= '0' && c <= '3':
		digits, set = 2, "01234567"
	default:
		return 0
	}
	if len(rest) <= digits || strings.Trim(rest[1:1+digits], set) != "" {
		return 0
	}
	return 1 + digits
}
