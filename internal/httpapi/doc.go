// Package httpapi is the HTTP interface of jig: it serves the operations that internal/api declares, and owns their OpenAPI document, credentials,
// errors and event streams.
//
// A request passes, in this order, the handler of [API.Handler] (id, limits, address), the check of the operation's credential, and the
// operation itself, which is a plain function. The tenant comes from the credential alone: no operation takes one. Operations change things through
// [Engine], as the command line does, and hold no rules of their own.
//
// An operation is served in one of three ways, see operations.go: read passes it to the engine, serve calls a function that returns the response,
// and serveAs one that also returns a status or headers, or writes a stream. An error becomes a problem that repeats no value of the request
// (problem.go, conceal.go). Streams and waiting requests end when their credential does (lease.go).
package httpapi
