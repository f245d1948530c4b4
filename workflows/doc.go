// Package workflows is the durable part of the engine: Pass, one run of which is one pass of an agent session, and Call,
// a single tool call. Its code decides order and waiting alone; everything that reads, writes or computes on data is an
// activity, referred to by method. It knows no store, no CEL and no spec parsing.
package workflows
