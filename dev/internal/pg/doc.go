// Package pg runs a private PostgreSQL server for development and tests: it finds an installed PostgreSQL, creates a
// data folder, and runs `postgres` as a child process that ends with this one. It does not depend on jig's databases or on
// Temporal.
package pg
