package schema_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/costtest"
	"github.com/jig-run/jig/internal/schema"
)

// chained returns a schema of n definitions in which each refers to the next; each # in form is replaced with that reference.
func chained(n int, form, last string) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":%s,`, i, strings.ReplaceAll(form, "#", fmt.Sprintf("#/$defs/d%d", i+1)))
	}
	fmt.Fprintf(&b, `"d%d":%s}}`, n, last)
	return b.String()
}

func list(n int, item string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

// heavyChecks are schemas and values whose validation would take unbounded time or memory.
func heavyChecks() map[string][2]string {
	twice := `[{"$ref":"#"},{"$ref":"#"}]`
	deep := strings.Repeat(`{"a":`, 60) + "1" + strings.Repeat("}", 60)
	return map[string][2]string{
		"allOf of two references":    {chained(40, `{"allOf":`+twice+`}`, "{}"), "1"},
		"that fail":                  {chained(40, `{"allOf":`+twice+`}`, "false"), "1"},
		"anyOf of two references":    {chained(40, `{"anyOf":`+twice+`}`, "false"), "1"},
		"oneOf of two references":    {chained(40, `{"oneOf":`+twice+`}`, "{}"), "1"},
		"dependentSchemas":           {chained(40, `{"dependentSchemas":{"a":{"$ref":"#"},"b":{"$ref":"#"}}}`, "false"), `{"a":1,"b":2}`},
		"if, then and else":          {chained(40, `{"if":{"$ref":"#"},"then":{"$ref":"#"},"else":{"$ref":"#"}}`, "{}"), "1"},
		"recursion of two branches":  {`{"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}],"required":["b"]}`, deep},
		"contains within contains":   {chained(40, `{"contains":{"$ref":"#"},"items":{"$ref":"#"}}`, "false"), strings.Repeat("[", 45) + "1,1" + strings.Repeat("]", 45)},
		"unevaluated properties":     {chained(30, `{"allOf":`+twice+`,"unevaluatedProperties":false}`, "{}"), `{"a":1}`},
		"dynamic references":         {`{"$dynamicAnchor":"n","properties":{"a":{"allOf":[{"$dynamicRef":"#n"},{"$dynamicRef":"#n"}]}}}`, deep},
		"a long chain of references": {chained(5_000, `{"$ref":"#"}`, "{}"), "1"},
		"itself":                     {`{"allOf":[{"$ref":"#"}]}`, "1"},
		"a large enum, often":        {`{"items":{"enum":` + list(10_000, `"1"`) + `}}`, list(10_000, `"2"`)},
		"numbers of a large enum":    {`{"items":{"enum":` + list(10_000, "1.5") + `}}`, list(10_000, "2.5")},
		"a slow pattern":             {`{"pattern":"(a?){500}z"}`, `"` + strings.Repeat("a", 1<<20) + `"`},
		"a slow pattern, often":      {`{"items":{"pattern":"(a?){500}z"}}`, list(2_000, `"`+strings.Repeat("a", 1_000)+`"`)},
		"slow names":                 {`{"patternProperties":{"(a?){500}z":{}}}`, `{"` + strings.Repeat("a", 1<<20) + `":1}`},
		"missing pattern":            {`{"not":{"pattern":"(a?){500}z"}}`, `"` + strings.Repeat("a", 1<<20) + `"`},
		"many expressions as values": {`{"$schema":"http://json-schema.org/draft-07/schema#","items":{"format":"regex"}}`, list(5_000, `"[a-z]{900}"`)},
		"items that repeat":          {chained(60, `{"uniqueItems":true,"items":{"$ref":"#"}}`, "{}"), strings.Repeat("[", 59) + list(5_000, "1.5") + strings.Repeat("]", 59)},
	}
}

func TestValidate_IsBoundedUnderAttack(t *testing.T) { //nolint:paralleltest // parallel tests would distort the measurement
	for name, c := range heavyChecks() {
		compiled, err := schema.NewCompiler(schema.Options{}).Compile([]byte(c[0]))
		require.NoError(t, err, name)
		costtest.AtMost(t, 64<<20, func() {
			err := compiled.Validate([]byte(c[1]))
			require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), "%s: %v", name, err)
			require.Equal(t, "limit_exceeded", jig.AsError(err).Reason, name)
		})
	}
}

