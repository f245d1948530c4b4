package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/pattern"
)

// FieldFromSchema makes a field from a JSON Schema (2020-12). From a schema that [FieldSchema] has written, it makes a field that accepts
// the same values. From a schema written by hand, it makes a field if fields can express the schema. It reads such a schema strictly: an
// object without additionalProperties has no further members, formats are asserted (date, date-time, email; uri and url mean http or https
// only), integers are whole, and a const of text is an enum with one option. Anything that a field cannot express is an INVALID_INPUT that
// names it, with a JSON pointer into the schema.
func FieldFromSchema(name string, schema json.RawMessage) (entity.Field, error) {
	v, err := readJSON(schema)
	if err != nil {
		return entity.Field{}, jig.Errorf(jig.CodeInvalidInput, "the schema of %s cannot be read: %w", name, err)
	}
	if name != "" && !fieldNamePattern.MatchString(name) {
		return entity.Field{}, jig.Errorf(jig.CodeInvalidInput, "%s is not the name of a field", clipped(name)).WithField("name").
			WithHint(formOf("variable").hint)
	}
	return fieldFrom(name, "", v, 1)
}

// fieldNamePattern matches the names of fields that the `spec` tags allow.
var fieldNamePattern = regexp.MustCompile(`^[a-z][a-zA-Z0-9_]{0,63}$`)

// schemaReader converts one schema to a field. left has the keywords that it has not used yet.
type schemaReader struct {
	at    string
	left  jsonObject
	field entity.Field
	depth int
}

func fieldFrom(name, at string, v any, depth int) (entity.Field, error) {
	o, ok := v.(jsonObject)
	r := &schemaReader{at: at, left: slices.Clone(o), field: entity.Field{Name: name}, depth: depth}
	switch {
	case !ok:
		return r.field, r.fail("", "a schema that is %s cannot be said of a field", jsonKind(v))
	case depth > MaxFieldDepth:
		return r.field, r.fail("", "fields nest deeper than %d levels", MaxFieldDepth)
	}
	if err := r.notes(); err != nil {
		return r.field, err
	}
	if err := r.values(); err != nil {
		return r.field, err
	}
	for _, m := range r.left {
		if !strings.HasPrefix(m.key, "x-") {
			return r.field, r.fail(m.key, "%s cannot be said of a field of type %s", m.key, r.field.Type)
		}
	}
	if len(r.field.Default) > 0 {
		bare := r.field
		bare.Name = ""
		if err := CheckField(bare, r.field.Default); err != nil {
			return r.field, r.fail("default", "the default does not fit: %s", jig.AsError(err).Message)
		}
	}
	return r.field, nil
}

// fail returns an error about a keyword of the schema.
func (r *schemaReader) fail(key, format string, args ...any) error {
	at := r.at
	if key != "" {
		at += "/" + pointerToken(key)
	}
	return jig.Errorf(jig.CodeInvalidInput, format, args...).WithField(at).WithHint("say it as a field, or check it in a task")
}

// take removes a keyword and returns its value.
func (r *schemaReader) take(key string) (any, bool) {
	for i, m := range r.left {
		if m.key == key {
			r.left = slices.Delete(r.left, i, i+1)
			return m.value, true
		}
	}
	return nil, false
}

// taken is like take for a value of type T.
func taken[T any](r *schemaReader, key, want string) (value T, given bool, err error) {
	v, given := r.take(key)
	if !given {
		return value, false, nil
	}
	value, ok := v.(T)
	if !ok {
		return value, true, r.fail(key, "%s must be %s, not %s", key, want, jsonKind(v))
	}
	return value, true, nil
}

// notes reads the keywords that do not restrict values.
func (r *schemaReader) notes() error {
	for _, key := range []string{"$schema", "$id", "$comment", "$anchor", "examples", "deprecated", "readOnly", "writeOnly"} {
		r.take(key)
	}
	if v, given := r.take("default"); given {
		r.field.Default = writeJSON(v)
	}
	var err error
	if r.field.Label, _, err = taken[string](r, "title", "text"); err != nil {
		return err
	}
	if r.field.Description, _, err = taken[string](r, "description", "text"); err != nil {
		return err
	}
	own, _, err := taken[jsonObject](r, fieldKey, "an object")
	if err != nil {
		return err
	}
	to := map[string]*string{"display": &r.field.Display, "target": &r.field.Target, "task": &r.field.Task}
	for _, m := range own {
		text, ok := m.value.(string)
		switch {
		case to[m.key] == nil:
			return r.fail(fieldKey, "a field has no %s there; known are display, target and task", clipped(m.key))
		case !ok:
			return r.fail(fieldKey, "%s must be text, not %s", m.key, jsonKind(m.value))
		}
		*to[m.key] = text
	}
	return nil
}

