package expr_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
)

// everyEnv returns the environment of each use.
func everyEnv(t *testing.T) map[string]*expr.Env {
	t.Helper()
	envs := map[string]*expr.Env{}
	for name, use := range map[string]expr.Use{
		"policy": expr.PolicyUse(), "task": expr.TaskUse(), "thin": expr.ThinUse(), "thin url": expr.ThinURLUse(), "script": expr.ScriptUse(),
		"concurrency key": expr.ConcurrencyKeyUse(), "step": expr.StepUse(),
	} {
		env, err := use.Env()
		require.NoError(t, err)
		envs[name] = env
	}
	return envs
}

// A price is an int if it happens to have no cents. Expressions work on prices with and without cents, in every environment.
func TestArithmetic_TakesPricesWithAndWithoutCents(t *testing.T) {
	t.Parallel()
	for name, env := range everyEnv(t) {
		for source, want := range map[string][2]string{ // with price 1000, and with price 1000.5
			"input.quantity * input.price":                           {"2000", "2001"},
			"input.price * input.quantity":                           {"2000", "2001"},
			"input.quantity + input.price":                           {"1002", "1002.5"},
			"input.price + input.quantity":                           {"1002", "1002.5"},
			"input.quantity - input.price":                           {"-998", "-998.5"},
			"input.price - input.quantity":                           {"998", "998.5"},
			"input.price / input.quantity":                           {"500", "500.25"},
			"2000 / input.price":                                     {"2", "1.999000499750125"},
			"input.price * 1.5":                                      {"1500", "1500.75"},
			"-input.price - 0.5":                                     {"-1000.5", "-1001"},
			"input.quantity * input.price > 2000":                    {"false", "true"},
			"[input.price, 0.5, 3].map(p, p * 2)":                    {"[2000,1,6]", "[2001,1,6]"},
			"cel.bind(total, input.quantity * input.price, total+1)": {"2001", "2002"},
			"math.round(input.price)":                                {"1000", "1001"},
			"math.floor(input.price) + math.ceil(input.price)":       {"2000", "2001"},
			"math.trunc(input.price)":                                {"1000", "1000"},
			"math.isFinite(input.price) && !math.isNaN(input.price) && !math.isInf(input.price)": {"true", "true"},
			"[2000, input.price, 7.25].sort()":                                                   {"[7.25,1000,2000]", "[7.25,1000.5,2000]"},
			"[{'p': 2000}, {'p': input.price}].sortBy(i, i.p).map(i, i.p)":                       {"[1000,2000]", "[1000.5,2000]"},
			"math.greatest(input.price, 7) + math.least(0.5, input.quantity)":                    {"1000.5", "1001"},
		} {
			for i, price := range []string{"1000", "1000.5"} {
				got, err := eval(t, env, source, map[string]any{"input": json.RawMessage(`{"quantity":2,"price":` + price + `}`)})
				require.NoError(t, err, "%s: %s with %s", name, source, price)
				require.Equal(t, want[i], got, "%s: %s with %s", name, source, price)
			}
		}
	}
}

// Two ints are computed as in CEL: division drops the remainder, and overflow is an error. One double is enough to keep the remainder.
func TestArithmetic_IntsFollowCEL(t *testing.T) {
	t.Parallel()
	vars := map[string]any{"input": json.RawMessage(`{"seven":7,"two":2,"whole":7.0,"half":7.5,"zero":0,"max":9007199254740991}`)}
	for source, want := range map[string]string{
		"7 / 2": "3", "input.seven / input.two": "3", "input.whole / input.two": "3", "-7 / 2": "-3", "input.seven % input.two": "1",
		"7 / 2.0": "3.5", "7.0 / 2": "3.5", "input.seven / 2.0": "3.5", "double(input.seven) / input.two": "3.5", "input.half / input.two": "3.75",
	} {
		got, err := eval(t, stepEnv(t), source, vars)
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
	for source, says := range map[string]string{
		"input.seven / input.zero":        "division by zero",
		"input.max * input.max":           "integer overflow",
		"9223372036854775807 + input.two": "integer overflow",
		"input.seven + 'x'":               "'+' cannot be applied to (int, string)",
		"input.half - 'x'":                "'-' cannot be applied to (dyn, string)",
		"'x' * input.half":                "'*' cannot be applied to (string, dyn)",
		"dyn('x') * input.half":           "'*' cannot be applied to (string, double)",
		"input.half - dyn('x')":           "'-' cannot be applied to (double, string)",
		"input.half / true":               "'/' cannot be applied to (dyn, bool)",
		"input.half % input.two":          "'%' cannot be applied to (double, int); it needs whole numbers: int(…)",
		"input.seven + 1u":                "(int, uint); make both the same with int(…), uint(…) or double(…)",
		"input.half / 0.0":                "which JSON cannot represent",
	} {
		_, err := eval(t, stepEnv(t), source, vars)
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), source)
		require.ErrorContains(t, err, says, source)
	}
	_, err := eval(t, stepEnv(t), "timestamp('9999-12-31T00:00:00Z') + duration('1000h')", nil)
	require.ErrorContains(t, err, "timestamp overflow", "an error of its own is kept")
}

// An operation on an int and a double converts the int to a double. Its result is the double nearest to the exact result for the two doubles.
func TestArithmetic_MixedAgreesWithExact(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 11))
	env := stepEnv(t)
	exact := map[string]func(z, x, y *big.Float) *big.Float{
		"+": (*big.Float).Add, "-": (*big.Float).Sub, "*": (*big.Float).Mul, "/": (*big.Float).Quo,
	}
	programs := map[string]*expr.Program{}
	for sign := range exact {
		p, err := env.Compile("input.a " + sign + " input.b")
		require.NoError(t, err)
		programs[sign] = p
	}
	for range 20_000 {
		whole := random.Int64N(1<<(1+random.IntN(53))) - random.Int64N(1<<20)
		part := (random.Float64() - 0.5) * math.Pow(10, float64(random.IntN(30)-10))
		if part == math.Trunc(part) {
			continue // it is an int
		}
		for sign, apply := range exact {
			for _, pair := range [][2]any{{whole, part}, {part, whole}} {
				a, b := asFloat(pair[0]), asFloat(pair[1])
				if sign == "/" && b == 0 {
					continue
				}
				want, _ := apply(new(big.Float).SetPrec(2000), big.NewFloat(a), big.NewFloat(b)).Float64()
				got, err := programs[sign].Eval(t.Context(), map[string]any{"input": map[string]any{"a": pair[0], "b": pair[1]}})
				require.NoError(t, err)
				require.Equal(t, want, got, fmt.Sprintf("%v %s %v", pair[0], sign, pair[1])) //nolint:testifylint // the doubles must be identical
			}
		}
	}
}

func asFloat(v any) float64 {
	if n, ok := v.(int64); ok {
		return float64(n)
	}
	return v.(float64) //nolint:errcheck // a number is an int64 or a float64
}
