// Package httpapi is the HTTP interface of jig: its operations, their OpenAPI document, credentials, errors and event streams.
//
// A request passes, in this order, the handler of [API.Handler] (id, limits, address), the check of the operation's credential, and the
// operation itself, which is a plain function. register lists all operations. The tenant comes from the credential alone: no operation takes
// one. Operations change things through [Engine], as the command line does, and hold no rules of their own.
package httpapi
