// Package approval holds the rules of approvals: who may decide, how many people must, what has been said so far, when people are
// reminded, and what a request to decide, answer or reconcile carries. It does no I/O.
package approval
