package expr_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
)

// nested binds v0 … v<n-1> around a body. Each variable is made from the one before.
func nested(n int, first, next, body string) string {
	var b strings.Builder
	for i := range n {
		value := first
		if i > 0 {
			value = strings.ReplaceAll(next, "@", fmt.Sprintf("v%d", i-1))
		}
		fmt.Fprintf(&b, "cel.bind(v%d, %s, ", i, value)
	}
	return b.String() + strings.ReplaceAll(body, "@", fmt.Sprintf("v%d", n-1)) + strings.Repeat(")", n)
}

// hostile returns expressions that would take gigabytes or hours.
func hostile() map[string]string {
	tenfold := "[@,@,@,@,@,@,@,@,@,@]"
	text := "lists.range(50000).map(x, 'aaaaaaaaaaaaaaaaaaaa').join()"
	out := map[string]string{
		"texts doubled":       nested(30, "'aaaaaaaaaaaaaaaa'", "@+@", "@"),
		"lists doubled":       nested(30, "['a']", "@+@", "@.size()"),
		"deep result":         nested(12, "[1]", tenfold, "@"),
		"deep comparison":     nested(12, "[1]", tenfold, "@ == @"),
		"deep inequality":     nested(12, "[1]", tenfold, "@ != @"),
		"deep membership":     nested(12, "[1]", tenfold, "@ in [@]"),
		"deep distinct":       nested(12, "[1]", tenfold, "@.distinct()"),
		"deep sets":           nested(12, "[1]", tenfold, "sets.equivalent(@, @)"),
		"deep flatten":        nested(12, "[1]", tenfold, "@.flatten(20)"),
		"deep format":         nested(12, "[1]", tenfold, "'%s'.format([@])"),
		"deep JSON":           nested(12, "[1]", tenfold, "json.encode(@)"),
		"deep map":            nested(12, "{'a': 1}", "{'a': @, 'b': @, 'c': @, 'd': @}", "@ == @"),
		"long range":          "lists.range(1000000000)",
		"many ranges":         "lists.range(1000).map(x, lists.range(10000))",
		"many constants":      "lists.range(100000).map(x, [x" + strings.Repeat(",1", 1500) + "])",
		"many maps":           "lists.range(50000).map(x, {'a': x, 'b': x, 'c': x, 'd': x})",
		"big map":             "lists.range(100000).transformMapEntry(i, v, {string(i): v})",
		"join of joins":       "lists.range(1000).map(x, lists.range(1000).map(y, 'aaaaaaaaaaaa').join(',')).join(',')",
		"join with long":      "lists.range(90000).map(x, '').join(" + text + ")",
		"replace by long":     text + ".replace('', " + text + ")",
		"split to letters":    "cel.bind(s, " + text + ", lists.range(1000).map(x, s.split('')))",
		"three loops":         "lists.range(1000).all(x, lists.range(1000).all(y, lists.range(1000).all(z, x + y + z >= 0)))",
		"loops without calls": "lists.range(1000).filter(x, lists.range(1000).filter(y, lists.range(1000).filter(z, false).size() == 1).size() == 1)",
		"big pattern":         "'a'.matches('" + strings.Repeat("x{1000}", 100) + "')",
		"slow pattern":        text + ".matches('(a?){300}a{300}b')",
		"made pattern":        "lists.range(50000).map(x, 'a'.matches('(x{400}){1}' + string(x)))",
		"many sizes":          "cel.bind(s, " + text + ", lists.range(90000).map(x, s.size()))",
		"many upper":          "cel.bind(s, " + text + ", lists.range(90000).map(x, s.upperAscii()))",
		"many searches":       "cel.bind(s, " + text + ", s.indexOf(s.substring(500000) + 'b'))",
		"many comparisons":    "cel.bind(s, " + text + ", lists.range(90000).map(x, s < s))",
		"many base64":         "cel.bind(s, bytes(" + text + "), lists.range(90000).map(x, base64.encode(s)))",
		"parentheses":         strings.Repeat("(", 4000),
		"brackets":            strings.Repeat("[", 2000) + strings.Repeat("]", 2000),
		"additions":           strings.Repeat("1+", 2000) + "1",
		"nested loops":        strings.Repeat("[1].map(x,", 300) + "1" + strings.Repeat(")", 300),
	}
	return out
}

// hostileDocuments returns documents of templates that would take gigabytes or hours.
func hostileDocuments() map[string]string {
	heavy := "${lists.range(30000).map(x, x).size()}"
	many := func(n int, text string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(strconv.Quote(text)+",", n), ",") + "]"
	}
	return map[string]string{
		"a long expression":      strconv.Quote("${" + strings.Repeat("1+", 500_000) + "1}"),
		"a long text":            strconv.Quote(strings.Repeat("x", 5<<20)),
		"many expressions":       strconv.Quote(strings.Repeat("${1}", 250_000)),
		"many texts":             many(100_000, "${1}"),
		"many long expressions":  many(250, "${["+strings.Repeat("1,", 1_800)+"1]}"),
		"many heavy expressions": many(250, heavy),
		"one heavy text":         strconv.Quote(strings.Repeat(heavy, 250)),
		"many large results":     many(300, "${'x'.split('').map(x, lists.range(5000))}"),
		"many errors":            many(100_000, "${"),
		"deep":                   strings.Repeat(`{"a":`, 5_000) + `"${1}"` + strings.Repeat("}", 5_000),
		"very deep":              strings.Repeat("[", 1_000_000),
		"deep and wide":          strings.Repeat("[", 102) + many(50_000, "${1}") + strings.Repeat("]", 102),
		"a long key":             `{"` + strings.Repeat("k", 500_000) + `":[` + strings.Repeat(`"${",`, 20_000) + `"${"]}`,
	}
}

