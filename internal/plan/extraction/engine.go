package extraction

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
)

// maxPlans is the number of plans that an Engine keeps.
const maxPlans = 256

// Load parses a document of an entity type. document is the file name for error messages.
type Load func(document string, body []byte) (entity.Type, error)

// Engine computes moves for documents and caches their plans. It is safe for concurrent use.
type Engine struct {
	load   Load
	checks Checks

	mu sync.Mutex
	// plans are keyed by the SHA-256 of the document's text.
	plans map[[sha256.Size]byte]*Plan
}

// NewEngine returns an Engine that parses documents with load. For checks see [Checks].
func NewEngine(load Load, checks Checks) *Engine {
	return &Engine{load: load, checks: checks, plans: map[[sha256.Size]byte]*Plan{}}
}

// Advance calls [Plan.Advance] for the document with this body. version is the version of the entity type that the extraction began with; a
// body of another version is refused as INTERNAL.
func (e *Engine) Advance(ctx context.Context, version string, body []byte, state json.RawMessage, facts Facts, at Situation) (Move, error) {
	plan, err := e.plan(body)
	if err != nil {
		return Move{}, err
	}
	if plan.version != version {
		return Move{}, jig.Errorf(jig.CodeInternal, "the entity type is of version %s; the extraction began with %s", jig.ShortVersion(plan.version),
			jig.ShortVersion(version))
	}
	return plan.Advance(ctx, state, facts, at)
}

// Type returns the entity type of the document with this body, which is parsed once. Callers must not modify it.
func (e *Engine) Type(body []byte) (entity.Type, error) {
	plan, err := e.plan(body)
	if err != nil {
		return entity.Type{}, err
	}
	return plan.kind, nil
}

func (e *Engine) plan(body []byte) (*Plan, error) {
	key := sha256.Sum256(body)
	e.mu.Lock()
	plan, ok := e.plans[key]
	e.mu.Unlock()
	if ok {
		return plan, nil
	}
	kind, err := e.load("the entity type", body)
	if err != nil {
		return nil, err
	}
	if plan, err = Compile(kind, e.checks); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.plans) >= maxPlans { // rare; plans that are still in use will be compiled again
		clear(e.plans)
	}
	e.plans[key] = plan
	return plan, nil
}
