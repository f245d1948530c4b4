// Package compose works out what a composition does next. A Plan is an execution spec with its expressions compiled;
// Advance takes where a run of it stands and what has happened since, and gives where it stands now and what is to be done:
// calls to admit, values to keep, events to write, the time to look again. It does nothing of that itself and keeps
// nothing: it knows no store, no Temporal, no tool, so a run is the same however often it is taken up again, and wherever.
package compose
