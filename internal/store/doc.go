// Package store keeps everything that outlives a process in PostgreSQL: sessions and their transcripts, calls, approvals, running
// compositions, events, artifacts, documents and entities. [DB] has one method for each transaction of the engine; most are one round trip.
// The store depends neither on Temporal nor on models, tools or policies. No pgx type leaves the package: errors are [*jig.Error].
//
// The rules are elsewhere. For a call, the store locks the rows that concern it, converts them to the state that the packages approval and
// ledger judge ([locked]), and saves the transition that they return ([tx.save], [tx.saveCall]). It enforces only what must hold for every
// caller: one row per call, at most one open approval per call, an approval consumed once, a result accepted only from the latest attempt,
// sequence numbers without gaps, and tenants that see only their own rows.
//
// The SQL is in the folder queries, one named statement each. Code queues statements by name ([tx.queue]) with a reader for the answer
// ([list], [first], [value], [column]) and sends them together ([tx.flush], [tx.commit]). Rows are read into the types of the domain
// packages. A test has PostgreSQL describe every statement, and compares its parameters and columns with the Go code.
//
// All transactions take locks in the same order, so that they cannot deadlock: compositions, then calls, then approvals, then the
// session's row, whose event counter is raised last, then the tenant's audit chain ([tx.finish]). Short transactions on the calls of one
// session are sent together ([DB.gather]).
//
// The hub tells watchers of sessions about commits, of this process and of others (hub.go, listen.go), and drafts.go about the texts that
// models are writing. Begin with tx.go, rows.go and decide.go.
package store
