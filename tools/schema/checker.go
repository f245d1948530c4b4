package schema

import "encoding/json"

// Checker checks documents against schemas that come along with them, each compiled once.
type Checker struct{ inputs, outputs *Compiler }

// NewChecker makes a Checker; see NewCompiler for the options. Numbers of outputs are as their makers wrote them: ExactNumbers is about
// inputs alone.
func NewChecker(o Options) Checker {
	outputs := o
	outputs.ExactNumbers = false
	return Checker{inputs: NewCompiler(o), outputs: NewCompiler(outputs)}
}

// Validate checks an input against a schema, any object when that is left out. The error has every violation.
func (c Checker) Validate(raw json.RawMessage, document []byte) error {
	return validate(c.inputs, raw, document)
}

// ValidateOutput is Validate for an output.
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

// Check refuses a schema that is none.
func (c Checker) Check(raw json.RawMessage) error {
	_, err := c.inputs.Compile(raw)
	return err
}

// FromPairs is the function of this name, for any object when the schema is left out.
func (Checker) FromPairs(raw json.RawMessage, pairs map[string]string) (json.RawMessage, error) {
	return FromPairs(orObject(raw), pairs)
}

// orObject stands in for a schema that was left out: any object.
func orObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(`{"type":"object"}`)
	}
	return raw
}
