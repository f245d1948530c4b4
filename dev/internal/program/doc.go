// Package program finds or builds the Temporal server that jig-dev runs. The server is the module dev/temporal, which takes
// minutes to compile. So the program is kept in the user's cache directory and shared by all clones with the same sources.
// The package uses only the standard library.
package program
