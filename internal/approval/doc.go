// Package approval decides whether an approval is valid and what follows from a decision: who may decide, how many people must approve,
// which votes count, and what happens as time passes.
//
// [Decide], [Reply], [Reconcile] and [Elapse] are pure functions. They take the [State] that the store read under lock and a request, and
// return the [Transition] to save; a refusal is a transition too. The package does no I/O. It must not know how state is read and saved, or
// how tokens are verified.
//
// Terms say what an approval requires: requirements with approvers and a quorum, a proof of identity, and whether those who asked for the
// call (its askers) may decide. [Consent] holds the terms with the votes and delegations so far. [Voters] says who can decide in a tenant,
// so that stored votes of people who have left no longer count, and that an approval which nobody could give is widened or denied.
//
// An approval is checked again when its call begins: [Record.Covers] and [Record.Proved] check what is stored, and [Recount] counts signed
// decisions where the database alone is not trusted. Begin with decide.go.
package approval
