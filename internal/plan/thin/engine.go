// Package thin turns the documents of thin tools into tools. Such a document says which entities a call starts from, which conditions must
// hold, which one entity is created, and which extraction of that entity is started. A call does this and returns at once, while a separate
// session fills the entity's fields. Running a call again is safe: there is one entity and one extraction, however often an attempt is
// interrupted.
//
// A thin tool runs like every other tool, through [tools.Registry]. The package must not know how entities are stored, how sessions are
// started, or Temporal. It accesses them through the interfaces [Store] and [Sessions].
package thin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// timeout limits one attempt, and maxAttempts the number of attempts of a call. Running a call again is safe.
const (
	timeout     = 30 * time.Second
	maxAttempts = 10
)

// Options configures an [Engine]. Records, Starter and Tools are required.
type Options struct {
	Records Records
	Starter Starter
	// Tools runs the calls.
	Tools *tools.Registry
	// URL is the link for tools that define no URL. It may contain {tenant}, {entity_id} and {session_id}. The default is
	// /entities/{entity_id}.
	URL string
	// Now is the clock. The default is [time.Now].
	Now func() time.Time
}

// Engine compiles the documents of thin tools to tools. It is safe for concurrent use.
type Engine struct {
	records  Records
	starter  Starter
	tools    *tools.Registry
	url      string
	now      func() time.Time
	compiled plan.Cache[tools.Tool]
}

// NewEngine returns an Engine with these options.
func NewEngine(o Options) *Engine {
	if o.URL == "" {
		o.URL = "/entities/{entity_id}"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Engine{records: o.Records, starter: o.Starter, tools: o.Tools, url: o.URL, now: o.Now, compiled: plan.NewCache[tools.Tool]()}
}

// Load reads the document of a thin tool. Calls of the tool run as an activity. document is the file name for error messages. The error is a
// [spec.Problems] if the document is not valid.
func (e *Engine) Load(document string, body []byte) (plan.Tool, error) {
	tool, err := e.tool(document, body)
	if err != nil {
		return plan.Tool{}, err
	}
	run := func(ctx context.Context, input []byte, inv jig.Invocation) jig.ToolResult {
		tool, err := e.tool(document, body) // from the cache, which bounds the memory that compiled tools take
		if err != nil {
			return jig.Failure(noEffect(err))
		}
		return e.tools.RunDocument(ctx, tool, input, inv)
	}
	loaded := plan.Tool{Contract: tool.Contract(), Run: run}
	if loaded.Contract.Previews {
		loaded.Preview = func(ctx context.Context, input []byte, inv jig.Invocation, read plan.Read) (jig.Preview, error) {
			tool, err := e.tool(document, body)
			if err != nil {
				return jig.Preview{}, err
			}
			return e.tools.PreviewDocument(withRead(ctx, read), tool, input, inv)
		}
	}
	return loaded, nil
}

// tool compiles a document to a tool.
func (e *Engine) tool(document string, body []byte) (tools.Tool, error) {
	return e.compiled.Get(body, func() (tools.Tool, error) {
		x, err := spec.LoadExecution(document, body)
		if err != nil {
			return tools.Tool{}, err
		}
		def, err := compile(x)
		if err != nil {
			return tools.Tool{}, err
		}
		tool := tools.OfDocument(def.tool, e.handler(def))
		if def.tool.Previews {
			tool = tool.Previewed(e.previewer(def))
		}
		return tool, nil
	})
}

// handler returns the function that runs an attempt of a call.
func (e *Engine) handler(def *definition) tools.Handler {
	return func(ctx context.Context, inv jig.Invocation, input json.RawMessage) jig.ToolResult {
		r := &run{Engine: e, def: def, inv: inv, entities: map[string]any{}, input: input}
		out, err := r.do(ctx)
		if err != nil {
			return jig.Failure(err)
		}
		return r.result(out)
	}
}
