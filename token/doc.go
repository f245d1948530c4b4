// Package token proves who decides: it signs and verifies short-lived JSON Web Tokens (RFC 7519) that let one principal do one
// thing once to one call, or to one grant, tool or session. It knows keys and claims and nothing of where they are kept: no
// store, no Temporal, no files.
package token
