package expr_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
)

// A JSON number is read as an int or a double, and the result of a computation is written as a JSON number.
func TestNumbers_InputAndOutput(t *testing.T) {
	t.Parallel()
	cases := []struct{ in, source, out string }{
		{"9007199254740991", "input + 1", "9007199254740992"},
		{"-9007199254740991", "input - 2", "-9007199254740993"},
		{"9007199254740991", "input * 1024", "9223372036854774784"},
		{"9007199254740992", "input + 1.0", "9007199254740992"},
		{"9007199254740992", "int(input) + 1", "9007199254740993"},
		{"9007199254740991.0", "input + 1", "9007199254740992"},
		{"9007199254740991", "input == 9007199254740991.0", "true"},
		{"1e21", "input", "1e+21"},
		{"1e20", "input", "100000000000000000000"},
		{"-0", "input", "0"},
		{"-0.0", "[input, 1 / (input + 1)]", "[0,1]"},
		{"1.0", "input + 1", "2"},
		{"1.0", "input == 1 && input == 1.0 && type(input) == int", "true"},
		{"1e3", "input + 1", "1001"},
		{"1E+3", "input % 7", "6"},
		{"0.1e1", "input", "1"},
		{"12e-1", "input", "1.2"},
		{"0.1", "input + 0.2", "0.30000000000000004"},
		{"1.5", "input * 2.0", "3"},
		{"1.5", "int(input)", "1"},
		{"3", "double(input) / 2.0", "1.5"},
		{"3", "input / 2", "1"},
		{"1e-7", "input", "1e-7"},
		{"5e-324", "input", "5e-324"},
		{"1.7976931348623157e308", "input", "1.7976931348623157e+308"},
		{"2", "string(input) + string(2.0)", `"22"`},
		{"2", "uint(input) + 1u", "3"},
		{"2", "['a', 'b', 'c'][input]", `"c"`},
		{"1.5", "input > 1 && input < 2", "true"},
		{`{"a":[{"b":[1.0,1e3,0.5,-0.0,9007199254740992]}]}`, "input.a[0].b", "[1,1000,0.5,0,9007199254740992]"},
		{`{"a":[{"b":[1.0,1e3,0.5]}]}`, "input.a[0].b.map(n, type(n) == int)", "[true,true,false]"},
		{`{"1":1}`, "input['1'] in [1.0]", "true"},
		{`[1, 1.0, 1e0, 10e-1]`, "input.distinct()", "[1]"},
	}
	for _, c := range cases {
		t.Run(c.in+" "+c.source, func(t *testing.T) {
			t.Parallel()
			got, err := eval(t, stepEnv(t), c.source, map[string]any{"input": json.RawMessage(c.in)})
			require.NoError(t, err)
			require.Equal(t, c.out, got)
			var decoded any
			require.NoError(t, json.Unmarshal([]byte(c.in), &decoded))
			again, err := eval(t, stepEnv(t), c.source, map[string]any{"input": decoded})
			require.NoError(t, err)
			require.Equal(t, c.out, again, "as encoding/json decodes it")
		})
	}
	for in, source := range map[string]string{
		"1.5":                 "input % 1",
		"9007199254740991":    "input * 2000",
		"1e300":               "int(input)",
		"1e308":               "input * 10.0",
		"-1":                  "uint(input)",
		"9223372036854775807": "int(input)", // as a double it is 2^63
	} {
		_, err := eval(t, stepEnv(t), source, map[string]any{"input": json.RawMessage(in)})
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), "%s %s", in, source)
	}
}

