package schema

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/strictjson"
)

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
	// negated accepts exactly what compiled rejects. Validating with it does not collect the positions of errors, which saves memory.
	negated  *jsonschema.Schema
	document any
	options  Options
	// dynamic lists the schemas that dynamic references may resolve to. simple is an upper bound on the steps per byte of a value, or 0 if
	// there is none.
	dynamic []*jsonschema.Schema
	simple  int
}

// Object reports whether the schema requires its instances to be objects: its top-level type must be "object" and no other.
func (s *Schema) Object() bool {
	types := s.compiled.Types
	return types != nil && len(types.ToStrings()) == 1 && types.ToStrings()[0] == "object"
}

// Validate checks a JSON text. The error is a *jig.Error with all violations: MISSING_PARAM if only required properties are missing, else
// INVALID_INPUT. Its Field is the pointer of the first violation.
func (s *Schema) Validate(instance []byte) error {
	_, err := s.Read(instance)
	return err
}

// Read validates a JSON text like [Schema.Validate] and returns the decoded value: map[string]any, []any, string, json.Number, bool or nil.
func (s *Schema) Read(instance []byte) (any, error) {
	if len(instance) > s.options.MaxInstanceBytes {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the value has %d bytes, at most %d are allowed", len(instance), s.options.MaxInstanceBytes)
	}
	v, err := strictjson.Decode(instance, strictjson.Limits{
		Depth: s.options.MaxInstanceDepth, Values: strictjson.MaxValues, Exact: s.options.ExactNumbers,
	})
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

// fewSteps is the number of steps below which counting is not worthwhile.
const fewSteps = 100_000

// ValidateValue checks a decoded value whose numbers are json.Number, int64 or float64. It does not limit the size of the value; the caller
// must do so. A check that would take too many steps returns INVALID_INPUT with the reason limit_exceeded.
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

// Checker validates documents against schemas that are passed with them. It compiles each schema once.
type Checker struct{ inputs, outputs *Compiler }

// NewChecker returns a Checker; see [NewCompiler] for the options. ExactNumbers applies only to inputs, because tools may write the numbers
// in their outputs as they like.
func NewChecker(o Options) Checker {
	outputs := o
	outputs.ExactNumbers = false
	return Checker{inputs: NewCompiler(o), outputs: NewCompiler(outputs)}
}

// Validate checks an input against a schema; without a schema, any object is valid. The error has all violations.
func (c Checker) Validate(raw json.RawMessage, document []byte) error {
	return validate(c.inputs, raw, document)
}

// ValidateOutput is like Validate, but for an output.
func (c Checker) ValidateOutput(raw json.RawMessage, document []byte) error {
	return validate(c.outputs, raw, document)
}

func validate(compiler *Compiler, raw json.RawMessage, document []byte) error {
	compiled, err := compiler.Compile(orObject(raw))
	if err != nil {
		return err
	}
	return compiled.Validate(document)
}

// Check returns an error if a schema is not valid.
func (c Checker) Check(raw json.RawMessage) error {
	_, err := c.inputs.Compile(raw)
	return err
}

// FromPairs is like the function [FromPairs], but without a schema it accepts any object.
func (Checker) FromPairs(raw json.RawMessage, pairs map[string]string) (json.RawMessage, error) {
	return FromPairs(orObject(raw), pairs)
}

// orObject returns the schema, or one that accepts any object if it is empty.
func orObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(`{"type":"object"}`)
	}
	return raw
}
