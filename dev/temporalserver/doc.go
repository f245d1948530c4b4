// Package temporalserver runs a whole Temporal server in this process on a PostgreSQL database, set up as jig wants it:
// schema, settings, namespace and search attributes. It is for development, tests and benchmarks; docs/operations names
// the same settings for real clusters. It knows nothing of who runs the database.
package temporalserver
