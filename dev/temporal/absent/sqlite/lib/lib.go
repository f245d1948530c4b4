// Package sqlite3 holds the codes of SQLite's errors that the server compares.
package sqlite3

// Codes of constraint violations.
const (
	SQLITE_CONSTRAINT            = 19   //nolint:revive,staticcheck // SQLite's name
	SQLITE_CONSTRAINT_PRIMARYKEY = 1555 //nolint:revive,staticcheck // SQLite's name
	SQLITE_CONSTRAINT_UNIQUE     = 2067 //nolint:revive,staticcheck // SQLite's name
)
