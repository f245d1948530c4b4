package expr_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
)

// nests are constructs that can be nested: an opening part, @ and a closing part.
var nests = strings.Split(strings.TrimSpace(`
[1].map(x,@)                [x].map(x,@)                 [1].map(x,true,@)           [1].filter(x,@)            [1].all(x,@)
[1].exists_one(x,@)         [1].transformList(i,v,@)     [1].transformMap(i,v,@)     [1].sortBy(x,@[0])         input.map(x,[x==@])
{}.transformMapEntry(k,v,{k:@})                          input.map(x,x).map(y,@)     input.all(x,x==@)          cel.bind(x,1,@)
cel.bind(x,@,x)             cel.bind(x,[@],x)            cel.bind(x,{x:x},@)         cel.bind(x,{},x=={x:x}&&@) cel.bind(x,[],x==[[x]]&&@)
optional.of(1).optMap(x,@)  optional.of(@).optFlatMap(x,x) optional.of(@)            [@]                        [[],@]
{1:@}                       {@:1}                        {[]:@}                      (@)                        !@
-@                          true?1:@                     true?@:1                    (@?true:false)             true?[]:@
input[@]                    dyn(@)                       size([@])                   type(@)                    (@==[])
a.b{c:@}                    math.greatest([@])           [@].flatten()               [@].distinct()             sets.contains([],[@])
`), "\n")

// rows are templates of sources: a beginning, a part that is repeated as often as it fits, and an end, separated by blanks.
var rows = strings.Split(strings.TrimSpace(`
1 +1;            [] +[];           true ||true;         true &&1==1;          true ||[]==[];        1 ==1;               1 -1;                1 <1
1 .nope();       input .a;         nope .a;             input .?a;            input [?0];           input [0];           [1] [0];             input ['']
'' .trim();      input .?a.orValue([]);                 [1] .reverse();       [1] .flatten();       [1] .sort();         [1] .first();        [1] .map(x,x)
[1] .map(x,[x]); [1] .filter(x,true);                   [1] .sortBy(x,x);     {} .transformMap(k,v,{k:v});               {} .transformMap(k,v,[k])
[1] .transformList(i,v,v);         [1] .map(x,{x:x});   [1] .map(x,{x:{x:x}});                      optional.of(1) .optMap(x,x);              1 +has(1)
[optional.none()] .map(x,{x:optional.of(x)});           {} .transformMapEntry(k,v,{k:v});           1 +a.map(1,1);       1 +99999999999999999999
1 +'\q';         1 +if;            true ||[[[[[[[[[[1]]]]]]]]]]==[[[[[[[[[[1]]]]]]]]]];              1 ~;                 1 ';                  1 ?1
1 -;             ! !;              [ ,;                 1 .;                  1 ([{;               1 )                    1 {;                  1 =
'''''''''é 'é;   ' é;              a a;                 1 1;                  input .`+"`a`"+`
`), "\n")

// listed holds items. For each one, a source is a list with as many copies as fit.
var listed = strings.Split(strings.TrimSpace(`
1 [] {} [[]] input input.a 1==1 input[0] input[0][0][0] input['a']['b'] x [].map(x,x) [].all(x,x) [].filter(x,x) {}.transformMap(x,y,x)
[].transformList(x,y,x) [].sortBy(x,x) input.filter(x,x) input.exists(x,x==1) cel.bind(x,1,x) cel.bind(x,[],x) input.optMap(x,x) input().optMap(x,x)
has(a.a) has(input.a) optional.none() optional.of(1) ?input.?a input.?a.orValue(1) true?[]:[] 1<'a' 1+'a' []+'' input<input input+input
math.least(1,2) ''.format([]) '%s'.format([1]) ''.matches('') ''.matches('a{999}') ''.matches('(a{100}){19}') [].join() size([]) [].size()
1\u0020in\u0020[] A{} type(1) timestamp('') string(1) {input:1} {x:1} {[]:[]} {{}:{}} {''+'':{}} [[[[[[[[[[[[[1]]]]]]]]]]]]] [[[[[[[[[[[[[]]]]]]]]]]]]]
input.map(a,input.map(a,input.map(a,input.map(a,input.map(a,input.map(a,input.map(a,a)))))))
`), "\n")

