package expr

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/ext"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/suggest"
)

// Limits of the parser, for every use.
const (
	maxDepth       = 100
	maxNodes       = 20_000
	maxRange       = 100_000
	interruptEvery = 64
)

// Env compiles the expressions of one use. It is safe for concurrent use.
type Env struct {
	use      Use
	cel      *cel.Env
	bindings map[string]*functions.Overload
	// signatures returns the overloads of all functions. They are computed on first use.
	signatures func() map[string][]signature
	checkCosts func() map[functionKey]checkCost
	schemas    schemaMemo
}

// NewEnv makes the environment of a use.
func NewEnv(use Use) (*Env, error) {
	use.Limits = use.Limits.withDefaults()
	options := []cel.EnvOption{
		cel.OptionalTypes(),
		ext.Strings(), ext.Lists(ext.ListsMaxRangeSize(maxRange)), ext.Math(), ext.Sets(), ext.Encoders(), ext.Bindings(),
		ext.TwoVarComprehensions(),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserRecursionLimit(maxDepth),
		cel.ParserErrorRecoveryLimit(4),
		cel.ParserExpressionSizeLimit(use.Limits.Source),
		cel.ExpressionNodeLimit(maxNodes),
		orderedFunction(),
		cel.Variable(unknownName, cel.DynType),
	}
	options = append(options, mixedArithmetic()...)
	for _, v := range use.Variables {
		options = append(options, cel.Variable(v.Name, v.Type.cel()))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("make the %s environment: %w", use.Name, err)
	}
	bindings, err := bindingsOf(env)
	if err != nil {
		return nil, fmt.Errorf("make the %s environment: %w", use.Name, err)
	}
	return &Env{
		use: use, cel: env, bindings: bindings,
		signatures: sync.OnceValue(func() map[string][]signature { return signatures(env) }),
		checkCosts: sync.OnceValue(func() map[functionKey]checkCost { return checkCosts(env) }),
	}, nil
}

// typeInfo has, for each Type, cel-go's type and the words for people.
var typeInfo = [...]struct {
	cel  *cel.Type
	name string
}{
	Any:       {cel.DynType, "any value"},
	Bool:      {cel.BoolType, "true or false"},
	Int:       {cel.IntType, "a whole number"},
	String:    {cel.StringType, "a text"},
	List:      {cel.ListType(cel.DynType), "a list"},
	Map:       {cel.MapType(cel.StringType, cel.DynType), "a map"},
	Timestamp: {cel.TimestampType, "a timestamp"},
}

func (t Type) cel() *cel.Type { return typeInfo[t].cel }

// Use returns the use that the environment was made for, with its limits filled in.
func (e *Env) Use() Use { return e.use }

// Compile checks an expression and compiles it. Errors are INVALID_INPUT with the line, the column and a caret below it; see [IssueError].
func (e *Env) Compile(source string) (*Program, error) { return e.program(source, Any) }

// CompileAs is like [Env.Compile] for an expression whose result must have a type. If the type is known only at run time, it is checked
// then.
func (e *Env) CompileAs(source string, want Type) (*Program, error) { return e.program(source, want) }

func (e *Env) program(source string, want Type) (*Program, error) {
	checked, err := e.compile(source, want)
	if err != nil {
		return nil, err
	}
	reads := e.readsOf(checked.NativeRep().Expr())
	orderRanges(checked.NativeRep())
	program, err := e.cel.Program(checked,
		cel.CustomDecoratorV2(e.guard),
		cel.InterruptCheckFrequency(interruptEvery),
	)
	if err != nil {
		return nil, (&IssueError{Source: source, Message: err.Error(), Cause: err}).jig()
	}
	return &Program{
		env: e, source: source, want: want, gives: typeOf(checked.OutputType()), reads: reads,
		checked: checked.NativeRep(), program: program,
	}, nil
}

// compile parses and checks a source.
func (e *Env) compile(source string, want Type) (*cel.Ast, error) {
	if len(source) > e.use.Limits.Source {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the expression has %d bytes, at most %d are allowed",
			len(source), e.use.Limits.Source)
	}
	if issue := scan(source); issue != nil {
		return nil, issue.jig()
	}
	parsed, issues := e.cel.Parse(source)
	if found := issues.Errors(); len(found) > 0 {
		return nil, e.compileIssue(source, found).jig()
	}
	if issue := e.checkEffort(source, parsed.NativeRep()); issue != nil {
		return nil, issue.jig()
	}
	takeBack := simplifyTypes(parsed.NativeRep())
	checked, issues := e.cel.Check(parsed)
	if found := issues.Errors(); len(found) > 0 {
		return nil, e.compileIssue(source, found).jig()
	}
	takeBack(checked.NativeRep())
	if !want.fits(checked.OutputType()) {
		return nil, wrongResult(source, checked.OutputType().String(), want).jig()
	}
	if issue := cmp.Or(checkPatterns(source, checked.NativeRep()), checkIntegers(source, checked.NativeRep())); issue != nil {
		return nil, issue.jig()
	}
	return checked, nil
}

// wrongResult returns the issue for an expression whose result has the wrong type.
func wrongResult(source, have string, want Type) *IssueError {
	return &IssueError{Source: source, Message: fmt.Sprintf("this gives %s where %s is needed", have, typeInfo[want].name)}
}

// typeOf returns the Type for a cel-go type, or Any if no other Type fits.
func typeOf(have *cel.Type) Type {
	for _, t := range []Type{Bool, Int, String, List, Map, Timestamp} {
		if have.Kind() == t.cel().Kind() {
			return t
		}
	}
	return Any
}

func (t Type) fits(have *cel.Type) bool {
	if t == Any || have.Kind() == cel.DynKind {
		return true
	}
	return have.Kind() == t.cel().Kind()
}

// bindingsOf indexes the environment's functions by overload id and by name, for the guards to call.
func bindingsOf(env *cel.Env) (map[string]*functions.Overload, error) {
	out := map[string]*functions.Overload{}
	for _, f := range env.Functions() {
		overloads, err := f.Bindings()
		if err != nil {
			return nil, fmt.Errorf("bind %s: %w", f.Name(), err)
		}
		for _, o := range overloads {
			out[o.Operator] = o
		}
	}
	return out, nil
}

// names lists the names that a source may use: variables and functions.
func (e *Env) names() []string {
	var out []string
	for _, v := range e.use.Variables {
		out = append(out, v.Name)
	}
	for name := range e.cel.Functions() {
		if name != "" && unicode.IsLetter(rune(name[0])) && !strings.Contains(name, "@") {
			out = append(out, name)
		}
	}
	slices.Sort(out[len(e.use.Variables):])
	return out
}

// didYouMean returns "; did you mean 'x'?" with the name nearest to the wanted one, or an empty string if none is near.
func didYouMean(wanted string, names []string) string {
	near := suggest.Names(wanted, names, 1)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean '" + near[0] + "'?"
}
