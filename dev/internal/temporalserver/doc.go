// Package temporalserver runs a Temporal server and its Web UI as a child process, and registers jig's namespace and search
// attributes. The program is the module dev/temporal; package program finds or builds it. This package does not depend on how
// the database runs.
package temporalserver
