package spec

import (
	"encoding/json"

	"github.com/jig-run/jig/internal/entity"
)

// fieldKey is the keyword that holds the settings of a field that JSON Schema cannot express.
const fieldKey = "x-field"

// ContentSchema returns the JSON Schema (2020-12) of the content of an entity type. It accepts what [CheckContent] accepts without partial,
// whether a validator asserts formats or treats them as annotations. The label of a field becomes its title. The display, the target of a
// relation and the task are kept under x-field, which validators ignore.
func ContentSchema(t entity.Type) json.RawMessage {
	o := jsonObject{{"$schema", "https://json-schema.org/draft/2020-12/schema"}}
	o.text("title", t.Title)
	o.text("description", t.Description)
	return writeJSON(append(o, membersSchema(t.Fields, true)...))
}

// text adds a member, unless its value is empty.
func (o *jsonObject) text(key, value string) {
	if value != "" {
		*o = append(*o, jsonMember{key, value})
	}
}

// fieldSchema returns the schema of a field. If notes is true, the schema includes keywords that do not restrict values, such as the title.
func fieldSchema(f *entity.Field, notes bool) jsonObject {
	o := valueSchema(f, notes)
	if !notes {
		return o
	}
	o.text("title", f.Label)
	o.text("description", f.Description)
	if json.Valid(f.Default) {
		o = append(o, jsonMember{"default", f.Default})
	}
	var own jsonObject
	own.text("display", f.Display)
	own.text("target", f.Target)
	own.text("task", f.Task)
	if len(own) > 0 {
		o = append(o, jsonMember{fieldKey, own})
	}
	return o
}

// valueSchema returns the part of a schema that restricts values.
func valueSchema(f *entity.Field, notes bool) jsonObject {
	switch f.Type {
	case entity.FieldText:
		o := append(jsonObject{{"type", "string"}}, lengths(f, "minLength", "maxLength")...)
		o.text("pattern", f.Pattern)
		return o
	case entity.FieldNumber:
		o := jsonObject{{"type", "number"}}
		if f.Integer {
			o[0].value = "integer"
		}
		if decimal(f.Minimum) != nil {
			o = append(o, jsonMember{"minimum", *f.Minimum})
		}
		if decimal(f.Maximum) != nil {
			o = append(o, jsonMember{"maximum", *f.Maximum})
		}
		return o
	case entity.FieldBoolean:
		return jsonObject{{"type", "boolean"}}
	case entity.FieldEnum:
		options := make([]any, 0, len(f.Options))
		for _, option := range f.Options {
			options = append(options, option)
		}
		return jsonObject{{"type", "string"}, {"enum", options}}
	case entity.FieldObject:
		return membersSchema(f.Fields, notes)
	case entity.FieldArray:
		o := jsonObject{{"type", "array"}}
		if f.Items != nil {
			o = append(o, jsonMember{"items", fieldSchema(f.Items, notes)})
		}
		return append(o, lengths(f, "minItems", "maxItems")...)
	case entity.FieldRelation:
		if f.Many {
			one := jsonObject{{"type", "string"}, {"pattern", relationPatternText}}
			o := jsonObject{{"type", "array"}, {"items", one}, {"uniqueItems", true}}
			return append(o, lengths(f, "minItems", "maxItems")...)
		}
		return formSchema(f)
	case entity.FieldDate, entity.FieldURL, entity.FieldEmail, entity.FieldPhone, entity.FieldMedia:
		return formSchema(f)
	}
	return jsonObject{{"not", jsonObject{}}} // a type that does not exist has no values
}

func lengths(f *entity.Field, low, high string) jsonObject {
	var o jsonObject
	if f.MinLength != nil {
		o = append(o, jsonMember{low, *f.MinLength})
	}
	if f.MaxLength != nil {
		o = append(o, jsonMember{high, *f.MaxLength})
	}
	return o
}

// formSchema returns the schema of a text that has a form.
func formSchema(f *entity.Field) jsonObject {
	form := textFormOf(f)
	o := jsonObject{{"type", "string"}}
	o.text("format", form.format)
	if form.limit > 0 {
		o = append(o, jsonMember{"maxLength", form.limit})
	}
	o.text("pattern", form.pattern.String())
	if f.Type == entity.FieldEmail {
		o = append(o, jsonMember{"allOf", []any{jsonObject{{"pattern", localPatternText}}}})
	}
	return o
}

func membersSchema(fields []entity.Field, notes bool) jsonObject {
	properties, required := jsonObject{}, []any{}
	for i := range fields {
		properties = append(properties, jsonMember{fields[i].Name, fieldSchema(&fields[i], notes)})
		if fields[i].Required {
			required = append(required, fields[i].Name)
		}
	}
	o := jsonObject{{"type", "object"}, {"properties", properties}}
	if len(required) > 0 {
		o = append(o, jsonMember{"required", required})
	}
	return append(o, jsonMember{"additionalProperties", false})
}
