package spec_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/spec"
)

// typeOfFields reads an entity type from its fields in YAML's flow style.
func typeOfFields(t *testing.T, fields string) entity.Type {
	t.Helper()
	entityType, err := spec.LoadEntityType("a.yaml", []byte("{kind: entity_type, name: a, fields: ["+fields+"]}"))
	require.NoError(t, err, fields)
	return entityType
}

func TestCompareTypes_NamesEveryChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, latest, want string }{
		{"{name: a, type: text}", "{name: a, type: text, label: A, display: code, description: b}", ""},
		{"{name: a, type: text}", "{name: b, type: text}", "b: it is new|! a: it is removed"},
		{"{name: a, type: text}", "{name: a, type: text}, {name: b, type: text, required: true}", "! b: it is new and required, without a default"},
		{"{name: a, type: text}", "{name: a, type: text}, {name: b, type: text, required: true, default: x}", `b: it is new and required; existing content gets the default "x"`},
		{"{name: a, type: text}", "{name: a, type: text, required: true}", "! a: it is now required"},
		{"{name: a, type: text, required: true}", "{name: a, type: text}", "a: it is no longer required"},
		{"{name: a, type: text}", "{name: a, type: number}", "! a: its type is number; it was text"},
		{"{name: a, type: text, max_length: 80}", "{name: a, type: text, max_length: 40}", "! a: its max_length is 40; it was 80"},
		{"{name: a, type: text, max_length: 80}", "{name: a, type: text, max_length: 90}", "a: its max_length is 90; it was 80"},
		{"{name: a, type: text, max_length: 80}", "{name: a, type: text}", "a: it no longer has a max_length"},
		{"{name: a, type: text}", "{name: a, type: text, min_length: 2}", "! a: its min_length is now 2; it had none"},
		{"{name: a, type: text}", "{name: a, type: text, min_length: 0}", ""},
		{"{name: a, type: text, min_length: 2}", "{name: a, type: text, min_length: 1}", "a: its min_length is 1; it was 2"},
		{"{name: a, type: text}", "{name: a, type: text, pattern: b}", `! a: its pattern is "b"; it had none`},
		{"{name: a, type: text, pattern: a}", "{name: a, type: text, pattern: b}", `! a: its pattern is "b"; it was "a"`},
		{"{name: a, type: text, pattern: a}", "{name: a, type: text}", "a: it no longer has a pattern"},
		{"{name: a, type: number, minimum: 0, maximum: 1.5}", "{name: a, type: number, minimum: 0.5, maximum: 1}", "! a: its minimum is 0.5; it was 0|! a: its maximum is 1; it was 1.5"},
		{"{name: a, type: number, minimum: 0, maximum: 1}", "{name: a, type: number, minimum: -1, maximum: 2}", "a: its minimum is -1; it was 0|a: its maximum is 2; it was 1"},
		{"{name: a, type: number}", "{name: a, type: number, integer: true}", "! a: it must now be a whole number"},
		{"{name: a, type: number, integer: true}", "{name: a, type: number}", "a: it need no longer be a whole number"},
		{"{name: a, type: date}", "{name: a, type: date, time: true}", "! a: it now has a time of day"},
		{"{name: a, type: date, time: true}", "{name: a, type: date}", "! a: it no longer has a time of day"},
		{"{name: a, type: enum, options: [x, y]}", "{name: a, type: enum, options: [z, y]}", "! a: the options x were removed|a: the options z were added"},
		{"{name: a, type: enum, options: [x, y]}", "{name: a, type: enum, options: [y, x]}", ""},
		{"{name: a, type: relation, target: b}", "{name: a, type: relation, target: c}", "! a: it now leads to c; it led to b"},
		{"{name: a, type: relation, target: b, many: true}", "{name: a, type: relation, target: b}", "! a: it now holds one value instead of many"},
		{"{name: a, type: relation, target: b}", "{name: a, type: relation, target: b, many: true}", "! a: it now holds many values instead of one: existing content is not a list"},
		{"{name: a, type: relation, target: b, many: true}", "{name: a, type: relation, target: b, many: true, max_length: 3}", "! a: its max_length is now 3; it had none"},
		{"{name: a, type: array, items: {type: text}}", "{name: a, type: array, items: {type: text, max_length: 3}}", "! a[]: its max_length is now 3; it had none"},
		{"{name: a, type: array, items: {type: text}}", "{name: a, type: array, items: {type: url}}", "! a[]: its type is url; it was text"},
		{"{name: a, type: array, items: {type: array, items: {type: text}}}", "{name: a, type: array, items: {type: array, items: {type: number}}}", "! a[][]: its type is number; it was text"},
		{
			"{name: a, type: object, fields: [{name: b, type: text}, {name: c, type: text}]}",
			"{name: a, type: object, fields: [{name: b, type: number}, {name: d, type: text}, {name: e, type: text, required: true}]}",
			"! a.b: its type is number; it was text|a.d: it is new|! a.e: it is new and required, without a default|! a.c: it is removed",
		},
		{
			"{name: a, type: array, items: {type: object, fields: [{name: b, type: text}]}}",
			"{name: a, type: array, items: {type: object, fields: [{name: b, type: text, required: true}]}}", "! a[].b: it is now required",
		},
	} {
		var got []string
		for _, change := range spec.CompareTypes(typeOfFields(t, c.old), typeOfFields(t, c.latest)) {
			got = append(got, map[bool]string{true: "! "}[change.Breaks]+change.Field+": "+change.Change)
		}
		require.Equal(t, c.want, strings.Join(got, "|"), "%s -> %s", c.old, c.latest)
	}
}

