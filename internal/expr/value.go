package expr

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/jig-run/jig"
)

// maxSafe is the largest integer that every JSON reader represents exactly: 2^53-1.
const maxSafe = 1<<53 - 1

// Value is a value converted for expressions, so that many expressions can read it after one conversion.
type Value struct {
	// v is a Go map or list, whose members cel-go reads without wrapping each of them, or a ref.Val for other values.
	v any
}

func ready(v any) Value {
	switch v.(type) {
	case map[string]any, []any:
		return Value{v: v}
	}
	return Value{v: types.DefaultTypeAdapter.NativeToValue(v)}
}

// FromJSON reads a JSON document. An empty one is null.
func FromJSON(raw json.RawMessage) (Value, error) {
	v, err := decode(raw)
	if err != nil {
		return Value{}, err
	}
	return ready(v), nil
}

// From converts a Go value: anything that encoding/json decodes to, integers, [time.Time], [time.Duration], []byte, [json.RawMessage],
// Value, and lists and maps of these. Any other value is converted by way of its JSON.
func From(v any) (Value, error) {
	if done, ok := v.(Value); ok {
		return done, nil
	}
	n, err := normal(v)
	if err != nil {
		return Value{}, err
	}
	return ready(n), nil
}

func decode(raw json.RawMessage) (any, error) {
	v, err := decodeAsWritten(raw)
	if err != nil {
		return nil, err
	}
	return normal(v)
}

// decodeAsWritten decodes JSON and keeps numbers as they are written.
func decodeAsWritten(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, jig.Errorf(jig.CodeInvalidInput, "not JSON: something follows the value")
	}
	return v, nil
}

// normal converts a Go value to the few types that cel-go reads without reflection. Lists and maps are copied.
func normal(v any) (any, error) {
	switch x := v.(type) {
	case nil, bool, string, int64, uint64, time.Time, time.Duration, []byte, ref.Val:
		return v, nil
	case Value:
		return x.v, nil
	case json.Number:
		return number(x)
	case json.RawMessage:
		return decode(x)
	case int:
		return int64(x), nil
	case int32:
		return int64(x), nil
	case float32:
		return integral(float64(x)), nil
	case float64:
		return integral(x), nil
	case []string:
		return x, nil
	case []any:
		return normalList(x)
	case map[string]any:
		return normalMap(x)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "a value of type %T has no JSON: %w", v, err)
	}
	return decode(raw)
}

func normalList(list []any) (any, error) {
	out := make([]any, len(list))
	for i, v := range list {
		n, err := normal(v)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}

func normalMap(m map[string]any) (any, error) {
	out := make(map[string]any, len(m))
	for k, v := range m {
		n, err := normal(v)
		if err != nil {
			return nil, err
		}
		out[k] = n
	}
	return out, nil
}

// number reads a JSON number. It is an int if it is integral and within ±(2^53-1), however it is written; an integer that would lose digits stays
// as it is written; any other is a double.
func number(n json.Number) (any, error) {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil && -maxSafe <= i && i <= maxSafe {
		return i, nil
	}
	if b, ok := integerOf(n.String()); ok {
		return b, nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the number %.40s is out of range", n.String())
	}
	return integral(f), nil
}

func integral(f float64) any {
	if f == math.Trunc(f) && math.Abs(f) <= maxSafe {
		return int64(f)
	}
	return f
}
