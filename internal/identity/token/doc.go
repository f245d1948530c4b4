// Package token proves who decides. It signs and verifies short-lived JSON Web Tokens (RFC 7519), each of which allows one principal one action, once,
// on one call, grant, tool, session or key. It handles keys and claims but stores nothing: it does not depend on the store, Temporal or files.
//
// A [identity.Claim] says what a token proves. The functions For… build it from a decision, an answer or another action; signer and verifier use the same
// ones, so that both bind the same. What a decision contains besides its answer is bound by a hash of its canonical JSON; see [Content].
//
// A [Signer] signs with an Ed25519 key or a shared secret. [Verify] finds the key that the token names among those of the tenant; the key decides about the
// algorithm, and everything in the token must equal the claim. Passkeys sign the same claims in the form of WebAuthn; see [Assertion].
//
// Whether a token was used before is not known here: the store remembers the ids of tokens.
package token
