// Package expr compiles and evaluates CEL expressions and the templates that hold them: for scripts, concurrency keys and
// whatever else reads `${ … }`. It alone imports cel-go. An environment (Env) belongs to one use and declares what its
// expressions may read; there is no clock and no randomness in it, and a map is always walked in the order of its keys, so
// that the same expression over the same values gives the same result.
//
// Expressions come from documents that nobody has vetted. The length of the source, the depth of its parse, the cost of an
// evaluation, the data it builds and compares, and the size of its result are bounded, and a cancelled context ends it.
//
// Numbers follow JSON: on the way in a number is an int when it is integral and within ±(2^53-1), otherwise a double; on
// the way out every int, uint and double is a JSON number, never a string. Bytes leave as base64, timestamps as RFC 3339,
// durations as Go writes them ("1h30m0s"), an empty optional as null. CEL compares an int with a
// double but does not add them: where a JSON number may be either, write double(x) or int(x).
//
// It must not know documents, tools, sessions or where its values come from; it uses the vocabulary's errors alone.
package expr
