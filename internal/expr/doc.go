// Package expr compiles and evaluates CEL expressions, and the templates that contain them, for everything in documents that reads `${ … }`,
// for the rules of policies, budgets and rate limits, for script models and for concurrency keys. It is the only package that imports cel-go.
//
// A [Use] declares which variables the expressions in one place may read, and their limits. Its environment ([Use.Env]) compiles a source
// into a [Program], a text with expressions into a [Template], and a JSON document of templates into a [Document]. All three are evaluated
// with variables by name; [Value] holds one that was converted before.
//
// Expressions come from documents that nobody has vetted, so every step has a limit. Before parsing, a source is split into tokens (effort.go).
// After parsing, the work of the type checker is estimated (effort.go), and types that could grow without end are rewritten (rewrite.go). While a
// program runs, each function is charged before it is called (guard.go, meter.go). cel-go's own limits look at a result when it exists already.
//
// Evaluation is deterministic: there is no clock and no randomness, and loops go over the keys of maps in their order. [Program.Reads] tells
// which variables and members an expression reads. [Program.Check] finds mistakes from the JSON Schemas of the values, before anything runs.
//
// Numbers follow JSON. On the way in, a number is an int if it is integral and within ±(2^53-1), otherwise a double; an integer beyond that keeps
// its digits and cannot be computed with. On the way out, every int, uint and double is a JSON number, never a string. Bytes leave as base64,
// timestamps as RFC 3339, durations as Go writes them ("1h30m0s"), and an empty optional as null. Where standard CEL refuses to compute with an
// int and a double, the int becomes a double here.
//
// Begin with use.go and env.go. The package must not depend on documents, tools or sessions, or on the source of its values. From package jig
// it uses only the errors.
package expr
