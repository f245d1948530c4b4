// Package stack starts everything that jig needs and does not bring along: PostgreSQL with jig's database and roles, and a
// Temporal server on it with Temporal's Web UI. The command dev and the end-to-end tests share it. It knows nothing of
// jig's tables and of workers: migrations are a function that the caller hands in.
package stack
