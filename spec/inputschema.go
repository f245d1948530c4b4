package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/jig-run/jig"
)

// schemaURL is the URL under which a document's own schema is compiled. Nothing is ever loaded from it.
const schemaURL = "jig:schema"

// noLoader refuses every reference that leaves the document.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("references to other documents are not followed: " + url)
}

// checkSchema checks that the value at a path is a JSON Schema (2020-12) with an object at the top.
func (d *decoder) checkSchema(path string, raw json.RawMessage) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		d.at(path, ProblemBadSchema, "", "not JSON: %v", err)
		return
	}
	top, ok := value.(map[string]any)
	if !ok {
		d.at(path, ProblemBadSchema, "write a mapping with type: object", "the schema must be a mapping")
		return
	}
	if kind, given := top["type"]; !given || kind != "object" {
		d.at(keyPath(path, "type"), ProblemBadSchema, "add type: object", "the schema must describe an object")
	}
	d.compileSchema(path, value)
	if err := jig.CheckMarks(raw); err != nil {
		e := jig.AsError(err)
		d.at(path, ProblemBadSchema, e.Hint, "%s", e.Message)
	}
}

// checkAnySchema checks that the value at a path is a JSON Schema (2020-12) for any type of value.
func (d *decoder) checkAnySchema(path string, raw json.RawMessage) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		d.at(path, ProblemBadSchema, "", "not JSON: %v", err)
		return
	}
	d.compileSchema(path, value)
}

func (d *decoder) compileSchema(path string, value any) {
	compiler := jsonschema.NewCompiler()
	compiler.UseRegexpEngine(func(source string) (jsonschema.Regexp, error) { return d.patterns.Compile(source) })
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(schemaURL, value); err != nil {
		d.at(path, ProblemBadSchema, "", "%v", err)
		return
	}
	_, err := compiler.Compile(schemaURL)
	var invalid *jsonschema.SchemaValidationError
	var violations *jsonschema.ValidationError
	switch {
	case err == nil:
	case errors.As(err, &invalid) && errors.As(invalid.Err, &violations):
		d.schemaViolations(path, violations)
	default:
		d.at(path, ProblemBadSchema, "copy what it refers to into its own $defs", "%s", strings.ReplaceAll(err.Error(), schemaURL+"#", ""))
	}
}

// schemaViolations reports the innermost causes, one per place, because further causes at a place are branches of the same choice.
func (d *decoder) schemaViolations(path string, v *jsonschema.ValidationError) {
	if len(v.Causes) > 0 {
		for _, cause := range v.Causes {
			d.schemaViolations(path, cause)
		}
		return
	}
	at := path
	for _, step := range v.InstanceLocation {
		if i, err := strconv.Atoi(step); err == nil && d.places[indexPath(at, i)] != nil {
			at = indexPath(at, i)
			continue
		}
		at = keyPath(at, step)
	}
	if slices.ContainsFunc(d.problems, func(p Problem) bool { return p.Path == at }) {
		return
	}
	d.at(at, ProblemBadSchema, "see JSON Schema 2020-12", "not a valid schema: %s", v.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
}
