package spec

import (
	"math/big"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/suggest"
)

// neededKeys returns the keys that a type requires.
func neededKeys(t entity.FieldType) []string {
	switch t { //nolint:exhaustive // the others need none
	case entity.FieldEnum:
		return []string{"options"}
	case entity.FieldRelation:
		return []string{"target"}
	case entity.FieldObject:
		return []string{"fields"}
	case entity.FieldArray:
		return []string{"items"}
	}
	return nil
}

// neededHint shows how to write a key that a type requires.
func neededHint(key string) string {
	return map[string]string{
		"options": "add e.g. options: [low, high]", "target": "add the name of an entity type, e.g. target: module",
		"fields": "add e.g. fields: [{name: city, type: text}]", "items": "add e.g. items: {type: text}",
	}[key]
}

// entityFields converts fields from their written form. depth is their nesting depth; it is 1 for the fields of the entity itself.
func (d *decoder) entityFields(path string, heads []fieldHead, depth int) []entity.Field {
	fields := make([]entity.Field, 0, len(heads))
	for i, h := range heads {
		at := indexPath(path, i)
		f := d.fieldShape(at, h.fieldShape, depth)
		f.Name, f.Required, f.Task = h.Name, h.Required, h.Task
		if d.has(at + ".default") {
			f.Default = h.Default
		}
		d.checkFieldHead(at, f, depth)
		fields = append(fields, f)
	}
	d.unique(path, "name", len(heads), func(i int) string { return heads[i].Name })
	return fields
}

// checkFieldHead checks that a nested field has neither a default nor a task, and that a default fits its field.
func (d *decoder) checkFieldHead(path string, f entity.Field, depth int) {
	for _, key := range []string{"default", "task"} {
		if depth > 1 && d.has(path+"."+key) {
			d.at(path+"."+key, ProblemBadShape, "move it to the outermost field", "only a field of the entity itself has a %s", key)
			return
		}
	}
	if len(f.Default) == 0 || !slices.Contains(entity.FieldTypes(), f.Type) {
		return
	}
	f.Name = ""
	if err := CheckField(f, f.Default); err != nil {
		e := jig.AsError(err)
		d.at(path+".default", ProblemBadValue, "give a value that fits the field", "%s%s", e.Message, pointerText(e.Field))
	}
}

func pointerText(pointer string) string {
	if pointer == "" {
		return ""
	}
	return " (at " + pointer + ")"
}

// fieldShape converts the keys that fields and items share from their written form, and checks them against the type.
func (d *decoder) fieldShape(path string, h fieldShape, depth int) entity.Field {
	f := entity.Field{
		Type: h.Type, Label: h.Label, Display: h.Display, Description: h.Description, Options: h.Options,
		Minimum: h.Minimum, Maximum: h.Maximum, Integer: h.Integer, MinLength: h.MinLength, MaxLength: h.MaxLength,
		Pattern: h.Pattern, Time: h.Time, Target: h.Target, Many: h.Many,
	}
	if depth > MaxFieldDepth {
		d.at(path, ProblemTooDeep, "move the inner fields into an entity type of their own, with a relation to it", "fields are nested more than %d levels deep", MaxFieldDepth)
		return f
	}
	f.Fields = d.innerFields(path, h, depth)
	if h.Items != nil {
		item := d.fieldShape(path+".items", h.Items.fieldShape, depth+1)
		f.Items = &item
	}
	if slices.Contains(entity.FieldTypes(), h.Type) {
		d.checkTypeKeys(path, f)
	}
	d.checkBounds(path, f)
	d.checkOptions(path, f.Options)
	if _, err := d.patterns.Compile(f.Pattern); err != nil {
		d.at(path+".pattern", ProblemBadValue, "write a regular expression of RE2 (no look-ahead, no back references)", "the pattern does not compile: %v", err)
	}
	return f
}

func (d *decoder) innerFields(path string, h fieldShape, depth int) []entity.Field {
	if len(h.Fields) == 0 {
		return nil
	}
	return d.entityFields(path+".fields", h.Fields, depth+1)
}

// checkTypeKeys checks that a field has the keys that its type requires and no keys that belong to other types.
func (d *decoder) checkTypeKeys(path string, f entity.Field) {
	own, needed := typeKeys(f.Type), neededKeys(f.Type)
	for _, key := range ownKeys() {
		if d.has(path+"."+key) && !slices.Contains(own, key) {
			d.at(path+"."+key, ProblemBadShape, "remove it", "a field of type %s has no %s; %s has", f.Type, key, typesWith(key))
		}
	}
	for _, key := range needed {
		if !d.has(path + "." + key) {
			d.at(path+"."+key, ProblemMissingKey, neededHint(key), "a field of type %s needs %s", f.Type, key)
		}
	}
	if variants := Displays(f.Type); f.Display != "" && !slices.Contains(variants, f.Display) {
		d.at(path+".display", ProblemBadValue, "use "+suggest.Or(variants), "%q is not a display of type %s", f.Display, f.Type)
	}
	for _, key := range []string{"min_length", "max_length"} {
		if f.Type == entity.FieldRelation && !f.Many && d.has(path+"."+key) {
			d.at(path+"."+key, ProblemBadShape, "remove it, or add many: true", "a relation to a single entity has no number of items")
		}
	}
}

// checkBounds refuses bounds that allow no value.
func (d *decoder) checkBounds(path string, f entity.Field) {
	if f.Minimum != nil && f.Maximum != nil && *f.Minimum > *f.Maximum {
		d.at(path+".maximum", ProblemOutOfRange, "make it the larger of the two", "the maximum %s is less than the minimum %s", shortNumber(*f.Maximum), shortNumber(*f.Minimum))
	}
	if f.MinLength != nil && f.MaxLength != nil && *f.MinLength > *f.MaxLength {
		d.at(path+".max_length", ProblemOutOfRange, "make it the larger of the two", "max_length %d is less than min_length %d", *f.MaxLength, *f.MinLength)
	}
	d.checkExact(path, "minimum", f.Minimum)
	d.checkExact(path, "maximum", f.Maximum)
}

// checkExact refuses a bound if a float64 cannot hold its written value exactly.
func (d *decoder) checkExact(path, key string, bound *float64) {
	n := d.places[path+"."+key]
	if bound == nil || n == nil || n.kind != kindInt {
		return
	}
	if exact, ok := new(big.Rat).SetString(n.text); ok && exact.Cmp(decimal(bound)) != 0 {
		d.at(path+"."+key, ProblemOutOfRange, "use a rounder number", "%s has too many digits for a limit", n.text)
	}
}

func (d *decoder) checkOptions(path string, options []string) {
	seen := map[string]bool{}
	for i, option := range options {
		switch at := indexPath(path+".options", i); {
		case option == "" || len(option) > 256:
			d.at(at, ProblemOutOfRange, "use 1 to 256 bytes", "this option has %d bytes", len(option))
		case seen[option]:
			d.at(at, ProblemDuplicateID, "remove one of them", "the option %q is listed twice", option)
		}
		seen[option] = true
	}
}
