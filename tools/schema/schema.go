package schema

import (
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/jig-run/jig"
)

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
	document any
	options  Options
}

// Object reports whether the schema says that its instances are objects, at its top and nothing else.
func (s *Schema) Object() bool {
	types := s.compiled.Types
	return types != nil && len(types.ToStrings()) == 1 && types.ToStrings()[0] == "object"
}

// Validate checks a JSON text. The error is a *jig.Error with every violation: MISSING_PARAM when only required
// properties are missing, else INVALID_INPUT. Field is the pointer of the first violation.
func (s *Schema) Validate(instance []byte) error {
	_, err := s.Read(instance)
	return err
}

// Read is Validate and returns the value: map[string]any, []any, string, json.Number, bool or nil.
func (s *Schema) Read(instance []byte) (any, error) {
	if len(instance) > s.options.MaxInstanceBytes {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the value has %d bytes, at most %d are allowed", len(instance), s.options.MaxInstanceBytes)
	}
	v, err := decode(instance, s.options.MaxInstanceDepth, s.options.ExactNumbers)
	if err != nil {
		return nil, notJSON("the value", err)
	}
	if err := s.ValidateValue(v); err != nil {
		return nil, err
	}
	return v, nil
}

// ValidateValue checks a decoded value, numbers being json.Number, int64 or float64. Its caps are the caller's affair.
func (s *Schema) ValidateValue(v any) error {
	err := s.compiled.Validate(v)
	if err == nil {
		return nil
	}
	var violation *jsonschema.ValidationError
	if !errors.As(err, &violation) {
		return fmt.Errorf("validate: %w", err)
	}
	return report("the value", violation, s.document)
}