// worstSources returns sources of at most size bytes. Each repeats one construct as often as fits, or one of the given times.
func worstSources(size int, times ...int) []string {
	var out []string
	add := func(first, again, inner, closing, last string) {
		per := len(again) + len(closing)
		most := (size - len(first+inner+last)) / per
		for _, n := range append(times, most) {
			if n <= most {
				out = append(out, first+strings.Repeat(again, n)+inner+strings.Repeat(closing, n)+last)
			}
		}
	}
	for _, line := range nests {
		for _, nest := range strings.Fields(line) {
			opening, closing, _ := strings.Cut(nest, "@")
			add("", opening, "true", closing, "")
			add("", opening, "[]", closing, "")
		}
	}
	for _, line := range rows {
		for _, row := range strings.Split(line, ";") {
			if first, again, ok := strings.Cut(strings.TrimSpace(row), " "); ok {
				add(first, again, "", "", "")
			}
		}
	}
	for _, line := range listed {
		for _, item := range strings.Fields(line) {
			item = strings.ReplaceAll(item, `\u0020`, " ")
			add("[1", ","+item, "", "", "]")
			add("f(1", ","+item, "", "", ")")
			add("size([]", ","+item, "", "", ")")
			add("{1:1", ",1:"+item, "", "", "}")
		}
	}
	return out
}

// Compiling any source, or refusing it, takes little work. Not parallel, because the allocations of other tests would count.
func TestCompile_IsBounded(t *testing.T) { //nolint:paralleltest // as above
	if raceEnabled {
		t.Skip("the race detector changes what is measured")
	}
	for _, c := range []struct {
		name  string
		env   *expr.Env
		times []int
	}{
		{"step", stepEnv(t), []int{8, 16, 40, 90}},
		{"script", scriptEnv(t), nil}, // its sources may be longer; short ones take the same work as those of steps
	} {
		_, err := c.env.Compile("input == [1].map(x, x)") // fill the caches that are made only once
		require.NoError(t, err)
		for _, source := range worstSources(c.env.Use().Limits.Source, c.times...) {
			var err error
			bytes, objects := allocated(func() { _, err = c.env.Compile(source) })
			if err != nil {
				require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
				require.Contains(t, err.Error(), "^", source)
				require.Less(t, len(err.Error()), 1_000, "the message must be short enough to read: %.60s", source)
			}
			what := fmt.Sprintf("%s: %d bytes that begin with %.60s", c.name, len(source), source)
			require.Less(t, bytes, uint64(hostileBytes), what)
			require.Less(t, objects, uint64(hostileObjects), what)
		}
	}
}

func BenchmarkCompileWorst(b *testing.B) {
	env := stepEnv(b)
	for _, source := range worstSources(env.Use().Limits.Source, 8, 16, 40, 90) {
		b.Run(fmt.Sprintf("%d bytes %.60s", len(source), source), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = env.Compile(source) //nolint:errcheck // most are refused
			}
		})
	}
}

// Realistic expressions stay far from the limits of compiling.
func TestCompile_RealExpressionsAreFarFromTheLimits(t *testing.T) {
	t.Parallel()
	long := strings.TrimSuffix(strings.Repeat(`{"id": input.a["x"], "on": input.b == "y" && input.c in ["d", "e"] ? input.?f.orValue("") : "z"}, `, 35), ", ")
	for name, source := range map[string]string{
		"long":       "[" + long + "]",
		"loops":      "input.filter(a, a.b).map(a, a.c.filter(d, d.e.exists(f, f.g.all(h, h == a.b))).map(d, {'x': d, 'y': a}).sortBy(z, z.x)[0])",
		"bindings":   "cel.bind(a, input.a, cel.bind(b, a.b, cel.bind(c, b.c, cel.bind(d, c.d, cel.bind(e, d.e, a.f + b.f + c.f + d.f + e.f)))))",
		"empties":    "input.?a.orValue([]).map(x, x.?b.orValue({})).filter(x, x != {}).map(x, {x.name: [], 'none': optional.none()})",
		"signs":      "!!true && - - 1 < 2 && '''it's''' != r'\\d' && b'\\xff'.size() == 1 && \"\\u00e9\\101\" != '' // \"done",
		"a few nots": strings.Repeat("!", 20) + "true",
	} {
		_, err := stepEnv(t).Compile(source)
		require.NoError(t, err, name)
	}
}
