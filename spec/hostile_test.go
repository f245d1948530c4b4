package spec_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/spec"
)

// Limits on what one hostile document may allocate in total, in bytes and objects, including freed memory. Both grow with the work and,
// unlike time, are the same on a busy machine. BenchmarkHostileSpecs measures the time.
const (
	hostileBytes   = slack * 32 << 20
	hostileObjects = slack * 600_000
)

const compositionHead = "kind: composition\nname: a.b\nsteps:\n"

const thinHead = "kind: thin_tool\nname: a.b\n"

// hostileSpecs are documents that must be refused because of what they cost.
func hostileSpecs() map[string]struct {
	body string
	code spec.ProblemCode
} {
	type c = struct {
		body string
		code spec.ProblemCode
	}
	bomb := "kind: composition\nname: a.b\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 12; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 8), i-1)
	}
	var catches strings.Builder
	for i := range 900 {
		fmt.Fprintf(&catches, "  - {id: s%d, tool: a.b, on_error: {as: e%d, catch: [{if: e%d.code == '', set: {a: '${e%d.code}'}}]}}\n", i, i, i, i)
	}
	blocks := strings.Repeat("{steps: [", 10_000)
	return map[string]c{
		"alias bomb":                  {bomb, spec.ProblemTooMany},
		"a step that is itself":       {compositionHead + "  - &s {steps: [*s]}\n", spec.ProblemTooDeep},
		"steps by alias":              {compositionHead + "  - &s {steps: [{set: {a: 1}}]}\n" + strings.Repeat("  - *s\n", 5_000), spec.ProblemTooMany},
		"10,000 nested blocks":        {compositionHead + "  - " + blocks, spec.ProblemTooDeep},
		"10,000 nested, indented":     {compositionHead + nested(10_000), spec.ProblemTooLarge},
		"200 nested, indented":        {compositionHead + nested(200), spec.ProblemTooDeep},
		"expression of 1 MB":          {compositionHead + "  - {if: '" + strings.Repeat("true || ", 1<<17) + "true', set: {a: 1}}\n", spec.ProblemTooLarge},
		"expression of 200 KB":        {compositionHead + "  - {if: '" + strings.Repeat("true || ", 25_000) + "true', set: {a: 1}}\n", spec.ProblemOutOfRange},
		"template of 200 KB":          {compositionHead + "  - set: {a: '${" + strings.Repeat("true || ", 25_000) + "true}'}\n", spec.ProblemBadCEL},
		"template of 60,000 parts":    {compositionHead + "  - set: {a: '" + strings.Repeat("${1}", 60_000) + "'}\n", spec.ProblemTooMany},
		"deep expression":             {compositionHead + "  - set: {a: '${" + strings.Repeat("(", 2_000) + "1" + strings.Repeat(")", 2_000) + "}'}\n", spec.ProblemBadCEL},
		"100,000 steps":               {compositionHead + strings.Repeat("  - {set: {a: 1}}\n", 100_000), spec.ProblemTooLarge},
		"2,000 steps":                 {compositionHead + strings.Repeat("  - {set: {a: 1}}\n", 2_000), spec.ProblemOutOfRange},
		"2,000 steps in blocks":       {compositionHead + strings.Repeat("  - steps: ["+strings.Repeat("{set: {a: 1}},", 99)+"]\n", 20), spec.ProblemTooMany},
		"80,000 values":               {compositionHead + "  - set: {a: [" + strings.Repeat("1,", 80_000) + "]}\n", spec.ProblemTooMany},
		"60,000 wrong keys":           {"kind: composition\nname: a.b\n" + wrongKeys(60_000), spec.ProblemTooLarge},
		"9,000 wrong keys":            {"kind: composition\nname: a.b\n" + wrongKeys(9_000), spec.ProblemUnknownKey},
		"3,000 wrong expressions":     {compositionHead + "  - set: {a: [" + strings.Repeat("'${x}',", 3_000) + "]}\n", spec.ProblemBadCEL},
		"9,000 expressions":           {compositionHead + "  - set: {a: [" + strings.Repeat("'${1}',", 9_000) + "]}\n", spec.ProblemTooMany},
		"900 names for errors":        {compositionHead + catches.String(), spec.ProblemTooMany},
		"a deep schema":               {"kind: composition\nname: a.b\ninput_schema: " + strings.Repeat("{not: ", 1_000) + "{}" + strings.Repeat("}", 1_000), spec.ProblemTooDeep},
		"template of 10,000 parts":    {compositionHead + "  - set: {a: '" + strings.Repeat("${1}", 10_000) + "'}\n", spec.ProblemTooMany},
		"names that are nearly right": {compositionHead + strings.Repeat("  - {id: x, set: {a: '${steps.stepp.data}'}}\n", 900), spec.ProblemUnknownStep},
		"60 long expressions":         {compositionHead + "  - set: {a: [" + strings.Repeat("'${true"+strings.Repeat("||true", 600)+"}',", 60) + "]}\n", spec.ProblemTooMany},
		"15 long wrong expressions":   {compositionHead + "  - set: {a: [" + strings.Repeat("'${1"+strings.Repeat("+1", 2_000)+"}',", 15) + "]}\n", spec.ProblemBadCEL},
		"600 deep selections":         {compositionHead + "  - set: {a: [" + strings.Repeat("'${input"+strings.Repeat(".a", 80)+"}',", 600) + "]}\n", spec.ProblemTooMany},
		"loops in loops":              {compositionHead + "  - set: {a: '${" + strings.Repeat("[1].map(x,", 90) + "x" + strings.Repeat(")", 90) + "}'}\n", spec.ProblemTooMany},
		"loops in loops, often":       {compositionHead + "  - set: {a: [" + strings.Repeat("'${"+strings.Repeat("[1].map(x,", 9)+"x"+strings.Repeat(")", 9)+"}',", 500) + "]}\n", spec.ProblemTooMany},
		"a schema of references":      {"kind: composition\nname: a.b\ninput_schema: {type: object, properties: {a: {$ref: '#'}, b: {$ref: '#/properties/b'}}}\nsteps:\n  - {if: input.b.b.b.c, set: {a: '${input.a.a.a.a.x.y}'}}\n  - {tool: x}\n", spec.ProblemBadName},
		"keys without a value":        {compositionHead + "  - {" + strings.Repeat("? ", 50_000) + "}\n", spec.ProblemTooMany},
		"a thin tool of 9,000 texts":  {thinHead + "creates: {type: a, fields: {a: [" + strings.Repeat("'${1}',", 9_000) + "]}}\n", spec.ProblemTooMany},
		"a thin tool with long texts": {thinHead + "creates: {type: a, title: '${1" + strings.Repeat("+1", 1_500) + "}', fields: {a: [" + strings.Repeat("'${true"+strings.Repeat("||true", 600)+"}',", 6) + "]}}\n", spec.ProblemTooMany},
		"3,000 wrong texts":           {thinHead + "creates: {type: a, fields: {a: [" + strings.Repeat("'${x}',", 2_000) + "]}}\n", spec.ProblemBadCEL},
		"1,000 entities":              {thinHead + "entities: [" + strings.Repeat("{name: a, id: '${entities.a.id}', type: b},", 1_000) + "]\n", spec.ProblemOutOfRange},
		"entities beyond number":      {thinHead + "entities: [" + strings.Repeat("{name: a, id: '${entities.a.id}', type: b, optional: true},", 400) + "]\n", spec.ProblemDuplicateID},
		"dashes":                      {compositionHead + strings.Repeat("- ", 100_000), spec.ProblemTooDeep},
	}
}

