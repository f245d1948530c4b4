package spec

import (
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/suggest"
)

// Limits of the fields of an entity type.
const (
	// MaxFieldDepth is how deep fields may nest. A field of the entity itself is at depth 1; the fields of an object and the items of an
	// array are one deeper.
	MaxFieldDepth = 5
	// MaxFields limits the fields of an entity type, including nested ones.
	MaxFields = 500
	// maxURL is the longest URL, in bytes. maxEmail is the longest address (RFC 5321, 4.5.3.1.3, without its angle brackets).
	maxURL, maxEmail = 2_048, 254
)

// The patterns of types whose values are texts of a given form. Patterns match the whole value. They are written so that Go and ECMA-262,
// to which JSON Schema refers, interpret them alike.
const (
	// Years are 0001 to 9999: PostgreSQL has no year 0.
	yearForm = `(?:[0-9]{3}[1-9]|[0-9]{2}[1-9][0-9]|[0-9][1-9][0-9]{2}|[1-9][0-9]{3})`
	leapForm = `(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)`
	dateForm = `(?:` + yearForm + `-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|` +
		leapForm + `-02-29)`
	timeForm = `(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])`

	pathForm = `[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2}`
	hostForm = `[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?)*\.?`
	urlForm  = `[Hh][Tt][Tt][Pp][Ss]?://` + hostForm + `(?::[0-9]{1,5})?(?:/(?:` + pathForm + `)*)?(?:\?(?:` + pathForm + `|\?)*)?(?:#(?:` + pathForm + `|\?)*)?`

	atomForm  = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
	labelForm = `[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?`

	datePatternText   = `^` + dateForm + `$`
	momentPatternText = `^` + dateForm + `T` + timeForm + `$`
	urlPatternText    = `^` + urlForm + `$`
	emailPatternText  = `^` + atomForm + `(?:\.` + atomForm + `)*@` + labelForm + `(?:\.` + labelForm + `)*$`
	// localPatternText limits the local part of an address (RFC 5321, 4.5.3.1.1).
	localPatternText    = `^[^@]{1,64}@`
	phonePatternText    = `^\+[1-9][0-9]{1,14}$`
	mediaPatternText    = `^(?:` + jig.ArtifactPrefix + `[a-z0-9]{26}|` + urlForm + `)$`
	relationPatternText = `^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`
)

var (
	datePattern     = regexp.MustCompile(datePatternText)
	momentPattern   = regexp.MustCompile(momentPatternText)
	urlPattern      = regexp.MustCompile(urlPatternText)
	emailPattern    = regexp.MustCompile(emailPatternText)
	localPattern    = regexp.MustCompile(localPatternText)
	phonePattern    = regexp.MustCompile(phonePatternText)
	mediaPattern    = regexp.MustCompile(mediaPatternText)
	relationPattern = regexp.MustCompile(relationPatternText)
)

// textForm describes the values of a type whose values are texts in a fixed format.
type textForm struct {
	// format is JSON Schema's name for the form; empty if it has none.
	format  string
	pattern *regexp.Regexp
	// limit is the longest value in characters; 0 if the pattern limits the length.
	limit int
	// what describes a value, for messages.
	what string
}

// textFormOf returns the form of a field's values, or the zero form if the type has none.
func textFormOf(f *entity.Field) textForm {
	switch f.Type { //nolint:exhaustive // the values of other types have no form
	case entity.FieldDate:
		if f.Time {
			return textForm{format: "date-time", pattern: momentPattern, what: "a time such as 2026-01-31T12:00:00Z (RFC 3339)"}
		}
		return textForm{format: "date", pattern: datePattern, what: "a date such as 2026-01-31"}
	case entity.FieldURL:
		return textForm{format: "uri", pattern: urlPattern, limit: maxURL, what: "an http or https address such as https://example.com/a"}
	case entity.FieldEmail:
		return textForm{format: "email", pattern: emailPattern, limit: maxEmail, what: "an e-mail address such as ana@example.com"}
	case entity.FieldPhone:
		return textForm{pattern: phonePattern, what: "a phone number such as +4930123456 (E.164)"}
	case entity.FieldMedia:
		return textForm{pattern: mediaPattern, limit: maxURL, what: "an artifact's id (" + jig.ArtifactPrefix + "…) or an http or https address"}
	case entity.FieldRelation:
		return textForm{pattern: relationPattern, what: "an entity's id"}
	}
	return textForm{}
}

