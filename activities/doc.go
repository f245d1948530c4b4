// Package activities is the work that workflows ask for: think, admit, run, settle, decide, and the reads of the command
// line. It knows the engine's rules and nothing of PostgreSQL, CEL or providers: those come in through the small
// interfaces of ports.go. Workflow code refers to its methods and never to its dependencies.
package activities
