// Package identity says how a tenant knows who acted: keys, the claims that tokens make, and the evidence that is kept of them.
package identity
