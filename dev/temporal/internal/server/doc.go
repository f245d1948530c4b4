// Package server runs a whole Temporal server in this process on a PostgreSQL database: it creates the databases and their
// tables, and applies settings for one developer's machine. docs/operations.md names the settings that real clusters need.
package server
