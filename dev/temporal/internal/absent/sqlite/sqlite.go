// Package sqlite replaces the SQLite driver, which the server links in addition to the PostgreSQL driver. It registers no
// driver, so a configuration that names SQLite fails.
package sqlite

// Error is never returned.
type Error struct{}

// Code is 0.
func (*Error) Code() int { return 0 }

// Error describes the error.
func (*Error) Error() string { return "this server was built without SQLite" }
