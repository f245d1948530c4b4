package extraction

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan"
)

// Load parses a document of an entity type. document is the file name for error messages.
type Load func(document string, body []byte) (entity.Type, error)

// Engine computes moves for documents and caches their plans. It is safe for concurrent use.
type Engine struct {
	load   Load
	checks Checks
	plans  plan.Cache[*Plan]
}

// NewEngine returns an Engine that parses documents with load and checks values with checks.
func NewEngine(load Load, checks Checks) *Engine {
	return &Engine{load: load, checks: checks, plans: plan.NewCache[*Plan]()}
}

// Advance calls [Plan.Advance] for the document with this body. version is the version of the entity type that the extraction began with; a
// body of another version is refused as INTERNAL.
func (e *Engine) Advance(ctx context.Context, version string, body []byte, state json.RawMessage, facts Facts, at Situation) (Move, error) {
	p, err := e.plan(body)
	if err != nil {
		return Move{}, err
	}
	if err := p.CheckVersion("extraction", version); err != nil {
		return Move{}, err
	}
	return p.Advance(ctx, state, facts, at)
}

// Type returns the entity type of the document with this body, which is parsed once. Callers must not modify it.
func (e *Engine) Type(body []byte) (entity.Type, error) {
	p, err := e.plan(body)
	if err != nil {
		return entity.Type{}, err
	}
	return p.kind, nil
}

func (e *Engine) plan(body []byte) (*Plan, error) {
	return e.plans.Get(body, func() (*Plan, error) {
		kind, err := e.load("the entity type", body)
		if err != nil {
			return nil, err
		}
		return Compile(kind, e.checks)
	})
}
