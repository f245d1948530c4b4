// Package activities does the work that workflows ask for. A workflow only decides what comes next; everything that reads or writes, asks a
// model or runs a tool is a method of [Activities].
//
// A session goes through these methods in turn: [Activities.Open] stores it, [Activities.Think] asks the model for the turn of a pass,
// [Activities.Admit] decides on the calls of the turn, [Activities.RunTool] and its relatives run them, and [Activities.Settle] ends the
// pass. [Activities.Hear] handles signals and updates: decisions, answers, messages and events. [Activities.Compose] advances compositions
// and extractions. [Answers] lists the requests that clients send without a session.
//
// Every method is idempotent, because Temporal may run it again after a crash: it first looks at what is stored. What must happen together
// is one transaction of the store. What would run is compared with what was admitted and approved immediately before it runs (claim in
// run.go), by a digest over everything that people were shown.
//
// The package contains the engine's rules and does not depend on PostgreSQL, CEL or model providers. Those are behind the interfaces in
// store.go and ports.go. Begin with admit.go and run.go.
package activities
