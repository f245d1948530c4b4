package schema

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/strictjson"
)

// integer returns a JSON number without fraction and exponent if it is an integer up to 2^53, as 1.0 and 1e3 are.
func integer(literal string) (string, bool) {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > strictjson.MaxExactInteger || !strictjson.ExactNumber(literal) {
		return "", false
	}
	return strconv.FormatInt(int64(f), 10), true
}

// RewriteIntegers returns the JSON text with its integers written without fraction and exponent (1.0 and 1e3 become 1 and 1000), so that
// they decode into Go's integer types. All other values stay the same.
func RewriteIntegers(text []byte) ([]byte, error) {
	v, err := strictjson.Decode(text, strictjson.Limits{Depth: 128, Values: strictjson.MaxValues})
	if err != nil {
		return nil, notJSON("the value", err)
	}
	b, err := json.Marshal(whole(v))
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the value cannot be written as JSON: %w", err)
	}
	return b, nil
}

func whole(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			v[name] = whole(child)
		}
	case []any:
		for i, child := range v {
			v[i] = whole(child)
		}
	case json.Number:
		if n, ok := integer(v.String()); ok {
			return json.Number(n)
		}
	}
	return v
}
