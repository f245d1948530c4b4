// Package tools turns Go functions into tools and runs them.
//
// [New] makes a [Tool] from a typed function and derives its schemas from the types; [Raw] makes one from a function that works on JSON, and
// [OfDocument] the tool of a document. A [Registry] holds tools by name. Registering checks the contract, so lists of tools need no error handling.
//
// Every call takes one path, [Registry.Run]: it checks the input against the schema, calls the function within the timeout, turns panics and ended
// contexts into errors, and checks the output. The error of a tool that writes also says whether the effect may have happened; see [New], and
// [Transport] for HTTP clients, which knows when nothing was sent.
//
// Begin with tool.go, then run.go. Package tooltest is the test kit. Contracts, schemas and results are handled here; sessions, policy, the ledger
// and Temporal must not be known. The built-in tools are in internal/builtin, one package for each family.
package tools
