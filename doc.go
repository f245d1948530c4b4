// Package jig is the vocabulary of the engine: sessions, passes, tools, calls, approvals, events and error codes. It contains types and the
// few functions that belong to them. It uses only the standard library and does not depend on Temporal, PostgreSQL, models or the command
// line; every other package may import it.
package jig
