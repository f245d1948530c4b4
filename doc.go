// Package jig is the vocabulary of the engine: sessions, passes, tools, calls, approvals, events and error codes. It contains types and the
// few functions that belong to them.
//
// A [Session] is one durable conversation or automation. It runs in passes; in each, the model or a composition asks for calls. A [Call] of a
// [Tool] gets a [Verdict] from policy: run, ask or deny. A call that asks becomes [Pending] until people send a [Decision], and its [ToolResult]
// feeds the next pass. Everything that happens is an [Event] of the session's log. Errors have a [Code], and often a hint for whoever gets them.
//
// Begin with tool.go, call.go, session.go and approval.go. Authors of tools need [Tool], [Invocation], [ToolResult] and [Error]; package tools
// makes tools of Go functions, and package client starts sessions and decides.
//
// The package uses only the standard library and does not depend on Temporal, PostgreSQL, models or the command line; every other package may
// import it.
package jig