// entityType makes a type with a few fields.
func (d fieldDice) entityType() entity.Type {
	t := entity.Type{Name: "a"}
	for i := range 1 + d.IntN(3) {
		t.Fields = append(t.Fields, d.named(fmt.Sprintf("f%d", i)))
	}
	return t
}

func (d fieldDice) named(name string) entity.Field {
	f := d.field(1)
	f.Name, f.Required = name, d.chance(40)
	return f
}

// changed returns a field with one change, often to something wider.
func (d fieldDice) changed(f entity.Field) entity.Field {
	switch d.IntN(10) {
	case 0:
		f.Required = !f.Required
	case 1:
		f.Pattern = ""
	case 2:
		f.MinLength, f.Minimum = nil, nil
	case 3:
		f.MaxLength, f.Maximum, f.Integer = nil, nil, false
	case 4:
		if f.Type == entity.FieldEnum {
			f.Options = append(slices.Clone(f.Options), "new")
		}
	case 5:
		if f.MaxLength != nil {
			n := *f.MaxLength + d.IntN(4) - 1
			f.MaxLength = &n
		}
		f.Maximum = widened(f.Maximum, float64(d.IntN(4)-1))
		f.Minimum = widened(f.Minimum, float64(1-d.IntN(4)))
	case 6:
		return d.named(f.Name)
	case 7:
		if f.Items != nil {
			item := d.changed(*f.Items)
			item.Name, item.Required = "", false
			f.Items = &item
		}
		f.Fields = d.changedAll(f.Fields)
	default:
	}
	return f
}

func widened(f *float64, by float64) *float64 {
	if f == nil {
		return nil
	}
	n := *f + by
	return &n
}

func (d fieldDice) changedAll(fields []entity.Field) []entity.Field {
	var out []entity.Field
	for _, f := range fields {
		if len(fields) == 1 || !d.chance(5) {
			out = append(out, d.changed(f))
		}
	}
	if len(fields) > 0 && d.chance(20) {
		out = append(out, d.named("more"))
	}
	return out
}

// Content that fits a type also fits the next version of the type, unless the comparison marks a change as breaking.
func TestCompareTypes_HarmlessChangesBreakNothing(t *testing.T) {
	t.Parallel()
	const types, values = 4_000, 12
	held, broke, said := 0, 0, 0
	for seed := range uint64(types) {
		d := fieldDice{rand.New(rand.NewPCG(seed, 23))}
		old := d.entityType()
		latest := old
		latest.Fields = d.changedAll(old.Fields)
		for i := range latest.Fields {
			f := &latest.Fields[i]
			if f.Name != "more" || !d.chance(60) {
				continue
			}
			if raw, err := json.Marshal(d.value(f, 1)); err == nil && spec.CheckField(*f, raw) == nil {
				f.Default = raw
			}
		}
		changes := spec.CompareTypes(old, latest)
		breaks := slices.ContainsFunc(changes, func(c spec.FieldChange) bool { return c.Breaks })
		broken := false
		for range values {
			content := d.content(t, old)
			for _, partial := range []bool{false, true} {
				if spec.CheckContent(old, content, partial) != nil {
					continue
				}
				err := spec.CheckContent(latest, withDefaults(t, content, old, latest), partial)
				if breaks {
					broken = broken || err != nil
					continue
				}
				require.NoError(t, err, "seed %d: %v does not say that %s breaks with %s -> %s", seed, changes, content, spec.ContentSchema(old), spec.ContentSchema(latest))
				held++
			}
		}
		if breaks {
			said++
		}
		if broken {
			broke++
		}
	}
	require.Greater(t, held, types)
	require.Greater(t, said, types/10)
	require.Greater(t, broke, said/3, "changes marked as breaking must often break some content")
}

func (d fieldDice) content(t *testing.T, entityType entity.Type) json.RawMessage {
	t.Helper()
	object := map[string]any{}
	for i := range entityType.Fields {
		if f := &entityType.Fields[i]; f.Required || d.chance(70) {
			object[f.Name] = d.value(f, 1)
		}
	}
	raw, err := json.Marshal(object)
	require.NoError(t, err)
	return raw
}

// withDefaults adds the defaults of new required fields to a content.
func withDefaults(t *testing.T, content json.RawMessage, old, latest entity.Type) json.RawMessage {
	t.Helper()
	var object map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(content, &object))
	for _, f := range latest.Fields {
		isNew := !slices.ContainsFunc(old.Fields, func(was entity.Field) bool { return was.Name == f.Name })
		if isNew && f.Required && len(f.Default) > 0 && object[f.Name] == nil {
			object[f.Name] = f.Default
		}
	}
	raw, err := json.Marshal(object)
	require.NoError(t, err)
	return raw
}
