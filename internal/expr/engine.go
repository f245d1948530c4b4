package expr

import (
	"context"
	"encoding/json"
)

// Engine evaluates the expressions that jig itself uses, each compiled once. It is safe for concurrent use.
type Engine struct {
	cache *Cache
	keys  *Env
}

// NewEngine returns an Engine with an empty cache.
func NewEngine() (*Engine, error) {
	keys, err := ConcurrencyKeyEnv()
	if err != nil {
		return nil, err
	}
	return &Engine{cache: NewCache(0), keys: keys}, nil
}

// ConcurrencyKey evaluates a tool's concurrency key for a call's input. If the result is a string, it is the key; otherwise the key is the JSON
// of the result. An empty source gives the empty key.
func (e *Engine) ConcurrencyKey(ctx context.Context, source string, input json.RawMessage) (string, error) {
	if source == "" {
		return "", nil
	}
	p, err := e.cache.Compile(e.keys, source, Any)
	if err != nil {
		return "", err
	}
	v, err := p.Eval(ctx, map[string]any{"input": input})
	if err != nil {
		return "", err
	}
	return asText(v)
}
