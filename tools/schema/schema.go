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
	// negated fits what compiled does not, and keeps no places of errors.
	negated  *jsonschema.Schema
	document any
	options  Options
	// dynamic are the schemas that dynamic references may lead to. simple bounds the steps for a byte of a value, or is 0.
	dynamic []*jsonschema.Schema
	simple  int
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
	v, err := decode(instance, s.options.MaxInstanceDepth, MaxValues, s.options.ExactNumbers)
	if err != nil {
		return nil, notJSON("the value", err)
	}
	check := s.ValidateValue
	if s.simple > 0 && len(instance) <= fewSteps/s.simple {
		check = s.check
	}
	if err := check(v); err != nil {
		return nil, err
	}
	return v, nil
}

// fewSteps is what is not worth counting.
const fewSteps = 100_000

// ValidateValue checks a decoded value, numbers being json.Number, int64 or float64. How large it may be is the caller's affair; a
// check that would take too much is an INVALID_INPUT with the reason limit_exceeded.
func (s *Schema) ValidateValue(v any) error {
	m := meter{left: MaxSteps, dynamic: s.dynamic}
	if err := m.visit(s.compiled, v, 0); err != nil {
		return err
	}
	if m.reported <= maxReported {
		return s.check(v)
	}
	if s.negated.Validate(v) == nil {
		return jig.Errorf(jig.CodeInvalidInput, "the value does not fit its schema, and is too large to say where").
			WithHint("check a part of the value")
	}
	return nil
}

func (s *Schema) check(v any) error {
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
