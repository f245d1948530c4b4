package expr_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	celpb "cel.dev/expr"
	_ "cel.dev/expr/conformance/proto2" // the data contains its messages
	_ "cel.dev/expr/conformance/proto3" // the data contains its messages
	conformancepb "cel.dev/expr/conformance/test"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
)

// claimed returns the files of CEL's conformance data that this package conforms to. The number is how many cases of the file need the data's
// own protocol buffer messages, which this package does not support.
func claimed() map[string]int {
	return map[string]int{
		"basic": 0, "comparisons": 44, "fields": 0, "fp_math": 0, "integer_math": 0, "lists": 0, "logic": 0, "macros": 0, "macros2": 0,
		"string": 0, "conversions": 0, "timestamps": 0, "plumbing": 0,
		"bindings_ext": 0, "encoders_ext": 0, "math_ext": 0, "optionals": 11, "string_ext": 3,
	}
}

// skipped returns the cases that fail in this package, with the reason. A case that passes must not be listed.
func skipped() map[string]string {
	const (
		checked = "the data switch type checking off for it; here every expression is checked"
		celGo   = "cel-go has it so, in its own conformance run too"
		numbers = "JSON has one kind of number: what a double may be, an int may be"
	)
	return map[string]string{
		"basic/variables/unbound_is_runtime_error":                                  checked,
		"basic/functions/unbound_is_runtime_error":                                  checked,
		"logic/conditional/mixed_type":                                              checked,
		"logic/AND/short_circuit_type_left":                                         checked,
		"logic/AND/short_circuit_type_right":                                        checked,
		"logic/OR/short_circuit_type_left":                                          checked,
		"logic/OR/short_circuit_type_right":                                         checked,
		"comparisons/eq_literal/not_eq_list_length":                                 checked,
		"comparisons/eq_literal/eq_mixed_types":                                     checked,
		"comparisons/eq_literal/eq_list_elem_mixed_types":                           checked,
		"comparisons/ne_literal/ne_mixed_types":                                     checked,
		"fields/qualified_identifier_resolution/map_key_float":                      celGo + ": a map may have a double as a key",
		"fields/qualified_identifier_resolution/map_value_repeat_key":               celGo + ": of a key written twice the last value counts",
		"fields/qualified_identifier_resolution/map_value_repeat_key_heterogeneous": celGo + ": the same",
		"math_ext/ceil/dyn_error":                                                   numbers,
		"math_ext/floor/dyn_error":                                                  numbers,
		"math_ext/round/dyn_error":                                                  numbers,
		"math_ext/trunc/dyn_error":                                                  numbers,
		"optionals/optionals/map_null_entry_no_such_key":                            celGo + ": has(…) of a member of an absent optional is false",
		"optionals/optionals/map_present_key_invalid_field":                         celGo + ": the same",
		"timestamps/duration_converters/get_milliseconds":                           celGo + ": getMilliseconds is the whole duration in milliseconds",
		"string_ext/value_errors/indexof_out_of_range":                              celGo + ": a search from beyond the end finds nothing",
		"string_ext/value_errors/lastindexof_out_of_range":                          celGo + ": the same",
	}
}

// conformanceFile reads a file of the conformance data from the module cache, where `go mod download` puts it.
func conformanceFile(t *testing.T, name string) *conformancepb.SimpleTestFile {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "cel.dev/expr").Output()
	require.NoError(t, err)
	raw, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "tests", "simple", "testdata", name+".textproto"))
	require.NoError(t, err)
	file := &conformancepb.SimpleTestFile{}
	require.NoError(t, prototext.Unmarshal(raw, file))
	return file
}

func TestConformance_OfTheSpecification(t *testing.T) {
	t.Parallel()
	skips := skipped()
	for name, needMessages := range claimed() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ran, messages, skips := 0, 0, maps.Clone(skips)
			for _, section := range conformanceFile(t, name).GetSection() {
				for _, test := range section.GetTest() {
					id := name + "/" + section.GetName() + "/" + test.GetName()
					if aboutMessages(test) {
						messages++
						continue
					}
					err := conforms(t, test)
					if reason, listed := skips[id]; listed {
						require.Error(t, err, "%s passes, although it is listed as failing: %s", id, reason)
						delete(skips, id)
						continue
					}
					require.NoError(t, err, id)
					ran++
				}
			}
			for id := range skips {
				require.False(t, strings.HasPrefix(id, name+"/"), "%s is listed but is not in the data", id)
			}
			require.Equal(t, needMessages, messages, "cases that need messages")
			t.Logf("%d cases hold, %d need messages", ran, messages)
		})
	}
}

