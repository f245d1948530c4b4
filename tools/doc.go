// Package tools turns Go functions into tools and runs them: [Tool], [Registry], and the single path that every call takes. It handles
// contracts, schemas and results; it must not depend on sessions, policy, the ledger or Temporal. Built-in tools are in subpackages, one
// per family.
package tools
