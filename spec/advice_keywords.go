package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/clip"
	"github.com/jig-run/jig/internal/schema"
	"github.com/jig-run/jig/internal/suggest"
	"github.com/jig-run/jig/internal/toolname"
)

// The problems of JSON Schemas that Advise finds.
const (
	ProblemNoEffect   ProblemCode = "NO_EFFECT"
	ProblemBadDefault ProblemCode = "BAD_DEFAULT"
)

// maxSchemaAdvice limits how many problems of one schema are listed.
const maxSchemaAdvice = 50

// placedSchema is a JSON Schema in a document. Its numbers are json.Number.
type placedSchema struct {
	path   string
	schema any
}

// schemaInput records the schema in the input of a call, if the tool takes one: the form of a question, or the form of a model's answer.
func (d *decoder) schemaInput(tool, path string, input json.RawMessage) {
	var given struct{ Schema json.RawMessage }
	if !slices.Contains([]string{toolname.PersonAsk, toolname.PromptDirect, toolname.PromptSkill}, tool) || json.Unmarshal(input, &given) != nil {
		return
	}
	if value, ok := decodeLoosely(given.Schema); ok {
		d.schemas = append(d.schemas, placedSchema{keyPath(path, "schema"), value})
	}
}

// schemas reports keywords without effect, and values that their own schemas refuse, in the schemas of a document.
func (a *advisor) schemas(doc *Document) {
	for _, one := range doc.schemas {
		if !isLatestDraft(one.schema) {
			continue // its keywords mean something else
		}
		l := schemaAdvisor{}
		l.schema(one.schema, one.path, "")
		l.ownValues(one.schema)
		for _, p := range l.problems {
			p.Document, p.Severity = doc.Path, SeverityWarning
			p.Line, p.Column = doc.Position(p.Path)
			a.problems = append(a.problems, p)
		}
	}
}

// isLatestDraft reports whether a schema is of draft 2020-12, which is the default.
func isLatestDraft(schema any) bool {
	object, _ := schema.(map[string]any) //nolint:errcheck // true and false are schemas of every draft
	draft, given := object["$schema"].(string)
	return !given || strings.Contains(draft, "2020-12")
}

// schemaAdvisor examines one schema.
type schemaAdvisor struct {
	problems []Problem
	values   []ownValue
}

// ownValue is a value in a schema that should fit the schema around it, such as a default.
type ownValue struct {
	// word says what the value is. hint says what to do if it does not fit.
	word, hint string
	// path is the value's place in the document. pointer leads from the root to the schema around the value.
	path, pointer string
	value         any
}

