// Package policy decides calls that are well-formed and permitted: run, ask a person, or deny, with reasons that people can read. It
// decides only from the tool's contract, the call and the session. It does not depend on the store, Temporal or models, and it executes
// nothing.
package policy
