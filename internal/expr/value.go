package expr

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
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

const (
	maxResultDepth = 200
	// numberLength is the approximate length of a number or a literal in JSON.
	numberLength = 8
)

// exporter converts results to Go values and counts their size as JSON.
type exporter struct{ left, limit int }

func export(v ref.Val, limit int) (any, error) {
	x := &exporter{left: limit, limit: limit}
	return x.value(v, 0)
}

func (x *exporter) take(n int) error {
	if x.left -= n; x.left < 0 {
		return jig.Errorf(jig.CodeInvalidInput, "the result is larger than %d KiB", x.limit>>10)
	}
	return nil
}

func (x *exporter) value(v ref.Val, depth int) (any, error) {
	if depth > maxResultDepth {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the result is nested more than %d levels deep", maxResultDepth)
	}
	switch r := v.(type) {
	case types.Null:
		return nil, x.take(4)
	case types.Bool:
		return bool(r), x.take(5)
	case types.Int:
		return int64(r), x.take(numberLength)
	case types.Uint:
		return uint64(r), x.take(numberLength)
	case bigInteger:
		return json.Number(r), x.take(len(r))
	case types.Double:
		if f := float64(r); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, jig.Errorf(jig.CodeInvalidInput, "the result contains %v, which JSON cannot represent", f)
		}
		return float64(r), x.take(numberLength)
	case types.String:
		return strings.ToValidUTF8(string(r), "�"), x.take(len(r) + 2)
	case types.Bytes:
		if err := x.take(base64.StdEncoding.EncodedLen(len(r)) + 2); err != nil {
			return nil, err
		}
		return base64.StdEncoding.EncodeToString(r), nil
	case types.Timestamp:
		return r.Time.UTC().Format(time.RFC3339Nano), x.take(len(time.RFC3339Nano))
	case types.Duration:
		return r.String(), x.take(numberLength)
	case *types.Optional:
		if r.HasValue() {
			return x.value(r.GetValue(), depth+1)
		}
		return nil, x.take(4)
	case *types.Type:
		return r.TypeName(), x.take(len(r.TypeName()) + 2)
	case traits.Lister:
		return x.list(r, depth)
	case traits.Mapper:
		return x.mapping(r, depth)
	}
	return nil, jig.Errorf(jig.CodeInvalidInput, "a result of type %s has no JSON", v.Type().TypeName())
}

func (x *exporter) list(l traits.Lister, depth int) (any, error) {
	n := int(sizeOf(l))
	if err := x.take(n + 2); err != nil {
		return nil, err
	}
	out := make([]any, n)
	for i := range out {
		v, err := x.value(l.Get(types.Int(i)), depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (x *exporter) mapping(m traits.Mapper, depth int) (any, error) {
	if err := x.take(2 + 4*int(sizeOf(m))); err != nil {
		return nil, err
	}
	out := make(map[string]any, sizeOf(m))
	for _, k := range sortedKeys(m) {
		name, err := keyName(k)
		if err != nil {
			return nil, err
		}
		if _, twice := out[name]; twice {
			return nil, jig.Errorf(jig.CodeInvalidInput, "two keys of the result are both %q as JSON", name)
		}
		if err := x.take(len(name)); err != nil {
			return nil, err
		}
		found, _ := m.Find(k)
		if out[name], err = x.value(found, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func keyName(k ref.Val) (string, error) {
	switch r := k.(type) {
	case types.String:
		return string(r), nil
	case types.Bool:
		return strconv.FormatBool(bool(r)), nil
	case types.Int:
		return strconv.FormatInt(int64(r), 10), nil
	case types.Uint:
		return strconv.FormatUint(uint64(r), 10), nil
	}
	return "", jig.Errorf(jig.CodeInvalidInput, "a map key of type %s has no JSON", k.Type().TypeName())
}

// jsonEncode is json.encode with the number rules of this package: cel-go's own version writes large integers as strings.
func (e *Env) jsonEncode(v ref.Val) ref.Val {
	out, err := export(v, e.use.Limits.Result)
	if err == nil {
		var raw json.RawMessage
		if raw, err = jsontext.Encode(out); err == nil {
			return types.String(raw)
		}
	}
	return types.WrapErr(fmt.Errorf("%s", jig.AsError(err).Message))
}
