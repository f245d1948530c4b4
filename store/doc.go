// Package store keeps everything that outlives a process in PostgreSQL: sessions and their transcripts, the effect ledger,
// approvals, compositions under way, the event log, artifacts and documents. Its methods are the transactions of the
// engine; each of them is a few pipelined statements, mostly one round trip.
//
// It enforces the invariants that must hold whoever calls: one row for each call, one open approval for each call, an
// approval consumed once, a result accepted from the latest attempt alone, sequence numbers without gaps, and a tenant that
// sees its own rows only. It knows nothing of Temporal, models, tools or policies, and nothing of pgx leaves it: errors are
// *jig.Error.
//
// Transactions lock in one order, so that they cannot deadlock: compositions, then calls, then approvals, then the session's
// row, whose counter of events is raised last.
package store
