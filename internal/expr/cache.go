package expr

import (
	"container/list"
	"sync"
)

// Cache keeps the most recently used programs, by name of the use, wanted type and source. It does not keep sources that do not compile. It is
// safe for concurrent use.
type Cache struct {
	size int

	mu      sync.Mutex
	entries map[cacheKey]*list.Element
	recent  *list.List
}

type cacheKey struct {
	use    string
	want   Type
	source string
}

type cacheEntry struct {
	key     cacheKey
	program *Program
}

// NewCache makes a cache for at most size programs; 0 means 1,000.
func NewCache(size int) *Cache {
	if size <= 0 {
		size = 1_000
	}
	return &Cache{size: size, entries: map[cacheKey]*list.Element{}, recent: list.New()}
}

// Compile returns the program of a source in an environment, and compiles it if it is not cached. Environments whose uses have the same
// name must be equal.
func (c *Cache) Compile(env *Env, source string, want Type) (*Program, error) {
	key := cacheKey{use: env.use.Name, want: want, source: source}
	if p := c.find(key); p != nil {
		return p, nil
	}
	p, err := env.CompileAs(source, want)
	if err != nil {
		return nil, err
	}
	c.add(key, p)
	return p, nil
}

// Len returns the number of cached programs.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.Len()
}

func (c *Cache) find(key cacheKey) *Program {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.entries[key]
	if !ok {
		return nil
	}
	c.recent.MoveToFront(element)
	return element.Value.(*cacheEntry).program //nolint:errcheck // the list holds only cache entries
}

func (c *Cache) add(key cacheKey, p *Program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[key]; ok {
		return
	}
	c.entries[key] = c.recent.PushFront(&cacheEntry{key: key, program: p})
	for c.recent.Len() > c.size {
		last := c.recent.Back()
		delete(c.entries, last.Value.(*cacheEntry).key) //nolint:errcheck // the list holds only cache entries
		c.recent.Remove(last)
	}
}
