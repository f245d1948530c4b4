// Package client lets programs start sessions and single calls, decide about calls that wait, and read what happened. It talks only to
// Temporal: it changes a session with a signal or an update, and reads with a standalone activity that a worker executes. It does not
// depend on the store.
package client
