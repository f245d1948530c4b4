// Package schema is the only entry point for JSON Schema (draft 2020-12). It compiles schemas, validates values and converts key=value pairs
// according to a schema. It must not know what the schemas describe.
//
// A [Compiler] compiles each schema once, by the hash of its text. A [Schema] validates a value; the error is one *jig.Error that has every
// violation with its JSON pointer and, for a misspelt name, the nearest known one. [Checker] is for callers that get the schema with each value,
// with one Compiler for inputs, whose numbers must be exact, and one for outputs.
//
// Schemas and values come from outside. Their size and depth are limited before anything is parsed, references to other documents are refused unless
// the caller loads them, and meter.go computes the cost of a validation before the library validates, because the library has no limit of its own.
//
// Begin with schema.go and compiler.go.
package schema
