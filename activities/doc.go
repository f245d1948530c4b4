// Package activities does the work that workflows ask for: think, admit, run, settle, decide, and the reads of the command line.
//
// It knows the engine's rules but nothing of PostgreSQL, CEL or model providers. Those come in through the small interfaces in
// ports.go. Workflow code refers to its methods, never to its dependencies.
package activities
