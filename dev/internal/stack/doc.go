// Package stack starts the servers that jig needs: PostgreSQL with jig's database and roles, and a Temporal server on it with
// Temporal's Web UI. The command dev and the end-to-end tests share it. It does not depend on jig's tables or workers: the
// caller passes in a function that runs the migrations.
package stack