// An integer that a double cannot hold keeps its digits where it is passed on.
func TestNumbers_LargeIntegersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	const order = "7615917337495251231"
	for source, want := range map[string]string{
		"input.order":                                       order,
		"input":                                             `{"list":[{"n":-7615917337495251231}],"order":7615917337495251231,"small":7}`,
		"input.list[0].n":                                   "-7615917337495251231",
		"[input.order, 1]":                                  "[7615917337495251231,1]",
		"{'a': input.order}":                                `{"a":7615917337495251231}`,
		"string(input.order)":                               `"7615917337495251231"`,
		"json.encode(input.list)":                           `"[{\"n\":-7615917337495251231}]"`,
		"input.small > 5 ? input.order : 0":                 order,
		"input.?order.orValue(0)":                           order,
		"input.list.map(x, x.n)":                            "[-7615917337495251231]",
		"has(input.order)":                                  "true",
		"[input.order] == [input.order]":                    "true",
		"[input.order] == [dyn(input.list[0].n)]":           "false",
		"'order ' + string(input.order)":                    `"order 7615917337495251231"`,
		"input.list.filter(x, x.n != null).size()":          "1",
		"{'a': input.order} == {'a': dyn(input.list[0].n)}": "false",
		"input.transformMap(k, v, v).order":                 order,
		"size(input.list)":                                  "1",
		"input.list.exists(x, string(x.n).startsWith('-'))": "true",
	} {
		got, err := eval(t, stepEnv(t), source, map[string]any{"input": json.RawMessage(`{"order":` + order + `,"list":[{"n":-` + order + `}],"small":7}`)})
		if source == "input.list.filter(x, x.n != null).size()" { // a comparison is computing
			require.ErrorContains(t, err, "would lose digits")
			continue
		}
		require.NoError(t, err, source)
		require.JSONEq(t, want, got, source)
		require.Equal(t, strings.Contains(want, order), strings.Contains(got, order), source)
	}
	template, err := stepEnv(t).Template("out/order-${input.order}.txt")
	require.NoError(t, err)
	text, err := template.EvalText(t.Context(), map[string]any{"input": json.RawMessage(`{"order":123456789012345678901234567890}`)})
	require.NoError(t, err)
	require.Equal(t, "out/order-123456789012345678901234567890.txt", text)
}

// Nothing computes with an integer that a double cannot hold.
func TestNumbers_LargeIntegersAreNotComputedWith(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"input + 1", "1 + input", "input - 1", "input * 2", "input / 2", "input % 2", "input == 7615917337495251231", "7615917337495251231 == input",
		"input == input", "input != 7", "input < 7", "input > 7.5", "7 < input", "int(input)", "double(input)", "input in [1]", "math.abs(input)",
		"[1, 2][input]", "-input", "math.greatest(input, 1)", "timestamp(input)", "'a' + input",
	} {
		for _, n := range []string{"7615917337495251231", "-7615917337495251231", "123456789012345678901234567890"} {
			_, err := eval(t, stepEnv(t), source, map[string]any{"input": json.RawMessage(n)})
			require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), "%s %s", n, source)
		}
	}
	_, err := eval(t, stepEnv(t), "input > 7", map[string]any{"input": json.RawMessage("7615917337495251231")})
	require.ErrorContains(t, err, "the number 7615917337495251231 is beyond 2^53 and would lose digits; write it as a string")
}

// A list or a map in a source holds no integer that it could not be compared by, on whichever side it stands.
func TestNumbers_LargeIntegersInListsAreRefused(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"[7615917337495251231] == input", "input == [7615917337495251231]", "[-7615917337495251231] != input", "[[7615917337495251231]] == [input]",
		"{'a': 7615917337495251231} == input", "{7615917337495251231: 1} == input", "[7615917337495251231u] == input", "input.exists(x, [x] == [7615917337495251231])",
	} {
		_, err := stepEnv(t).Compile(source)
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), source)
		require.ErrorContains(t, err, "is beyond 2^53 and would lose digits; write it as a string", source)
	}
	for _, source := range []string{"{'n': 7615917337495251231}", "math.greatest([7615917337495251231, 1]) == 7615917337495251231", "size([7615917337495251231]) == 1"} {
		_, err := stepEnv(t).Compile(source)
		require.NoError(t, err, "nothing is compared with %s", source)
	}
	got, err := eval(t, stepEnv(t), "[9007199254740992, -9007199254740991] == input", map[string]any{"input": json.RawMessage("[9007199254740992, -9007199254740991]")})
	require.NoError(t, err)
	require.Equal(t, "true", got)
}

// Numbers outside of expressions keep their notation.
func TestDocument_NumbersStayAsWritten(t *testing.T) {
	t.Parallel()
	const document = `{"big":9007199254740993,"exp":1e3,"list":[1.0,-0,12345678901234567890.5],"made":"${input}","text":"n=${input}"}`
	d, problems := stepEnv(t).Document(json.RawMessage(document))
	require.Empty(t, problems)
	raw, err := d.Render(t.Context(), map[string]any{"input": json.RawMessage("1.0")})
	require.NoError(t, err)
	want := strings.NewReplacer(`"${input}"`, "1", "${input}", "1").Replace(document)
	require.Equal(t, want, string(raw))
	var problem []expr.Problem
	_, problem = stepEnv(t).Document(json.RawMessage(`{"a":01}`))
	require.Len(t, problem, 1)
}
