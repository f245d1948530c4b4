package jig

import (
	"crypto/sha256"
)

// Prefixes of the ids of entities and texts.
const (
	EntityPrefix = "ent_"
	TextPrefix   = "doc_"
)

// NewEntityID returns a fresh entity id: "ent_" and 26 characters.
func NewEntityID() string { return EntityPrefix + randomID() }

// NewTextID returns a fresh id of a text: "doc_" and 26 characters.
func NewTextID() string { return TextPrefix + randomID() }

// TextIDOf returns the id of the text that a call with this idempotency key adds. It is the same each time the call runs.
func TextIDOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return TextPrefix + idEncoding.EncodeToString(sum[:16])
}
