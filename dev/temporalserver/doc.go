// Package temporalserver runs a Temporal server and its Web UI as a child process and prepares them for jig: namespace and
// search attributes. The program is the module dev/temporal; package program finds or builds it. It knows nothing of who
// runs the database.
package temporalserver
