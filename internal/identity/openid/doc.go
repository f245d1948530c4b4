// Package openid checks what identity providers say about people: the access tokens that they send, and the logins that a browser completes.
// A [Binding] says which issuer and audience belong to which tenant. The package must not know what a tenant's document says about a person.
package openid
