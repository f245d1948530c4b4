package expr

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig/internal/cache"
)

// maxPrograms is the number of compiled expressions that an Engine keeps.
const maxPrograms = 1_000

// Engine evaluates the expressions that jig itself uses, each compiled once. It is safe for concurrent use.
type Engine struct {
	keys     *Env
	programs *cache.Cache[string, *Program]
}

// NewEngine returns an Engine with an empty cache.
func NewEngine() (*Engine, error) {
	keys, err := ConcurrencyKeyEnv()
	if err != nil {
		return nil, err
	}
	return &Engine{keys: keys, programs: cache.New[string, *Program](0, maxPrograms)}, nil
}

// ConcurrencyKey evaluates a tool's concurrency key for a call's input. If the result is a string, it is the key; otherwise the key is the JSON
// of the result. An empty source, an empty text and null give the empty key, which means that the call waits for no other.
func (e *Engine) ConcurrencyKey(ctx context.Context, source string, input json.RawMessage) (string, error) {
	if source == "" {
		return "", nil
	}
	p, err := e.programs.Get(source, func(*Program, bool) (*Program, error) { return e.keys.CompileAs(source, Any) })
	if err != nil {
		return "", err
	}
	v, err := p.Eval(ctx, map[string]any{"input": input})
	if err != nil || v == nil {
		return "", err
	}
	return asText(v)
}
