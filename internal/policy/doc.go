// Package policy decides calls that are well-formed and permitted: run, ask a person, or deny, with reasons that people can read. It
// decides only from the tool's contract, the call and the session. It does not depend on the store, Temporal or models, and it executes
// nothing.
//
// The tool's contract gives a base verdict (base.go). The rules of all policy documents of the tenant are then evaluated, and the strictest
// of those that apply wins, whichever document it is in (rules.go). An approval must meet the terms of every rule that asks. A rule that
// cannot be evaluated counts as if its condition held, unless it would let the call run. While a document cannot be read, calls are held
// back (tenant.go).
//
// A grant is a standing approval with a condition of its own (grant.go). [Engine] caches the compiled documents of all tenants.
package policy