// values reads the keywords that restrict values.
func (r *schemaReader) values() error {
	kind, err := r.kind()
	if err != nil {
		return err
	}
	switch kind {
	case "string":
		err = r.text()
	case "number", "integer":
		r.field.Type, r.field.Integer = entity.FieldNumber, kind == "integer"
		err = r.number()
	case "boolean":
		r.field.Type = entity.FieldBoolean
	case "object":
		r.field.Type = entity.FieldObject
		err = r.object()
	case "array":
		err = r.array()
	default:
		return r.fail("type", "values of type %s cannot be said of a field", kind)
	}
	switch {
	case err != nil:
		return err
	case r.field.Target != "" && r.field.Type != entity.FieldRelation:
		return r.fail(fieldKey, "only ids of entities have a target")
	case r.field.Display != "" && !slices.Contains(Displays(r.field.Type), r.field.Display):
		return r.fail(fieldKey, "%s is no display of %s", clipped(r.field.Display), r.field.Type)
	}
	return nil
}

// kind returns the only type of the values.
func (r *schemaReader) kind() (string, error) {
	v, given := r.take("type")
	switch kind := v.(type) {
	case string:
		return kind, nil
	case []any:
		if len(kind) == 1 {
			if one, ok := kind[0].(string); ok {
				return one, nil
			}
		}
		return "", r.fail("type", "several types (%s) cannot be said of a field", writeJSON(v))
	}
	if given {
		return "", r.fail("type", "type must be text, not %s", jsonKind(v))
	}
	for _, key := range []string{"enum", "const"} {
		v, _ := r.left.get(key)
		options, isList := v.([]any)
		if _, isText := v.(string); isText && key == "const" || isList && key == "enum" && len(options) > 0 {
			return "string", nil // options checks that all of them are texts
		}
	}
	for _, m := range r.left {
		if !strings.HasPrefix(m.key, "x-") {
			return "", r.fail(m.key, "%s without a type cannot be said of a field", m.key)
		}
	}
	return "", r.fail("type", "a schema without a type cannot be said of a field")
}

func (r *schemaReader) text() error {
	if found, err := r.options(); found || err != nil {
		return err
	}
	format, formatted, err := taken[string](r, "format", "text")
	if err != nil {
		return err
	}
	like, _ := r.left.get("pattern")
	for _, form := range textForms() {
		if r.field.Target == "" && form.field.Type == entity.FieldRelation {
			continue // without a target it is a plain text
		}
		if formatted && format == form.format || !formatted && like == form.pattern {
			r.field.Type, r.field.Time = form.field.Type, form.field.Time
			return r.same(form.field)
		}
	}
	if formatted {
		return r.fail("format", "the format %s cannot be said of a field", clipped(format))
	}
	r.field.Type = entity.FieldText
	if r.field.Pattern, _, err = taken[string](r, "pattern", "text"); err != nil {
		return err
	}
	if _, err := pattern.Compile(r.field.Pattern); err != nil {
		return r.fail("pattern", "the pattern %s cannot be used: %v", clipped(r.field.Pattern), err)
	}
	return r.lengths("minLength", "maxLength")
}

// formOfField is a type whose values are texts in a fixed format, with the keywords that identify it in a schema.
type formOfField struct {
	field   entity.Field
	format  string
	pattern any
}

func textForms() []formOfField {
	var all []formOfField
	for _, f := range []entity.Field{
		{Type: entity.FieldDate},
		{Type: entity.FieldDate, Time: true},
		{Type: entity.FieldURL},
		{Type: entity.FieldEmail},
		{Type: entity.FieldPhone},
		{Type: entity.FieldMedia},
		{Type: entity.FieldRelation},
	} {
		form := textFormOf(&f)
		all = append(all, formOfField{field: f, format: form.format, pattern: form.pattern.String()})
		if f.Type == entity.FieldURL {
			all = append(all, formOfField{field: f, format: "url", pattern: form.pattern.String()})
		}
	}
	return all
}

// same takes the keywords that have the same value as in the schema of field f. It leaves keywords with other values.
func (r *schemaReader) same(f entity.Field) error {
	for _, m := range valueSchema(&f, false) {
		if have, given := r.left.get(m.key); given && bytes.Equal(writeJSON(have), writeJSON(m.value)) {
			r.take(m.key)
		}
	}
	return nil
}

