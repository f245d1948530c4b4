// Package workflows is the durable part of the engine. [Pass] runs agent sessions, one pass at a time; [Call] runs a single tool
// call; [Composition] and [Extraction] answer calls that consist of other calls.
//
// Workflow code decides only about order and waiting. Everything that reads, writes or computes on data is an activity, referred to by
// method. The package imports no store, no CEL and no spec parser.
package workflows
