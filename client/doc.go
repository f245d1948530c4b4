// Package client lets programs start sessions and single calls, decide what waits, and read what happened. It talks to
// Temporal alone: what changes a session is a signal or an update, what reads is a standalone activity that a worker
// answers. It knows the names and messages of package workflows, and nothing of the store.
package client
