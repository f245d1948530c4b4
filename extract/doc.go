// Package extract decides how the fields of an entity are filled. A [Plan] is an entity type whose tasks form a graph, with its expressions
// compiled. [Plan.Advance] takes the state of an extraction and what has happened since, and returns the new state and what to do: calls to
// admit, values to keep, events to write, and when to look again. It performs none of this itself and stores nothing. It knows no store, no
// Temporal, no tool and no model, so an extraction gives the same result however often, and wherever, it is resumed. A move of an
// extraction is stored in the same way as a move of a composition.
//
// A task begins as soon as every task that it depends on has its value, in the order of the document, with at most max_parallel tasks
// running at once; a task that waits for its next attempt counts as running. Tasks that make no call (compute, citations) are evaluated
// within the move. When a task fails, the tasks that depend on it are skipped and nothing else happens: an extraction with failed tasks is
// a result, not an error.
//
// A task sees the values of the tasks that it depends on, directly or not. Of the entity's content it sees the fields that no task fills
// and those that these tasks filled. It never sees a value that depends on which task was faster. A hash of what it saw is its input hash;
// a refresh runs the task again when that has changed.
//
// Kept values have the ids of tasks (their values) and <id># (a [Record] of how the task ended). Each is written once.
package extract
