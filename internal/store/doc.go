// Package store keeps everything that outlives a process in PostgreSQL: sessions and their transcripts, the ledger, approvals,
// running compositions, the event log, artifacts and documents. Its methods are the engine's transactions. Each is a few pipelined
// statements, usually one round trip.
//
// The store enforces the invariants that must hold for every caller: one row per call, at most one open approval per call, an approval
// consumed once, a result accepted only from the latest attempt, sequence numbers without gaps, and tenants that see only their own rows.
// It does not depend on Temporal, models, tools or policies. No pgx type leaves the package: errors are [*jig.Error].
//
// All transactions take locks in the same order, so that they cannot deadlock: compositions, then calls, then approvals, then the
// session's row, whose event counter is raised last.
package store
