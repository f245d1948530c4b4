package httpapi

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/jig-run/jig/internal/api"
)

// extensionNames has the value of the tag [api.TagNames] in the OpenAPI document. The isolation suite tries the ids of another tenant there.
const extensionNames = "x-names"

// describeParameters writes what the parameters of an operation name.
func describeParameters(op *huma.Operation, input reflect.Type) {
	for _, field := range reflect.VisibleFields(input) {
		kind, named := field.Tag.Lookup(api.TagNames)
		for _, p := range op.Parameters {
			if named && field.Tag.Get(p.In) == p.Name {
				p.Schema.Extensions = map[string]any{extensionNames: kind}
			}
		}
	}
}

// describeMembers adds what the members of all objects name to the document.
func describeMembers(all huma.Registry) {
	for name, schema := range all.Map() {
		object := all.TypeFromRef("#/components/schemas/" + name)
		for object.Kind() == reflect.Pointer {
			object = object.Elem()
		}
		if object.Kind() != reflect.Struct {
			continue
		}
		for _, field := range reflect.VisibleFields(object) {
			member, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if kind, named := field.Tag.Lookup(api.TagNames); named && schema.Properties[member] != nil {
				schema.Properties[member].Extensions = map[string]any{extensionNames: kind}
			}
		}
	}
}
