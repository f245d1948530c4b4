package composition

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/docpreview"
	"github.com/jig-run/jig/spec"
)

// Engine computes moves for documents and caches the most recently used plans. It is safe for concurrent use.
type Engine struct{ plans plan.Cache[*compiled] }

// compiled holds the plan and the tool of a document.
type compiled struct {
	plan    *Plan
	tool    jig.Tool
	preview *docpreview.Program
}

// NewEngine returns an Engine with an empty cache.
func NewEngine() *Engine { return &Engine{plans: plan.NewCache[*compiled]()} }

// Load reads an execution spec and returns its tool, whose calls run as workflows. document is the file name for error messages. The error
// is a [spec.Problems] if the spec is not valid.
func (e *Engine) Load(document string, body []byte) (plan.Tool, error) {
	entry, err := e.plan(document, body)
	if err != nil {
		return plan.Tool{}, err
	}
	loaded := plan.Tool{Contract: entry.tool}
	if entry.preview != nil {
		loaded.Preview = func(ctx context.Context, input []byte, inv jig.Invocation, read plan.Read) (jig.Preview, error) {
			entry, err := e.plan(document, body) // from the cache, which bounds the memory that compiled documents take
			if err != nil {
				return jig.Preview{}, err
			}
			return entry.preview.Preview(ctx, inv, input, read)
		}
	}
	return loaded, nil
}

// Advance calls [Plan.Advance] for the document with this body. version is the version that the run began with; a body of another version is
// refused as INTERNAL.
func (e *Engine) Advance(ctx context.Context, version string, body []byte, state json.RawMessage, facts Facts, at Situation) (Move, error) {
	entry, err := e.plan("", body)
	if err != nil {
		return Move{}, err
	}
	if err := entry.plan.CheckVersion("run", version); err != nil {
		return Move{}, err
	}
	return entry.plan.Advance(ctx, state, facts, at)
}

func (e *Engine) plan(document string, body []byte) (*compiled, error) {
	return e.plans.Get(body, func() (*compiled, error) {
		x, err := spec.LoadExecution(cmp.Or(document, "the execution spec"), body)
		if err != nil {
			return nil, err
		}
		p, err := Compile(x)
		if err != nil {
			return nil, err
		}
		preview, err := docpreview.Compile(x)
		return &compiled{plan: p, tool: x.Tool, preview: preview}, err
	})
}