// Displays lists the variants in which a type can be shown on forms and pages. The first one is the default. The list is empty for a type
// that does not exist.
func Displays(t entity.FieldType) []string {
	switch t {
	case entity.FieldText:
		return []string{"line", "paragraph", "markdown", "code", "heading"}
	case entity.FieldNumber:
		return []string{"plain", "percent", "rating", "progress", "bytes"}
	case entity.FieldBoolean:
		return []string{"checkbox", "toggle", "yes_no"}
	case entity.FieldDate:
		return []string{"calendar", "relative"}
	case entity.FieldEnum:
		return []string{"select", "radio", "badge"}
	case entity.FieldURL:
		return []string{"link", "preview", "embed"}
	case entity.FieldEmail:
		return []string{"mailto", "plain"}
	case entity.FieldPhone:
		return []string{"tel", "plain"}
	case entity.FieldMedia:
		return []string{"file", "image", "video", "audio"}
	case entity.FieldRelation:
		return []string{"link", "card", "list"}
	case entity.FieldObject:
		return []string{"group", "inline", "json"}
	case entity.FieldArray:
		return []string{"list", "table", "tags"}
	}
	return nil
}

// typeKeys returns the keys that a type has in addition to the keys of every field.
func typeKeys(t entity.FieldType) []string {
	switch t {
	case entity.FieldText:
		return []string{"min_length", "max_length", "pattern"}
	case entity.FieldNumber:
		return []string{"minimum", "maximum", "integer"}
	case entity.FieldDate:
		return []string{"time"}
	case entity.FieldEnum:
		return []string{"options"}
	case entity.FieldRelation:
		return []string{"target", "many", "min_length", "max_length"}
	case entity.FieldObject:
		return []string{"fields"}
	case entity.FieldArray:
		return []string{"items", "min_length", "max_length"}
	case entity.FieldBoolean, entity.FieldURL, entity.FieldEmail, entity.FieldPhone, entity.FieldMedia:
	}
	return nil
}

// ownKeys returns the keys that only some types have, in the order in which problems with them are reported.
func ownKeys() []string {
	var all []string
	for _, t := range entity.FieldTypes() {
		for _, key := range typeKeys(t) {
			if !slices.Contains(all, key) {
				all = append(all, key)
			}
		}
	}
	return all
}

// typesWith names the types that have a key, for hints.
func typesWith(key string) string {
	var names []string
	for _, t := range entity.FieldTypes() {
		if slices.Contains(typeKeys(t), key) {
			names = append(names, string(t))
		}
	}
	return strings.Join(names, " or ")
}

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
			d.at(path+"."+key, ProblemBadShape, "move it to the outermost field", "only a field of the entity itself has a %s", jig.Known(key))
			return
		}
	}
	if len(f.Default) == 0 || !slices.Contains(entity.FieldTypes(), f.Type) {
		return
	}
	f.Name = ""
	if err := CheckField(f, f.Default); err != nil {
		e := jig.AsError(err)
		d.at(path+".default", ProblemBadValue, "give a value that fits the field", "%s%s", e.Words(), jig.Known(pointerText(e.Field)))
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
			d.at(path+"."+key, ProblemBadShape, "remove it", "a field of type %s has no %s; %s has", f.Type, jig.Known(key), jig.Known(typesWith(key)))
		}
	}
	for _, key := range needed {
		if !d.has(path + "." + key) {
			d.at(path+"."+key, ProblemMissingKey, neededHint(key), "a field of type %s needs %s", f.Type, jig.Known(key))
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
