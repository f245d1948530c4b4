// Package extraction decides how the fields of an entity are filled. A [Plan] is an entity type whose tasks form a graph, with its expressions
// compiled. [Plan.Advance] takes the state of an extraction and what has happened since, and returns the new state and what to do: calls to
// admit, values to keep, events to write, and when to look again. The caller does all this; the package has no side effects and does not
// depend on the store, Temporal, tools or models. So an extraction gives the same result however often, and wherever, it is resumed. A move
// of an extraction is stored in the same way as a move of a composition.
//
// A task begins as soon as every task that it depends on has its value, in the order of the document, with at most max_parallel tasks
// running at once; a task that waits for its next attempt counts as running. Tasks that make no call (compute, citations) are evaluated
// within the move. When a task fails, the tasks that depend on it are skipped and nothing else happens: an extraction with failed tasks is
// a result, not an error.
//
// A task can read the values of the tasks that it depends on, directly or not. It can also read the fields of the entity that these tasks
// fill, and those that no task fills. So the values that it reads never depend on which task was faster. The input hash of a task covers all
// values that it reads; a refresh runs the task again if the hash has changed.
//
// Values are kept under two kinds of paths: the id of a task (its value) and <id># (a [Record] of how the task ended). Each is written
// once.
package extraction