// options reads an enum of texts.
func (r *schemaReader) options() (bool, error) {
	values, given, err := taken[[]any](r, "enum", "a list")
	if err != nil {
		return true, err
	}
	if v, constant := r.take("const"); constant && !given {
		values, given = []any{v}, true
	} else if constant {
		return true, r.fail("const", "enum and const together cannot be said of a field")
	}
	if !given {
		return false, nil
	}
	r.field.Type = entity.FieldEnum
	for _, v := range values {
		option, ok := v.(string)
		switch {
		case !ok:
			return true, r.fail("enum", "an option that is %s cannot be said of a field", jsonKind(v))
		case slices.Contains(r.field.Options, option):
			return true, r.fail("enum", "the option %s stands there twice", clipped(option))
		}
		r.field.Options = append(r.field.Options, option)
	}
	if len(r.field.Options) == 0 {
		return true, r.fail("enum", "an enum without options has no values")
	}
	return true, nil
}

func (r *schemaReader) number() error {
	var err error
	if r.field.Minimum, err = r.bound("minimum"); err != nil {
		return err
	}
	if r.field.Maximum, err = r.bound("maximum"); err != nil {
		return err
	}
	if step, given := r.left.get("multipleOf"); given && fmt.Sprint(step) == "1" {
		r.take("multipleOf")
		r.field.Integer = true
	}
	return nil
}

// bound reads a bound of numbers, or returns nil if there is none.
func (r *schemaReader) bound(key string) (*float64, error) {
	literal, given, err := taken[json.Number](r, key, "a number")
	if err != nil || !given {
		return nil, err
	}
	f, err := strconv.ParseFloat(literal.String(), 64)
	exact, ok := new(big.Rat).SetString(literal.String())
	if err != nil || !ok || decimal(&f).Cmp(exact) != 0 {
		return nil, r.fail(key, "%s has more digits than a bound can keep", literal)
	}
	return &f, nil
}

// lengths reads the bounds of a length from these keywords.
func (r *schemaReader) lengths(low, high string) (err error) {
	if r.field.MinLength, err = r.length(low); err != nil {
		return err
	}
	r.field.MaxLength, err = r.length(high)
	return err
}

func (r *schemaReader) length(key string) (*int, error) {
	literal, given, err := taken[json.Number](r, key, "a number")
	if err != nil || !given {
		return nil, err
	}
	n, err := strconv.Atoi(literal.String())
	if err != nil || n < 0 {
		return nil, r.fail(key, "%s must be a whole number", key)
	}
	return &n, nil
}

func (r *schemaReader) object() error {
	properties, _, err := taken[jsonObject](r, "properties", "an object")
	if err != nil {
		return err
	}
	if len(properties) == 0 {
		return r.fail("properties", "an object without properties cannot be said of a field")
	}
	required, _, err := taken[[]any](r, "required", "a list")
	if err != nil {
		return err
	}
	if more, given := r.take("additionalProperties"); given && more != false {
		return r.fail("additionalProperties", "further members of an object cannot be said of a field")
	}
	for _, m := range properties {
		at := r.at + "/properties/" + pointerToken(m.key)
		if !fieldNamePattern.MatchString(m.key) {
			return jig.Errorf(jig.CodeInvalidInput, "%s is not the name of a field", clipped(m.key)).WithField(at).WithHint(formOf("variable").hint)
		}
		f, err := fieldFrom(m.key, at, m.value, r.depth+1)
		if err != nil {
			return err
		}
		f.Required = slices.Contains(required, any(m.key))
		r.field.Fields = append(r.field.Fields, f)
	}
	for _, name := range required {
		if key, ok := name.(string); !ok || !slices.ContainsFunc(properties, func(m jsonMember) bool { return m.key == key }) {
			return r.fail("required", "%s is required and no property", clipped(fmt.Sprint(name)))
		}
	}
	return nil
}

func (r *schemaReader) array() error {
	items, given := r.take("items")
	if !given {
		return r.fail("items", "a list of anything cannot be said of a field")
	}
	if err := r.lengths("minItems", "maxItems"); err != nil {
		return err
	}
	unique, _ := r.left.get("uniqueItems")
	one := jsonObject{{"type", "string"}, {"pattern", relationPatternText}}
	if unique == true && r.field.Target != "" && bytes.Equal(writeJSON(items), writeJSON(one)) {
		r.take("uniqueItems")
		r.field.Type, r.field.Many = entity.FieldRelation, true
		return nil
	}
	if unique == false {
		r.take("uniqueItems")
	}
	r.field.Type = entity.FieldArray
	f, err := fieldFrom("", r.at+"/items", items, r.depth+1)
	r.field.Items = &f
	return err
}
