// Package dataflow traces the arguments of a call back to the texts that a session has seen. It says which arguments cannot come from
// what the session's principal typed or from trusted results, and which results they may have come from.
//
// A [Tracer] holds the texts ([Knowledge]); [Tracer.Trace] checks one call's input and returns [Findings]. The caller decides which texts
// are trusted:
//
//   - Typed are the texts of the authenticated root principal. Texts of hooks, embedded content, other agents and models are never typed.
//   - Trusted are results of tools that read nothing untrusted. The result of a call that itself had untrusted arguments is untrusted,
//     because it may repeat them.
//   - Untrusted are all other texts that the session's model has read.
//
// The package compares texts and does no I/O. It must not know sessions, tools, policies or the store.
package dataflow
