package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/jig-run/jig/internal/schema"
)

// personSchema is the schema of P9. It has the usual keywords, a union, a reference, and a list of any length.
const personSchema = `{
	"type": "object",
	"properties": {
		"name": {"type": "string", "minLength": 1},
		"age": {"type": "integer", "minimum": 0, "maximum": 150},
		"role": {"enum": ["reader", "writer"]},
		"tags": {"type": "array", "items": {"type": "string"}, "maxItems": 100000},
		"size": {"anyOf": [{"type": "number"}, {"type": "null"}]},
		"home": {"$ref": "#/$defs/address"}
	},
	"required": ["name", "age"],
	"additionalProperties": false,
	"$defs": {"address": {
		"type": "object", "properties": {"street": {"type": "string"}}, "required": ["street"], "additionalProperties": false
	}}
}`

// person returns a document that matches personSchema. The number of tags makes it as large as a typical or a large input.
func person(tags int) []byte {
	list := make([]string, tags)
	for i := range list {
		list[i] = fmt.Sprintf(`"tag number %d"`, i)
	}
	return fmt.Appendf(nil, `{"name":"Ana","age":41,"role":"writer","size":1.5,"home":{"street":"Long Street 7"},"tags":[%s]}`, strings.Join(list, ","))
}

// validation measures P9: validating a document from its bytes against a compiled schema, compared with the library alone.
func validation(ctx context.Context, b *bench) ([]row, error) {
	ours, err := schema.NewCompiler(schema.Options{ExactNumbers: true}).Compile([]byte(personSchema))
	if err != nil {
		return nil, fmt.Errorf("compile the schema: %w", err)
	}
	raw, err := rawSchema(personSchema)
	if err != nil {
		return nil, err
	}
	var list []contender
	for _, tags := range []int{2, 1000} {
		document := person(tags)
		list = append(list, contender{
			what: fmt.Sprintf("a document of %d bytes", len(document)),
			ours: func(context.Context) error { return ours.Validate(document) },
			raws: func(context.Context) error {
				value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
				if err != nil {
					return err //nolint:wrapcheck // as above
				}
				return raw.Validate(value)
			},
		})
	}
	return b.inTurns(ctx, "p9", "validation against a compiled schema", "the library", 1.1, list)
}

// rawSchema compiles a schema with the library alone.
func rawSchema(source string) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(source))
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("bench.json", document); err != nil {
		return nil, fmt.Errorf("add the schema: %w", err)
	}
	compiled, err := c.Compile("bench.json")
	if err != nil {
		return nil, fmt.Errorf("compile the schema with the library: %w", err)
	}
	return compiled, nil
}
