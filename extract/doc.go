// Package extract works out how the fields of an entity are filled: a Plan is an entity type whose tasks form a graph, with
// its expressions compiled; Advance takes where an extraction stands and what has happened since, and gives where it stands
// now and what is to be done: calls to admit, values to keep, events to write, the time to look again. It does nothing of
// that itself and keeps nothing: it knows no store, no Temporal, no tool and no model, so an extraction is the same however
// often it is taken up again, and wherever. A move of an extraction is stored as a move of a composition is.
//
// A task begins as soon as all that it depends on has its value, in the order of the document, at most Plan's max_parallel
// at once; one that waits for its next attempt counts. What a task computes itself (compute, citations) is worked out within
// the move. A task that failed leaves what depends on it skipped, and nothing else: an extraction with failed tasks is a
// result, not an error.
//
// A task sees the values of the tasks that it depends on, directly or not, and of the entity's content the fields that no
// task fills and those that these tasks filled: never one whose value would depend on who was faster. What it saw is its
// input hash; a refresh runs it again when that has changed.
//
// Kept values have the ids of tasks (their values) and <id># (a Record of how the task ended). Each is written once.
package extract
