// Package jig is the vocabulary of the engine: sessions, passes, tools, calls, approvals, events and the error codes that
// name what went wrong. It holds types and the few functions that belong to them, uses the standard library alone, and
// knows nothing of Temporal, PostgreSQL, models or the command line; every other package points here.
package jig
