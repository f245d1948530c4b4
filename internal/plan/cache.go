package plan

import (
	"container/list"
	"crypto/sha256"
	"sync"
)

// maxCompiled is the number of compiled documents that a Cache keeps.
const maxCompiled = 256

// Cache keeps compiled documents by the SHA-256 of their text, and drops the least recently used ones first. It is safe for concurrent
// use. The zero value is an empty cache.
type Cache[T any] struct {
	mu       sync.Mutex
	elements map[[sha256.Size]byte]*list.Element
	recent   list.List // of *compiled[T], most recently used first
}

type compiled[T any] struct {
	key   [sha256.Size]byte
	value T
}

// Get returns the compiled form of a document. It calls compile if the cache does not have it; errors are not kept.
func (c *Cache[T]) Get(body []byte, compile func() (T, error)) (T, error) {
	key := sha256.Sum256(body)
	if value, ok := c.find(key); ok {
		return value, nil
	}
	value, err := compile()
	if err == nil {
		c.add(key, value)
	}
	return value, err
}

func (c *Cache[T]) find(key [sha256.Size]byte) (value T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.elements[key]
	if !ok {
		return value, false
	}
	c.recent.MoveToFront(element)
	return element.Value.(*compiled[T]).value, true //nolint:errcheck,forcetypeassert // the list holds nothing else
}

func (c *Cache[T]) add(key [sha256.Size]byte, value T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.elements == nil {
		c.elements = map[[sha256.Size]byte]*list.Element{}
	}
	if _, ok := c.elements[key]; ok {
		return
	}
	c.elements[key] = c.recent.PushFront(&compiled[T]{key: key, value: value})
	for c.recent.Len() > maxCompiled {
		last := c.recent.Remove(c.recent.Back()).(*compiled[T]) //nolint:errcheck,forcetypeassert // the list holds nothing else
		delete(c.elements, last.key)
	}
}
