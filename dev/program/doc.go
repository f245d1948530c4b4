// Package program finds the Temporal server that jig-dev runs, or builds it. The server is the module dev/temporal, which
// takes minutes to compile, so what was built is kept in the user's cache directory for every clone with the same sources.
// Only the standard library is used.
package program
