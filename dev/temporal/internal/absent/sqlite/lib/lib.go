// Package sqlite3 declares the SQLite error codes that the server checks for.
package sqlite3

// Codes of constraint violations.
const (
	SQLITE_CONSTRAINT            = 19   //nolint:revive,staticcheck // SQLite's name
	SQLITE_CONSTRAINT_PRIMARYKEY = 1555 //nolint:revive,staticcheck // SQLite's name
	SQLITE_CONSTRAINT_UNIQUE     = 2067 //nolint:revive,staticcheck // SQLite's name
)
