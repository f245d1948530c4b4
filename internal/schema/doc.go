// Package schema is the only entry point for JSON Schema (draft 2020-12). It compiles schemas, validates instances and converts key=value
// pairs according to a schema. It must not know what the schemas describe. Size and depth are limited before anything is parsed, references
// to other documents are resolved only by a loader that the caller provides, and every violation is reported with a JSON pointer.
package schema
