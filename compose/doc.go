// Package compose works out what a composition does next. A Plan is an execution spec with its expressions compiled;
// Advance takes where a run of it stands and what has happened since, and gives where it stands now and what is to be done:
// calls to admit, values to keep, events to write, the time to look again. It does nothing of that itself and keeps
// nothing: it knows no store, no Temporal, no tool, so a run is the same however often it is taken up again, and wherever.
//
// The state mirrors the plan where steps are under way, and for steps that are over says where the result is: in the ledger
// under the step's path, among the kept values, or nowhere when no expression reads it. Of a loop it holds a cursor and the
// open items, so its size does not grow with the items that are done, nor does the work of a move. What has been evaluated
// (conditions, lists, inputs) is never evaluated again.
//
// Kept values have the paths of steps (results), of loops with #n (their lists, in chunks),
// vars.<name>, and #n for what undoes the n-th step that succeeded. Only vars are written more than once.
package compose
