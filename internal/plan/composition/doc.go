// Package composition decides what a composition does next. A [Plan] is an execution spec with its expressions compiled. [Plan.Advance] takes
// the state of a run and what has happened since, and returns the new state and what to do: calls to admit, values to keep, events to
// write, and when to look again. The caller does all this; the package has no side effects and does not depend on the store, Temporal or
// tools. So a run gives the same result however often, and wherever, it is resumed.
//
// The state mirrors the plan for the steps that are running. For a finished step it records only where the result is: in the ledger under
// the step's path, among the kept values, or nowhere if no expression reads it. For a loop it holds a cursor and the open items, so neither
// its size nor the work of a move grows with the number of finished items. Conditions, lists and inputs are evaluated once and never again.
//
// Kept values are stored under these paths: the path of a step (its result), the path of a loop with #n (its list, in chunks), vars.<name>,
// and #n for the n-th note on how to undo a step that succeeded. Only vars are written more than once.
package composition
