// Package ledger is the state machine of a call: how a call enters the ledger, begins, ends, and is settled if nobody knows how it ended.
//
// [Admit], [Readmit], [Reserve], [Complete], [Cancel] and [MarkRestored] are pure functions. They take the [State] that the store read under
// lock and a request, and return the [Transition] to save. They lead from one status to another:
//
//	from                 by              to
//	none                 [Admit]         waiting, reserved or a final status
//	waiting, reserved    [Readmit]       waiting, reserved or a final status; unknown if an earlier attempt may have taken effect
//	reserved             [Reserve]       executing; unknown if a restore marked the call
//	executing            [Reserve]       executing under the next fence; reserved, unknown or failed if the call may not run again
//	executing            [Complete]      succeeded, failed, canceled, unknown; reserved for another attempt
//	unknown, reserved    [Complete]      succeeded, failed, canceled: the attempt reports late
//	any open status      [Cancel]        canceled; failed if the call may have taken effect
//	any open status      [MarkRestored]  the same
//
// What people decide, and the time that passes while they do not, lead from waiting to reserved, succeeded, denied, unknown or expired,
// and from unknown to succeeded, reserved or failed. Those rules are in package approval.
//
// The package does no I/O. It must not know how calls are read and saved. The store has statements that begin or end an ordinary call in
// one round trip; they apply only if these functions would do the same.
package ledger