// aboutMessages reports whether a case builds or reads a message of the conformance data, judging by its text.
func aboutMessages(test *conformancepb.SimpleTest) bool {
	return strings.Contains(prototext.Format(test), "TestAllTypes") || strings.HasPrefix(test.GetContainer(), "cel.expr.conformance")
}

// conforms runs a case the way users evaluate expressions: it compiles it in an environment with its variables, evaluates it, and compares
// the result as JSON represents it.
func conforms(t *testing.T, test *conformancepb.SimpleTest) error {
	t.Helper()
	use := expr.Use{Name: "conformance"}
	for _, decl := range test.GetTypeEnv() {
		if decl.GetIdent() == nil {
			return fmt.Errorf("declares the function %s", decl.GetName())
		}
		use.Variables = append(use.Variables, expr.Variable{Name: decl.GetName()})
	}
	env, err := expr.NewEnv(use)
	if err != nil {
		return err
	}
	vars := map[string]any{}
	for name, bound := range test.GetBindings() {
		if vars[name], err = goValue(bound.GetValue(), true); err != nil {
			return err
		}
	}
	p, err := env.Compile(test.GetExpr())
	if test.GetCheckOnly() {
		return err
	}
	var got any
	if err == nil {
		got, err = p.Eval(t.Context(), vars)
	}
	want := test.GetValue()
	switch test.GetResultMatcher().(type) {
	case *conformancepb.SimpleTest_EvalError, *conformancepb.SimpleTest_AnyEvalErrors:
		if err == nil {
			return fmt.Errorf("gives %v instead of an error", got)
		}
		if jig.CodeOf(err) != jig.CodeInvalidInput {
			return fmt.Errorf("fails with %w", err)
		}
		return nil
	case *conformancepb.SimpleTest_TypedResult:
		want = test.GetTypedResult().GetResult()
	case nil:
		want = &celpb.Value{Kind: &celpb.Value_BoolValue{BoolValue: true}}
	}
	if d, isDouble := want.GetKind().(*celpb.Value_DoubleValue); isDouble && (math.IsNaN(d.DoubleValue) || math.IsInf(d.DoubleValue, 0)) {
		if err == nil || !strings.Contains(err.Error(), "which JSON cannot represent") {
			return fmt.Errorf("%v is not refused: %w", got, err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	expected, err := goValue(want, false)
	if err == nil && fmt.Sprintf("%T %#v", expected, expected) != fmt.Sprintf("%T %#v", got, got) {
		err = fmt.Errorf("gives %T %v instead of %T %v", got, got, expected, expected)
	}
	return err
}

// goValue converts a value of the conformance data to what [expr.From] accepts (in) or to what Eval returns.
func goValue(v *celpb.Value, in bool) (any, error) {
	switch x := v.GetKind().(type) {
	case *celpb.Value_NullValue:
		return nil, nil // null is a value
	case *celpb.Value_BoolValue:
		return x.BoolValue, nil
	case *celpb.Value_Int64Value:
		return x.Int64Value, nil
	case *celpb.Value_Uint64Value:
		return x.Uint64Value, nil
	case *celpb.Value_DoubleValue:
		return x.DoubleValue, nil
	case *celpb.Value_StringValue:
		return x.StringValue, nil
	case *celpb.Value_BytesValue:
		if in {
			return x.BytesValue, nil
		}
		return base64.StdEncoding.EncodeToString(x.BytesValue), nil
	case *celpb.Value_TypeValue:
		return x.TypeValue, nil
	case *celpb.Value_ListValue:
		out := make([]any, 0, len(x.ListValue.GetValues()))
		for _, item := range x.ListValue.GetValues() {
			value, err := goValue(item, in)
			if err != nil {
				return nil, err
			}
			out = append(out, value)
		}
		return out, nil
	case *celpb.Value_MapValue:
		out := map[string]any{}
		for _, entry := range x.MapValue.GetEntries() {
			key, err := goValue(entry.GetKey(), in)
			if err != nil {
				return nil, err
			}
			value, err := goValue(entry.GetValue(), in)
			if err != nil {
				return nil, err
			}
			out[fmt.Sprint(key)] = value
		}
		return out, nil
	case *celpb.Value_ObjectValue:
		message, err := x.ObjectValue.UnmarshalNew()
		if d, ok := message.(*durationpb.Duration); ok && in {
			return d.AsDuration(), err
		}
	}
	return nil, fmt.Errorf("a value of kind %T", v.GetKind())
}
