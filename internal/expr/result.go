package expr

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
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
