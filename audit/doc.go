// Package audit checks chains of audit rows and reads and writes their exports. An export is JSON lines: a header, then one
// jig.AuditRow a line; it is checked without a server and without a database. The package must not know where rows come from.
package audit
