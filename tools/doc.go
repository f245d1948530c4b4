// Package tools turns Go functions into tools and runs them: Tool, Registry and the one path every call takes. It knows
// contracts, schemas and results; it must not know sessions, policy, the ledger or Temporal. Built-in tools live in
// subpackages, one per family.
package tools
