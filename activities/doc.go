// Package activities does the work that workflows ask for: think, admit, run, settle, decide, and the reads of the command line.
//
// It contains the engine's rules but does not depend on PostgreSQL, CEL or model providers. Those are behind the interfaces in
// store.go and ports.go. Workflow code refers to the methods of [Activities], never to their dependencies.
package activities
