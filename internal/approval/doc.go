// Package approval answers what makes an approval valid, and what follows from a decision: who may decide, how many people must, what
// counts as said so far, and what happens as time passes.
//
// [Decide], [Reply], [Reconcile] and [Elapse] are pure functions. They take the [State] that the store read under lock and a request, and
// return the [Transition] to save; a refusal is a transition too. [Record.Covers] and [Record.Proved] judge an approval again when its
// call begins. The package does no I/O. It must not know how state is read and saved, nor how tokens are verified.
package approval
