package spec_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/spec"
)

// fieldDice makes random fields and values, the same for the same seed.
type fieldDice struct{ *rand.Rand }

func (d fieldDice) chance(percent int) bool { return d.IntN(100) < percent }

func pick[T any](d fieldDice, from ...T) T { return from[d.IntN(len(from))] }

func (d fieldDice) field(depth int) entity.Field {
	types := entity.FieldTypes()
	if depth >= spec.MaxFieldDepth {
		types = types[:len(types)-2] // no objects and arrays
	}
	f := entity.Field{Type: pick(d, types...)}
	f.Display = pick(d, append([]string{""}, spec.Displays(f.Type)...)...)
	if d.chance(20) {
		f.Label, f.Description = "A label", "<b> & \"more\""
	}
	switch f.Type { //nolint:exhaustive // the other types have no specific keys
	case entity.FieldText:
		f.Pattern = pick(d, "", "", "^[a-c]*$", "b", `\d+`, "^(?:ä|👍)", `a\.b|^$`)
		d.lengths(&f)
	case entity.FieldNumber:
		f.Integer = d.chance(40)
		f.Minimum, f.Maximum = d.bounds(-5, 2), d.bounds(2, 8)
	case entity.FieldDate:
		f.Time = d.chance(50)
	case entity.FieldEnum:
		f.Options = []string{"a", "b", "ä", "null", "1", ""}[:1+d.IntN(5)]
	case entity.FieldRelation:
		f.Target = "module"
		if f.Many = d.chance(50); f.Many {
			d.lengths(&f)
		}
	case entity.FieldObject:
		for _, name := range []string{"a", "b", "cD", "e_1"}[:1+d.IntN(4)] {
			inner := d.field(depth + 1)
			inner.Name, inner.Required = name, d.chance(40)
			f.Fields = append(f.Fields, inner)
		}
	case entity.FieldArray:
		item := d.field(depth + 1)
		f.Items = &item
		d.lengths(&f)
	}
	return f
}

func (d fieldDice) lengths(f *entity.Field) {
	if low := d.IntN(3); d.chance(30) {
		f.MinLength = &low
	}
	if high := 2 + d.IntN(3); d.chance(30) {
		f.MaxLength = &high
	}
}

func (d fieldDice) bounds(low, high float64) *float64 {
	if d.chance(50) {
		return nil
	}
	f := low + pick(d, 0, 0.1, 0.5, 1, 1e-9)*(high-low)
	return &f
}

// value returns a value that resembles a fitting one, and often fits.
func (d fieldDice) value(f *entity.Field, depth int) any {
	if d.chance(6) {
		return d.anything(2)
	}
	switch f.Type {
	case entity.FieldText:
		return strings.Repeat(pick(d, "a", "b", "1", "ä", "👍", "a.b", "abc"), d.IntN(4))
	case entity.FieldNumber:
		return json.Number(pick(d, "-5", "-4.5", "0", "1", "1.0", "2", "0.1", "2.6", "8", "8.1", "1e1", "-5.000000000000000000001", "100"))
	case entity.FieldBoolean:
		return d.chance(50)
	case entity.FieldEnum:
		return pick(d, "a", "b", "ä", "null", "1", "c")
	case entity.FieldDate:
		return d.mangled(fmt.Sprintf("%04d-%02d-%02d", pick(d, 0, 1, 1900, 2000, 2024, 2026, 9999), d.IntN(14), d.IntN(33)) +
			pick(d, "", "T12:00:00Z", "T23:59:59.5+01:00", "T24:00:00Z", "T00:00:60Z"))
	case entity.FieldURL:
		return d.mangled(pick(d, "https://example.com/a?b=c#d", "http://a:1/%20", "https://user@a", "HTTP://A.b", "https://a/[x]"))
	case entity.FieldEmail:
		return d.mangled(pick(d, "ana@example.com", "a.b+c@d", "a@b-.c", strings.Repeat("x", 60+d.IntN(8))+"@y"))
	case entity.FieldPhone:
		return d.mangled("+" + strings.Repeat("12", d.IntN(9)))
	case entity.FieldMedia:
		return d.mangled(pick(d, "art_0123456789abcdefghjkmnpqrs", "https://example.com/a.png", "a.png"))
	case entity.FieldRelation:
		if f.Many {
			ids := []any{}
			for range d.IntN(4) {
				ids = append(ids, d.mangled(pick(d, "a", "b", "ent_1")))
			}
			return ids
		}
		return d.mangled("ent_01")
	case entity.FieldObject:
		object := map[string]any{}
		for i := range f.Fields {
			if f.Fields[i].Required && d.chance(95) || d.chance(60) {
				object[f.Fields[i].Name] = d.value(&f.Fields[i], depth+1)
			}
		}
		if d.chance(3) {
			object["unknown"] = 1
		}
		return object
	case entity.FieldArray:
		items := []any{}
		for range d.IntN(4) {
			items = append(items, d.value(f.Items, depth+1))
		}
		return items
	}
	return nil
}

// mangled sometimes changes a character.
func (d fieldDice) mangled(text string) string {
	if text == "" || d.chance(70) {
		return text
	}
	at := d.IntN(len(text) + 1)
	return text[:at] + pick(d, " ", ".", "-", "@", "%", "0", "ä", "\n", ":", "/", "\"", "\\") + text[at:]
}

func (d fieldDice) anything(depth int) any {
	switch n := d.IntN(9); {
	case n == 0 && depth > 0:
		return []any{d.anything(depth - 1)}
	case n == 1 && depth > 0:
		return map[string]any{"a": d.anything(depth - 1)}
	default:
		return []any{nil, true, false, 0, 1.5, -3, "", "a", "x"}[n]
	}
}

// A field's schema accepts what the field accepts, with formats asserted or not.
func TestCheckField_AgreesWithTheSchema(t *testing.T) {
	t.Parallel()
	const fields, values = 600, 12
	taken := map[bool]int{}
	for seed := range uint64(fields) {
		d := fieldDice{rand.New(rand.NewPCG(seed, 7))}
		f := d.field(1)
		ask := judges(t, f)
		for range values {
			raw, err := json.Marshal(d.value(&f, 1))
			require.NoError(t, err)
			fits := ask["the field"](string(raw)) == nil
			taken[fits]++
			for who, judge := range ask {
				require.Equal(t, fits, judge(string(raw)) == nil, "seed %d: %s disagrees with the field of schema %s on %s", seed, who, schemaOf(t, f), raw)
			}
		}
	}
	require.Greater(t, taken[true], fields*values/5)
	require.Greater(t, taken[false], fields*values/5)
}
