// Package ledger describes what can happen to a call: its admission, its attempts and how they end, and whether it may be repeated. The
// store applies these requests, each in one transaction. The package does no I/O.
package ledger
