// Package token proves who decides. It signs and verifies short-lived JSON Web Tokens (RFC 7519). Each allows one principal to do
// one thing, once, to one call, grant, tool or session. The package knows keys and claims but not where they are stored: it uses no
// store, no Temporal and no files.
package token
