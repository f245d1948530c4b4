// Package approval decides whether an approval is valid and what follows from a decision: who may decide, how many people must approve,
// which votes count, and what happens as time passes.
//
// [Decide], [Reply], [Reconcile] and [Elapse] are pure functions. They take the [State] that the store read under lock and a request, and
// return the [Transition] to save; a refusal is a transition too. [Record.Covers] and [Record.Proved] check an approval again when its
// call begins. The package does no I/O. It must not know how state is read and saved, or how tokens are verified.
package approval
