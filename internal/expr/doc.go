// Package expr compiles and evaluates CEL expressions, and the templates that contain them, for scripts, concurrency keys and everything
// else that reads `${ … }`. It is the only package that imports cel-go. An environment ([Env]) belongs to one use and declares the variables
// that its expressions may read. It has no clock and no randomness, and it always iterates over maps in the order of their keys, so that the
// same expression over the same values gives the same result.
//
// Expressions come from documents that nobody has vetted. The length of the source, the depth of its syntax tree, the cost of an
// evaluation, the data that it builds and compares, and the size of its result are all limited, and canceling the context ends the
// evaluation.
//
// Numbers follow JSON. On the way in, a number is an int if it is integral and within ±(2^53-1), otherwise a double. On the way out, every
// int, uint and double is a JSON number, never a string. Bytes leave as base64, timestamps as RFC 3339, durations as Go writes them
// ("1h30m0s"), and an empty optional as null. Where standard CEL refuses to compute with an int and a double, the int becomes a double
// here.
//
// The package must not depend on documents, tools or sessions, or on the source of its values. From package jig it uses only the errors.
package expr
