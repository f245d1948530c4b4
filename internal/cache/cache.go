// Package cache keeps values in memory that are needed often and change rarely. It drops the least recently used values first, and reads a
// value again after a while.
package cache

import (
	"container/list"
	"crypto/sha256"
	"iter"
	"sync"
	"time"
)

// Bounds of a cache for tenants.
const (
	// tenantAge is how long a worker uses a value that it has read for a tenant. A change takes effect on every worker within this time.
	tenantAge = time.Second
	// maxTenants is needed because callers choose the tenant of the sessions they start.
	maxTenants = 10_000
)

// Cache holds one value for each key. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	age time.Duration
	max int

	mu      sync.Mutex
	entries map[K]*list.Element
	recent  list.List // of entry[K, V], the most recently used first
	// forgotten counts the calls of Forget, so that a value read before a change is not cached after it.
	forgotten int
}

type entry[K comparable, V any] struct {
	key   K
	read  time.Time
	value V
}

// New returns a cache of up to most values, which are fresh for age; 0 means forever. most must be positive.
func New[K comparable, V any](age time.Duration, most int) *Cache[K, V] {
	return &Cache[K, V]{age: age, max: most, entries: map[K]*list.Element{}}
}

// OfTenants returns a cache whose keys are tenants. Its values are fresh for a second.
func OfTenants[V any]() *Cache[string, V] { return New[string, V](tenantAge, maxTenants) }

// Get returns the value of a key. If the cache has no fresh value, Get calls read and caches the result. read gets the stale value, which it
// may return again; known is false if no value was cached. If several callers read a key at the same time, all get the value that was read
// first. If read fails, Get returns its error and caches nothing. The value is shared; callers must not modify it.
func (c *Cache[K, V]) Get(key K, read func(stale V, known bool) (V, error)) (V, error) {
	c.mu.Lock()
	stale, known := c.find(key)
	forgotten := c.forgotten
	c.mu.Unlock()
	if known && c.fresh(stale) {
		return stale.value, nil
	}
	began := time.Now()
	value, err := read(stale.value, known)
	if err != nil {
		var none V
		return none, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	other, there := c.find(key)
	switch {
	case c.forgotten != forgotten:
		return value, nil
	case there && c.fresh(other):
		return other.value, nil
	}
	c.add(entry[K, V]{key: key, read: began, value: value})
	return value, nil
}

// Put caches a value that the caller has just learnt.
func (c *Cache[K, V]) Put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(entry[K, V]{key: key, read: time.Now(), value: value})
}

// find returns the entry of a key and marks it as used.
func (c *Cache[K, V]) find(key K) (e entry[K, V], ok bool) {
	element, ok := c.entries[key]
	if !ok {
		return e, false
	}
	c.recent.MoveToFront(element)
	return element.Value.(entry[K, V]), true //nolint:errcheck // the list holds nothing else
}

// add stores an entry. If the cache is full, the least recently used one is dropped.
func (c *Cache[K, V]) add(e entry[K, V]) {
	if element, ok := c.entries[e.key]; ok {
		element.Value = e
		return
	}
	c.entries[e.key] = c.recent.PushFront(e)
	if c.recent.Len() > c.max {
		last := c.recent.Remove(c.recent.Back()).(entry[K, V]) //nolint:errcheck // the list holds nothing else
		delete(c.entries, last.key)
	}
}

// fresh reports whether a value may be used without reading it again.
func (c *Cache[K, V]) fresh(e entry[K, V]) bool { return c.age == 0 || time.Since(e.read) < c.age }

// Forget discards the value of a key, and the values that are being read.
func (c *Cache[K, V]) Forget(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.entries[key]; ok {
		c.recent.Remove(element)
		delete(c.entries, key)
	}
	c.forgotten++
}

// All returns the cached values, fresh or not.
func (c *Cache[K, V]) All() iter.Seq2[K, V] {
	c.mu.Lock()
	all := make([]entry[K, V], 0, c.recent.Len())
	for element := c.recent.Front(); element != nil; element = element.Next() {
		all = append(all, element.Value.(entry[K, V])) //nolint:errcheck // the list holds nothing else
	}
	c.mu.Unlock()
	return func(yield func(K, V) bool) {
		for _, e := range all {
			if !yield(e.key, e.value) {
				return
			}
		}
	}
}

// maxTexts is the number of values that a Texts keeps.
const maxTexts = 256

// Texts keeps what was made of texts, such as compiled documents, by the SHA-256 of the text. It drops the least recently used values first.
// It is safe for concurrent use.
type Texts[V any] struct {
	made *Cache[[sha256.Size]byte, func() (V, error)]
}

// NewTexts returns an empty cache.
func NewTexts[V any]() Texts[V] {
	return Texts[V]{made: New[[sha256.Size]byte, func() (V, error)](0, maxTexts)}
}

// Get returns what compile makes of a text. Callers that need the same text at the same time wait for one of them, and only that one calls
// compile, which therefore must not depend on its caller. Errors are not kept.
func (t Texts[V]) Get(text []byte, compile func() (V, error)) (V, error) {
	key := sha256.Sum256(text)
	once, _ := t.made.Get(key, func(func() (V, error), bool) (func() (V, error), error) { //nolint:errcheck // it has no error
		return sync.OnceValues(compile), nil
	})
	value, err := once()
	if err != nil {
		t.made.Forget(key)
	}
	return value, err
}
