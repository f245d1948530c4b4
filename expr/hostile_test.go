package expr_test

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/expr"
)

// nested binds v0 … v<n-1>, each made of the one before, around a body.
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

// hostile are expressions that would take gigabytes or hours.
func hostile() map[string]string {
	tenfold := "[@,@,@,@,@,@,@,@,@,@]"
	text := "lists.range(50000).map(x, 'aaaaaaaaaaaaaaaaaaaa').join()"
	out := map[string]string{
		"texts doubled":       nested(60, "'aaaaaaaaaaaaaaaa'", "@+@", "@"),
		"lists doubled":       nested(60, "['a']", "@+@", "@.size()"),
		"deep result":         nested(30, "[1]", tenfold, "@"),
		"deep comparison":     nested(30, "[1]", tenfold, "@ == @"),
		"deep inequality":     nested(30, "[1]", tenfold, "@ != @"),
		"deep membership":     nested(30, "[1]", tenfold, "@ in [@]"),
		"deep distinct":       nested(30, "[1]", tenfold, "@.distinct()"),
		"deep sets":           nested(30, "[1]", tenfold, "sets.equivalent(@, @)"),
		"deep flatten":        nested(30, "[1]", tenfold, "@.flatten(20)"),
		"deep format":         nested(30, "[1]", tenfold, "'%s'.format([@])"),
		"deep JSON":           nested(30, "[1]", tenfold, "json.encode(@)"),
		"deep map":            nested(30, "{'a': 1}", "{'a': @, 'b': @, 'c': @, 'd': @}", "@ == @"),
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

// cpuTime is what the process has used, which other work on the machine does not lengthen.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Not parallel: it measures time and memory.
func TestHostileExpressionsAreRefused(t *testing.T) { //nolint:paralleltest // it measures
	if raceEnabled {
		t.Skip("the race detector changes what is measured")
	}
	env, err := expr.NewEnv(expr.Use{Name: "step"})
	require.NoError(t, err)
	for name, source := range hostile() { //nolint:paralleltest // as above
		t.Run(name, func(t *testing.T) {
			took, heap := time.Hour, uint64(0)
			for range 3 { // the best of three: other work on the machine is not our doing
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				begin, used := time.Now(), cpuTime()
				p, err := env.Compile(source)
				if err == nil {
					_, err = p.Eval(t.Context(), nil)
				}
				took = min(took, time.Since(begin), cpuTime()-used)
				runtime.ReadMemStats(&after)
				heap = after.TotalAlloc - before.TotalAlloc
				require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
			}
			t.Logf("%v, %d KiB allocated", took, heap>>10)
			require.Less(t, took, 100*time.Millisecond)
			require.Less(t, heap, uint64(32<<20), "allocated in all, so more than was ever held")
		})
	}
}
