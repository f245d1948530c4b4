package schema

import "encoding/json"

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