func (l *schemaAdvisor) say(path string, code ProblemCode, hint, format string, args ...any) {
	if len(l.problems) < maxSchemaAdvice {
		l.problems = append(l.problems, Problem{Path: path, Code: code, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
}

// schema examines a schema at a path of the document, and the schemas in it.
func (l *schemaAdvisor) schema(v any, path, pointer string) {
	s, ok := v.(map[string]any)
	if !ok {
		return
	}
	types := typesOf(s)
	for _, key := range slices.Sorted(maps.Keys(s)) {
		value, at, below := s[key], keyPath(path, key), pointer+"/"+url.PathEscape(pointerToken(key))
		k, known := keywords[key]
		switch {
		case strings.HasPrefix(key, "x-"):
		case !known:
			l.unknown(s, key, at)
		case len(types) > 0 && k.types != "" && !slices.ContainsFunc(strings.Fields(k.types), func(t string) bool { return slices.Contains(types, t) }):
			l.say(at, ProblemNoEffect, "remove it, or change the type", "%s has no effect on a value of type %s", key, strings.Join(types, " or "))
		}
		switch k.holds {
		case holdsSchema:
			l.schema(value, at, below)
		case holdsSchemas:
			for i, item := range list(value) {
				l.schema(item, indexPath(at, i), below+"/"+strconv.Itoa(i))
			}
		case holdsNamedSchemas:
			named, _ := value.(map[string]any) //nolint:errcheck // the metaschema refuses another type
			for _, name := range slices.Sorted(maps.Keys(named)) {
				l.schema(named[name], keyPath(at, name), below+"/"+url.PathEscape(pointerToken(name)))
			}
		case holdsValue:
			l.own(ownValue{"default", "change the default or its schema: a call without the value would be refused", at, pointer, value})
		case holdsValues:
			for i, item := range list(value) {
				l.own(ownValue{"value", "change it or the schema: nobody can give this value", indexPath(at, i), pointer, item})
			}
		case holdsFormat:
			l.format(value, at)
		case holdsNone:
		}
	}
}

// own notes a value that should fit its schema. A value with a template is not known.
func (l *schemaAdvisor) own(v ownValue) {
	if text, err := json.Marshal(v.value); err == nil && !strings.Contains(string(text), "${") {
		l.values = append(l.values, v)
	}
}

// typesOf returns the types that a schema names. It is empty if there are none.
func typesOf(s map[string]any) []string {
	var types []string
	for _, one := range append(list(s["type"]), s["type"]) {
		if name, ok := one.(string); ok {
			types = append(types, name)
		}
	}
	return types
}

// unknown reports a keyword that JSON Schema does not have.
func (l *schemaAdvisor) unknown(s map[string]any, key, at string) {
	if key == "nullable" {
		l.say(at, ProblemNoEffect, nullHint(s), "nullable is OpenAPI 3.0 and has no effect here")
		return
	}
	if instead := elsewhere[key]; instead != "" {
		from, hint, _ := strings.Cut(instead, ": ")
		l.say(at, ProblemNoEffect, hint, "%s is %s and has no effect here", key, from)
		return
	}
	hint := "remove it, or begin its name with x- if it is a note"
	switch {
	case s[key] == nil && strings.Contains(key, " "):
		hint = "quote the text before it: inside { … } a comma begins a new key"
	case len(l.problems) < maxSchemaAdvice:
		hint = suggest.Hint(key, slices.Sorted(maps.Keys(keywords)), hint)
	}
	l.say(at, ProblemNoEffect, hint, "JSON Schema has no keyword %q, so it has no effect", clip.Line(key, maxShown))
}

// nullHint says how JSON Schema writes that a value may be null.
func nullHint(s map[string]any) string {
	if s["nullable"] != true {
		return "remove it"
	}
	hint := `write anyOf: [ …, {type: "null"}]`
	if types := typesOf(s); slices.Contains(types, "null") {
		hint = "remove it"
	} else if len(types) > 0 {
		hint = "write type: [" + strings.Join(types, ", ") + `, "null"]`
	}
	if s["enum"] != nil && !slices.Contains(list(s["enum"]), nil) {
		hint += ", and add null to enum"
	}
	return hint
}

// format reports a format that is nearly the name of another one.
func (l *schemaAdvisor) format(value any, at string) {
	name, _ := value.(string) //nolint:errcheck // the metaschema refuses another type
	if slices.Contains(formats, name) || slices.Contains(notedFormats, name) {
		return
	}
	if hint := suggest.Quoted(name, formats); hint != "" {
		l.say(at, ProblemNoEffect, hint, "there is no format %q", clip.Line(name, maxShown))
	}
}

// ownValues reports the defaults and enumerated values that the schemas around them refuse. All are checked together, because compiling a
// schema takes long.
func (l *schemaAdvisor) ownValues(root any) {
	object, ok := root.(map[string]any)
	if !ok || len(l.values) == 0 {
		return
	}
	object = maps.Clone(object)
	id, given := object["$id"].(string)
	if !given {
		id = "jig:///own.json"
		object["$id"] = id
	}
	properties, instance := map[string]any{}, map[string]any{}
	for i, v := range l.values {
		name := strconv.Itoa(i)
		properties[name], instance[name] = map[string]any{"$ref": id + "#" + v.pointer}, v.value
	}
	raw, err := json.Marshal(map[string]any{"$defs": map[string]any{"own": object}, "properties": properties})
	if err != nil {
		return
	}
	compiled, err := schema.NewCompiler(schema.Options{}).Compile(raw)
	if err != nil { // the document is refused, or too large to check this
		return
	}
	reported := map[string]bool{}
	for _, v := range violationsOf(compiled.ValidateValue(instance)) {
		name, inner, _ := strings.Cut(strings.TrimPrefix(v.Pointer, "/"), "/")
		i, err := strconv.Atoi(name)
		if err != nil || i >= len(l.values) || reported[name] {
			continue
		}
		reported[name] = true
		own, where := l.values[i], ""
		if inner != "" {
			where = "/" + inner + " "
		}
		text, err := json.Marshal(own.value)
		if err != nil {
			continue
		}
		l.say(own.path, ProblemBadDefault, own.hint, "the %s %s does not fit its schema: %s%s", own.word, clip.Line(string(text), maxShown), where, v.Message)
	}
}

func violationsOf(err error) []jig.Violation {
	if err == nil {
		return nil
	}
	return jig.AsError(err).Violations
}

// holds says what the value of a keyword contains.
type holds int

const (
	holdsNone holds = iota
	holdsSchema
	holdsSchemas
	holdsNamedSchemas
	// holdsValue is a default, and holdsValues is a list of values that may be given.
	holdsValue
	holdsValues
	holdsFormat
)

// keyword is a keyword of JSON Schema 2020-12. types are the types of values that it restricts; it is empty if that is every type.
type keyword struct {
	holds holds
	types string
}

const (
	ofTexts, ofNumbers, ofLists, ofObjects = "string", "number integer", "array", "object"
)

// keywords are the keywords of JSON Schema 2020-12, and definitions, which references of earlier drafts use.
var keywords = map[string]keyword{
	"$schema": {}, "$vocabulary": {}, "$id": {}, "$ref": {}, "$anchor": {}, "$dynamicRef": {}, "$dynamicAnchor": {}, "$comment": {},
	"$defs": {holdsNamedSchemas, ""}, "definitions": {holdsNamedSchemas, ""},
	"title": {}, "description": {}, "deprecated": {}, "readOnly": {}, "writeOnly": {}, "examples": {}, "type": {}, "const": {},
	"default": {holdsValue, ""}, "enum": {holdsValues, ""},
	"allOf": {holdsSchemas, ""}, "anyOf": {holdsSchemas, ""}, "oneOf": {holdsSchemas, ""},
	"not": {holdsSchema, ""}, "if": {holdsSchema, ""}, "then": {holdsSchema, ""}, "else": {holdsSchema, ""},

	"format": {holdsFormat, ""}, "contentEncoding": {}, "contentMediaType": {}, "contentSchema": {holdsSchema, ""},
	"minLength": {holdsNone, ofTexts}, "maxLength": {holdsNone, ofTexts}, "pattern": {holdsNone, ofTexts},
	"minimum": {holdsNone, ofNumbers}, "maximum": {holdsNone, ofNumbers}, "multipleOf": {holdsNone, ofNumbers},
	"exclusiveMinimum": {holdsNone, ofNumbers}, "exclusiveMaximum": {holdsNone, ofNumbers},

	"items": {holdsSchema, ofLists}, "prefixItems": {holdsSchemas, ofLists}, "contains": {holdsSchema, ofLists}, "unevaluatedItems": {holdsSchema, ofLists},
	"minItems": {holdsNone, ofLists}, "maxItems": {holdsNone, ofLists}, "uniqueItems": {holdsNone, ofLists},
	"minContains": {holdsNone, ofLists}, "maxContains": {holdsNone, ofLists},

	"properties": {holdsNamedSchemas, ofObjects}, "patternProperties": {holdsNamedSchemas, ofObjects}, "dependentSchemas": {holdsNamedSchemas, ofObjects},
	"additionalProperties": {holdsSchema, ofObjects}, "unevaluatedProperties": {holdsSchema, ofObjects}, "propertyNames": {holdsSchema, ofObjects},
	"required": {holdsNone, ofObjects}, "dependentRequired": {holdsNone, ofObjects},
	"minProperties": {holdsNone, ofObjects}, "maxProperties": {holdsNone, ofObjects},
}

// elsewhere says where keywords come from that other versions have, and what to write instead.
var elsewhere = map[string]string{
	"example": "OpenAPI 3.0: write examples: [ … ]", "discriminator": "OpenAPI: remove it, or give the property a const in each branch of oneOf",
	"xml": "OpenAPI: remove it", "externalDocs": "OpenAPI: say it in the description",
	"id": "JSON Schema draft 4: write $id", "dependencies": "JSON Schema draft 7: write dependentRequired or dependentSchemas",
	"additionalItems": "JSON Schema draft 7: write prefixItems and items",
	"$recursiveRef":   "JSON Schema 2019-09: write $dynamicRef", "$recursiveAnchor": "JSON Schema 2019-09: write $dynamicAnchor",
	"divisibleBy": "JSON Schema draft 3: write multipleOf", "disallow": "JSON Schema draft 3: write not", "extends": "JSON Schema draft 3: write allOf",
	"optional": "no keyword of JSON Schema: leave the name out of required instead",
}

// formats are the formats of JSON Schema 2020-12. notedFormats are those of OpenAPI, which only tell people something.
var (
	formats = []string{
		"date", "date-time", "duration", "email", "hostname", "idn-email", "idn-hostname", "ipv4", "ipv6", "iri", "iri-reference", "json-pointer",
		"regex", "relative-json-pointer", "time", "uri", "uri-reference", "uri-template", "uuid",
	}
	notedFormats = []string{"binary", "byte", "char", "decimal", "double", "float", "int16", "int32", "int64", "int8", "password", "uint32", "uint64", "uint8"}
)
