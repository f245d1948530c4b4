// Package workflows is the durable part of the engine. [Pass] runs agent sessions, one pass at a time; [Call] runs a single tool
// call; [Composition] and [Extraction] answer calls that consist of other calls.
//
// Workflow code decides only in which order things happen and what to wait for. Activities do everything that reads, writes or computes
// on data. The package imports no store, no CEL and no spec parser.
package workflows
