// Package plan defines what compositions and extractions share: the state of a run, the facts that a move is computed from, and the move
// itself. Its subpackages compute the moves. It does no I/O.
package plan
