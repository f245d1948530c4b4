// Package strictjson reads the JSON that people and programs send. It refuses texts that two readers might understand differently: a name that
// occurs twice in an object, invalid UTF-8, half a surrogate pair, and a member whose name differs from a known one only in its case.
// It must not know what the JSON means.
package strictjson
