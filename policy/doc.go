// Package policy rules on calls that are well-formed and permitted: run, ask a person, or deny, with reasons that a person
// can be told. It decides from the tool's contract, the call and the session alone: it knows no store, no Temporal, no
// model, and it executes nothing.
package policy
