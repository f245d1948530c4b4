package token

import "bytes"

// NewHMAC returns a signer for a secret, as programs outside of jig have it. Everyone who can verify its tokens can also sign tokens.
func NewHMAC(secret []byte, kid, principal string) Signer {
	return Signer{id: kid, principal: principal, secret: bytes.Clone(secret)}
}
