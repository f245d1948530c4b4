// Package identity holds the types that say who acted: the keys of tenants, the claims of tokens, and the evidence that is stored.
package identity
