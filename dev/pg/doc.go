// Package pg runs a PostgreSQL server of our own for development and tests: it finds an installed PostgreSQL, makes a
// data folder, and runs `postgres` as a child process that dies with this one. It knows nothing of jig's databases or of
// Temporal.
package pg
