// Package jig is the vocabulary of the engine: sessions, passes, tools, calls, approvals, events and error codes. It contains types and the
// few functions that belong to them. It uses only the standard library and knows nothing about Temporal, PostgreSQL, models or the command
// line; every other package may import it.
package jig
