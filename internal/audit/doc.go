// Package audit checks chains of audit rows, and reads and writes their exports. An export is JSON lines: a header, then one
// [Row] per line. It can be checked without a server and without a database. The package must not depend on the source of
// the rows.
package audit
