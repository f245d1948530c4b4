package plan

import (
	"crypto/sha256"

	"github.com/jig-run/jig/internal/cache"
)

// maxCompiled is the number of compiled documents that a Cache keeps.
const maxCompiled = 256

// Cache keeps compiled documents by the SHA-256 of their text, and drops the least recently used ones first. It is safe for concurrent
// use.
type Cache[T any] struct {
	compiled *cache.Cache[[sha256.Size]byte, T]
}

// NewCache returns an empty cache.
func NewCache[T any]() Cache[T] {
	return Cache[T]{compiled: cache.New[[sha256.Size]byte, T](0, maxCompiled)}
}

// Get returns the compiled form of a document. It calls compile if the cache does not have it; errors are not kept.
func (c Cache[T]) Get(body []byte, compile func() (T, error)) (T, error) {
	return c.compiled.Get(sha256.Sum256(body), func(T, bool) (T, error) { return compile() })
}