func nested(levels int) string {
	var b strings.Builder
	for i := range levels {
		pad := strings.Repeat("  ", 2*i+1)
		b.WriteString(pad + "- steps:\n")
		if b.Len() > 2*spec.MaxDocumentBytes {
			break
		}
	}
	return b.String()
}

func wrongKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "step%d: 1\n", i)
	}
	return b.String()
}

// Not parallel, because the allocations of other tests would count.
func TestLoadExecution_IsCheapForHostileDocuments(t *testing.T) { //nolint:paralleltest // see above
	_, err := spec.LoadExecution("full.yaml", []byte(fullComposition))
	require.NoError(t, err)
	for name, c := range hostileSpecs() { //nolint:paralleltest // see above
		t.Run(name, func(t *testing.T) {
			var problems spec.Problems
			cheap(t, func() { _, problems = spec.CheckExecution("hostile.yaml", []byte(c.body)) })
			require.Less(t, len(problems.Error()), 8<<10)
			require.NotEmpty(t, problems.Errors())
			codes := map[spec.ProblemCode]bool{}
			for _, p := range problems {
				codes[p.Code] = true
			}
			require.True(t, codes[c.code], "%v", problems.Error())
		})
	}
}

// cheap checks that f allocates no more than a hostile document may. Nothing else may run at the same time.
func cheap(t *testing.T, f func()) {
	t.Helper()
	bytes, objects := allocated(f)
	require.Less(t, bytes, uint64(hostileBytes))
	require.Less(t, objects, uint64(hostileObjects))
}

// allocated returns what f allocates.
func allocated(f func()) (bytes, objects uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs
}

func BenchmarkHostileSpecs(b *testing.B) {
	for name, c := range hostileSpecs() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, problems := spec.CheckExecution("hostile.yaml", []byte(c.body))
				require.NotEmpty(b, problems)
			}
		})
	}
}