// Limits on the total allocations of compiling or evaluating, including freed memory. Allocation grows with the work and, unlike time, is
// the same on a busy machine. BenchmarkHostileExpressions and BenchmarkHostileDocuments measure the time.
const (
	hostileBytes   = 32 << 20
	hostileObjects = 1_000_000
)

// allocated returns the bytes and objects that f allocates. Nothing else may run at the same time.
func allocated(f func()) (bytes, objects uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs
}

// refused checks that run fails with INVALID_INPUT before it does much work.
func refused(t *testing.T, run func() error) {
	t.Helper()
	var err error
	bytes, objects := allocated(func() { err = run() })
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
	require.Less(t, len(jig.AsError(err).Message), 1_000, "the message must be short enough to read")
	require.Less(t, bytes, uint64(hostileBytes))
	require.Less(t, objects, uint64(hostileObjects))
}

// hostileSources returns the hostile expressions and one that is larger than allowed.
func hostileSources() map[string]string {
	sources := hostile()
	sources["a megabyte"] = strings.Repeat("input.a + ", 100_000) + "1"
	return sources
}

// evaluate compiles and evaluates a hostile expression.
func evaluate(tb testing.TB, env *expr.Env, source string) error {
	tb.Helper()
	p, err := env.Compile(source)
	if strings.HasPrefix(source, "cel.bind(") {
		require.NoError(tb, err, "only the evaluation is refused")
	}
	if err == nil {
		_, err = p.Eval(tb.Context(), nil)
	}
	return err
}

// render checks and renders a hostile document.
func render(tb testing.TB, env *expr.Env, document string) error {
	tb.Helper()
	d, problems := env.Document(json.RawMessage(document))
	if len(problems) > 0 {
		require.LessOrEqual(tb, len(problems), 100)
		return problems[0].Err
	}
	_, err := d.Render(tb.Context(), nil)
	return err
}

// Not parallel, because the allocations of other tests would count.
func TestHostile_ExpressionsAreRefused(t *testing.T) { //nolint:paralleltest // as above
	if raceEnabled {
		t.Skip("the race detector changes what is measured")
	}
	env := stepEnv(t)
	for name, source := range hostileSources() { //nolint:paralleltest // as above
		t.Run(name, func(t *testing.T) {
			refused(t, func() error { return evaluate(t, env, source) })
		})
	}
}

// Not parallel, because the allocations of other tests would count.
func TestHostile_DocumentsAreRefused(t *testing.T) { //nolint:paralleltest // as above
	if raceEnabled {
		t.Skip("the race detector changes what is measured")
	}
	env := stepEnv(t)
	for name, document := range hostileDocuments() { //nolint:paralleltest // as above
		t.Run(name, func(t *testing.T) {
			refused(t, func() error { return render(t, env, document) })
		})
	}
}

func BenchmarkHostileExpressions(b *testing.B) {
	env := stepEnv(b)
	for name, source := range hostileSources() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.Error(b, evaluate(b, env, source))
			}
		})
	}
}

func BenchmarkHostileDocuments(b *testing.B) {
	env := stepEnv(b)
	for name, document := range hostileDocuments() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.Error(b, render(b, env, document))
			}
		})
	}
}

// The work of a check is limited for any schema.
func TestHostile_SchemasAreBounded(t *testing.T) {
	t.Parallel()
	doubling := strings.Builder{}
	doubling.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range 40 {
		fmt.Fprintf(&doubling, `"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}},`, i, i+1, i+1)
	}
	doubling.WriteString(`"d40":{"type":"string"}}}`)
	self := `{"type":"array","items":{"$ref":"#"}}`
	for name, schema := range map[string]string{
		"itself":       `{"$ref":"#"}`,
		"each other":   `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"list of self": self,
		"doubling":     doubling.String(),
		"deep":         strings.Repeat(`{"items":`, 5_000) + "{}" + strings.Repeat("}", 5_000),
		"not a schema": `[1,2]`, "nothing": `null`, "nowhere": `{"$ref":"#/$defs/none"}`, "odd": `{"type":[1,{}],"enum":{},"required":3,"properties":[],"items":1}`,
	} {
		shapes := expr.Shapes{"input": json.RawMessage(schema), "item": json.RawMessage(strings.Replace(schema, " ", "", 1) + " ")}
		for _, source := range []string{"input", "input.a.b.a.b", "index > 0 ? input : item", "[input] + [item]", "input.map(x, x).map(x, x[0][0])"} {
			described, err := stepEnv(t).Describe(source, shapes)
			if err != nil {
				require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), "%s: %s", name, source)
				continue
			}
			require.Less(t, len(described), 100_000, "%s: %s", name, source)
		}
	}
}
