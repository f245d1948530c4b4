package composition

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

// maxPlans is the number of plans that an Engine keeps.
const maxPlans = 256

// Engine computes moves for documents and caches the most recently used plans. It is safe for concurrent use.
type Engine struct {
	mu     sync.Mutex
	plans  map[planKey]*list.Element
	recent *list.List
}

// planKey is the SHA-256 of a document's text.
type planKey [sha256.Size]byte

type planEntry struct {
	key  planKey
	plan *Plan
	tool jig.Tool
}

// NewEngine returns an empty Engine.
func NewEngine() *Engine { return &Engine{plans: map[planKey]*list.Element{}, recent: list.New()} }

// Contract returns the tool contract under which an execution spec is called. document is the file name for error messages. The error is a
// [spec.Problems] if the spec is not valid.
func (e *Engine) Contract(document string, body []byte) (jig.Tool, error) {
	entry, err := e.plan(document, body)
	if err != nil {
		return jig.Tool{}, err
	}
	return entry.tool, nil
}

// Advance calls [Plan.Advance] for the document with this body. version is the version that the run began with; a body of another version is
// refused as INTERNAL.
func (e *Engine) Advance(ctx context.Context, version string, body []byte, state json.RawMessage, facts Facts, at Situation) (Move, error) {
	entry, err := e.plan("", body)
	if err != nil {
		return Move{}, err
	}
	if entry.plan.version != version {
		return Move{}, jig.Errorf(jig.CodeInternal, "the document is of version %s; the run began with %s", jig.ShortVersion(entry.plan.version), jig.ShortVersion(version))
	}
	return entry.plan.Advance(ctx, state, facts, at)
}

func (e *Engine) plan(document string, body []byte) (*planEntry, error) {
	key := planKey(sha256.Sum256(body))
	if entry := e.find(key); entry != nil {
		return entry, nil
	}
	if document == "" {
		document = "the execution spec"
	}
	x, err := spec.LoadExecution(document, body)
	if err != nil {
		return nil, err
	}
	plan, err := Compile(x)
	if err != nil {
		return nil, err
	}
	entry := &planEntry{key: key, plan: plan, tool: x.Tool}
	e.add(entry)
	return entry, nil
}

func (e *Engine) find(key planKey) *planEntry {
	e.mu.Lock()
	defer e.mu.Unlock()
	element, ok := e.plans[key]
	if !ok {
		return nil
	}
	e.recent.MoveToFront(element)
	return element.Value.(*planEntry) //nolint:errcheck // the list holds only plan entries
}

func (e *Engine) add(entry *planEntry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.plans[entry.key]; ok {
		return
	}
	e.plans[entry.key] = e.recent.PushFront(entry)
	for e.recent.Len() > maxPlans {
		last := e.recent.Back()
		delete(e.plans, last.Value.(*planEntry).key) //nolint:errcheck // the list holds only plan entries
		e.recent.Remove(last)
	}
}