// A value with errors in very many places does not use memory for each of them.
func TestValidate_ReportsOfLargeValuesAreBounded(t *testing.T) { //nolint:paralleltest // parallel tests would distort the measurement
	compiled, err := schema.NewCompiler(schema.Options{}).Compile([]byte(`{"items":{"type":"string"}}`))
	require.NoError(t, err)
	many := []byte(list(900_000, "1"))
	costtest.AtMost(t, 450<<20, func() {
		err = compiled.Validate(many)
	})
	require.ErrorContains(t, err, "too large to say where")
	require.NoError(t, compiled.Validate([]byte(list(900_000, `"a"`))), "a large valid value is accepted")
	deep := strings.Repeat("[", 100) + list(50_000, "1") + strings.Repeat("]", 100)
	compiled, err = schema.NewCompiler(schema.Options{}).Compile([]byte(`{"items":{"$ref":"#"},"type":"array"}`))
	require.NoError(t, err)
	costtest.AtMost(t, 64<<20, func() { require.ErrorContains(t, compiled.Validate([]byte(deep)), "too large to say where") })

	closed, err := schema.NewCompiler(schema.Options{}).Compile([]byte(`{"properties":{` + members(1_000, strings.Repeat("x", 100)) + `},"additionalProperties":false}`))
	require.NoError(t, err)
	err = closed.Validate([]byte(`{` + members(20_000, strings.Repeat("y", 50)) + `}`))
	require.Len(t, jig.AsError(err).Violations, 101)
}

func members(n int, name string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"%s%d":{}`, name, i)
	}
	return strings.Join(list, ",")
}

func TestRead_BoundsTheNumberOfValues(t *testing.T) { //nolint:paralleltest // parallel tests would distort the measurement
	compiled, err := schema.NewCompiler(schema.Options{}).Compile([]byte(`{}`))
	require.NoError(t, err)
	for _, item := range []string{"1", "{}", `{"":0}`, "[]"} {
		text := []byte(list(8<<20/(len(item)+1), item))
		costtest.AtMost(t, 400<<20, func() { require.ErrorContains(t, compiled.Validate(text), "too many values") })
	}
}

// hugeSchemas are schemas whose compilation would take unbounded time or memory.
func hugeSchemas() map[string]string {
	return map[string]string{
		"large patterns":      `{"items":` + list(50, `{"items":{"pattern":"(x{400}){6}"}}`) + `,"$schema":"http://json-schema.org/draft-07/schema#"}`,
		"a large pattern":     `{"pattern":"` + strings.Repeat("x{1000}", 100) + `"}`,
		"a large name":        `{"patternProperties":{"` + strings.Repeat("x{1000}", 100) + `":{}}}`,
		"patterns, no case":   `{"prefixItems":` + list(100, `{"pattern":"(?i)[b-𞥂]"}`) + `}`,
		"very many values":    `{"prefixItems":` + list(30_000, `{}`) + `}`,
		"a long name":         `{"properties":{"` + strings.Repeat("k", 100_000) + `":{"properties":{` + members(5_000, "a") + `}}}}`,
		"deep":                strings.Repeat(`{"not":`, 70) + "{}" + strings.Repeat("}", 70),
		"a reference outside": `{"$ref":"file:///etc/passwd"}`,
	}
}

func TestCompile_IsBoundedUnderAttack(t *testing.T) { //nolint:paralleltest // parallel tests would distort the measurement
	for name, text := range hugeSchemas() {
		costtest.AtMost(t, 64<<20, func() {
			_, err := schema.NewCompiler(schema.Options{}).Compile([]byte(text))
			require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), "%s: %v", name, err)
			require.Less(t, len(jig.AsError(err).Message), 2_000, name)
		})
	}
}

// Schemas that callers supply are cached, but their total size is limited.
func TestCompiler_KeepsNoMoreValuesThanItsLimit(t *testing.T) {
	t.Parallel()
	c := schema.NewCompiler(schema.Options{})
	large := func(name string) []byte { return []byte(`{"title":"` + name + `","enum":` + list(9_000, "1") + `}`) }
	compiled, err := c.Compile(large("first"))
	require.NoError(t, err)
	same, err := c.Compile(large("first"))
	require.NoError(t, err)
	require.Same(t, compiled, same)
	for i := range 1 + schema.MaxCachedValues/9_000 {
		_, err := c.Compile(large(strconv.Itoa(i)))
		require.NoError(t, err)
	}
	again, err := c.Compile(large("first"))
	require.NoError(t, err)
	require.NotSame(t, compiled, again)
}

// For any schema and any value, a check stays within its limits.
func FuzzSchema(f *testing.F) {
	for _, c := range heavyChecks() {
		f.Add(c[0], c[1])
	}
	for _, text := range hugeSchemas() {
		f.Add(text, `{"a":[1,"b",{}]}`)
	}
	f.Add(`{"type":"object","properties":{"a":{"items":{"$ref":"#"},"enum":[1,"x"]}},"unevaluatedProperties":{"pattern":"^a"}}`, `{"a":[{"a":1}],"b":"a"}`)
	f.Fuzz(func(t *testing.T, text, value string) {
		costtest.AtMost(t, 256<<20, func() {
			compiled, err := schema.NewCompiler(schema.Options{}).Compile([]byte(text))
			if err != nil {
				require.NotEqual(t, jig.CodeInternal, jig.CodeOf(err))
				return
			}
			if err := compiled.Validate([]byte(value)); err != nil {
				require.NotEqual(t, jig.CodeInternal, jig.CodeOf(err))
			}
		})
	})
}
