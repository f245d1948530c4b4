// Package token proves who decides. It signs and verifies short-lived JSON Web Tokens (RFC 7519). Each token allows one principal one
// action, once, on one call, grant, tool or session. The package handles keys and claims but does not store them: it does not depend
// on the store, Temporal or files.
package token
