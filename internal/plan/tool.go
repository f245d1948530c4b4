package plan

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/cache"
)

// Tool is an execution spec as a tool that can be called.
type Tool struct {
	// Contract is the tool's contract, with the version of the document.
	Contract jig.Tool
	// Run runs a call once, as an activity. It is nil for a spec whose calls run as workflows.
	Run func(ctx context.Context, input []byte, inv jig.Invocation) jig.ToolResult
	// Preview describes what a call will change. It is nil for a spec without a preview.
	Preview Preview
}

// Preview describes what a call will change. read makes the one call that the document may ask for.
type Preview func(ctx context.Context, input []byte, inv jig.Invocation, read Read) (jig.Preview, error)

// Read calls a tool that only reads, with the rights of the previewed call, and returns the data of its result.
type Read func(ctx context.Context, tool string, input json.RawMessage) (json.RawMessage, error)

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
