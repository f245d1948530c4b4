// Package schema is the one entry point for JSON Schema (draft 2020-12): it compiles schemas, checks instances against
// them and converts key=value pairs by them. It must not know what the schemas describe. Size and depth are capped before
// anything is parsed, references leave the schema only through a loader that the caller gives, and every violation is
// reported with a JSON pointer.
package schema
