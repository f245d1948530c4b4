// Package cache keeps values in memory for a while and then reads them again. It is for values that are needed often and change rarely.
package cache

import (
	"iter"
	"maps"
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
type Cache[V any] struct {
	age time.Duration
	max int

	mu      sync.Mutex
	entries map[string]entry[V]
	// forgotten counts the calls of Forget, so that a value read before a change is not cached after it.
	forgotten int
}

type entry[V any] struct {
	read  time.Time
	value V
}

// New returns a cache of up to most values, which are fresh for age; 0 means forever. A full cache is emptied.
func New[V any](age time.Duration, most int) *Cache[V] {
	return &Cache[V]{age: age, max: most, entries: map[string]entry[V]{}}
}

// OfTenants returns a cache whose keys are tenants. Its values are fresh for a second.
func OfTenants[V any]() *Cache[V] { return New[V](tenantAge, maxTenants) }

// Get returns the value of a key. If the cache has no fresh value, Get calls read and caches the result. read gets the stale value, which it
// may return again; known is false if no value was cached. If several callers read a key at the same time, all get the value that was read
// first. If read fails, Get returns its error and caches nothing. The value is shared; callers must not modify it.
func (c *Cache[V]) Get(key string, read func(stale V, known bool) (V, error)) (V, error) {
	c.mu.Lock()
	stale, known := c.entries[key]
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
	other, there := c.entries[key]
	switch {
	case c.forgotten != forgotten:
		return value, nil
	case there && c.fresh(other):
		return other.value, nil
	case !there && len(c.entries) >= c.max:
		clear(c.entries)
	}
	c.entries[key] = entry[V]{read: began, value: value}
	return value, nil
}

// fresh reports whether a value may be used without reading it again.
func (c *Cache[V]) fresh(e entry[V]) bool { return c.age == 0 || time.Since(e.read) < c.age }

// Forget discards the value of a key, and the values that are being read.
func (c *Cache[V]) Forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
	c.forgotten++
}

// All returns the cached values, fresh or not.
func (c *Cache[V]) All() iter.Seq2[string, V] {
	c.mu.Lock()
	entries := maps.Clone(c.entries)
	c.mu.Unlock()
	return func(yield func(string, V) bool) {
		for key, e := range entries {
			if !yield(key, e.value) {
				return
			}
		}
	}
}
