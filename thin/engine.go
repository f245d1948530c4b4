package thin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

const (
	// maxPlans is how many plans an Engine keeps.
	maxPlans = 256
	// timeout bounds an attempt, and maxAttempts how often a call is tried: running it again is safe.
	timeout     = 30 * time.Second
	maxAttempts = 10
)

// Records are the entities and bundles of tenants. What is of another tenant is as what is not there.
type Records interface {
	// HasBundle reports whether a tenant has a bundle now.
	HasBundle(ctx context.Context, tenant, bundle string) (bool, error)
	// Readable returns an entity that the call's principal may read; found is false for every other id, whoever's it is.
	Readable(ctx context.Context, inv jig.Invocation, id string) (e jig.Entity, found bool, err error)
	// InWorkspace reports whether an entity is in a workspace.
	InWorkspace(ctx context.Context, tenant, workspace, id string) (bool, error)
	// Connected lists what is connected with an entity and may be read by the principal. Contents are not needed.
	Connected(ctx context.Context, inv jig.Invocation, id string, which jig.ThinConnected) ([]jig.Entity, error)
	// Trespassed writes into the audit which of some ids that were not found are those of another tenant's entities.
	Trespassed(ctx context.Context, inv jig.Invocation, ids []string) error
	// Made returns the entity that was created under a key; found is false when none was.
	Made(ctx context.Context, tenant, key string) (e jig.Entity, found bool, err error)
	// Create makes an entity, after a look at whether the principal may. With a key that was used before it returns what was made
	// then (created is false). missing are ids that the entity would point at and that are not there for the principal: nothing was
	// created then. Errors about fields have as Field where they stand, e.g. creates.fields.module.
	Create(ctx context.Context, inv jig.Invocation, c Creation) (e jig.Entity, created bool, missing []string, err error)
}

// Creation is an entity to be created.
type Creation struct {
	Type, Title string
	// Content are the fields by name; those that are left out get their defaults.
	Content map[string]json.RawMessage
	// Relations are ids by name, Workspaces names.
	Relations  map[string][]string
	Workspaces []string
	// Bundle is the one that the tool belongs to.
	Bundle string
	// Key is what the creation is idempotent by. Shared says that it is not the call's own: a deleted entity does not hold it.
	Key    string
	Shared bool
	// SessionID and Call are those of the extraction that will fill it; empty for none.
	SessionID, Call string
}

// Starter starts extractions.
type Starter interface {
	// Start begins a session for a call of entities.extract with an input, on behalf of the invocation's principal, and returns at once.
	// One that was begun already is left alone, also when it has ended.
	Start(ctx context.Context, inv jig.Invocation, session string, input json.RawMessage) error
	// Begun reports whether a session is there: one that a call was to begin is not when that call failed before.
	Begun(ctx context.Context, tenant, session string) (bool, error)
}

// Options are what an Engine works with.
type Options struct {
	Records Records
	Starter Starter
	// URL is the link of tools that give none, with {tenant}, {entity_id} and {session_id} in it; default /entities/{entity_id}.
	URL string
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Engine runs thin tools and keeps their plans. It is safe for concurrent use.
type Engine struct {
	records Records
	starter Starter
	url     string
	now     func() time.Time

	mu sync.Mutex
	// plans are by the SHA-256 of the document's text.
	plans map[[sha256.Size]byte]*plan
}

// NewEngine makes an Engine.
func NewEngine(o Options) *Engine {
	if o.URL == "" {
		o.URL = "/entities/{entity_id}"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Engine{records: o.Records, starter: o.Starter, url: o.URL, now: o.Now, plans: map[[sha256.Size]byte]*plan{}}
}

// Contract is the tool that a thin tool is when it is called; ok is false for an execution spec of another kind. document is the
// file's name, for messages; the error is a spec.Problems when the document is not sound.
func (e *Engine) Contract(document string, body []byte) (tool jig.Tool, ok bool, err error) {
	if kind := spec.KindOf("", body); kind != spec.KindThinTool {
		return jig.Tool{}, false, nil
	}
	p, err := e.plan(document, body)
	if err != nil {
		return jig.Tool{}, false, err
	}
	return p.tool, true, nil
}

// Run runs a call of the thin tool with this body. version is the one that the call was admitted with: another
// body is refused as INTERNAL. It never panics; what goes wrong is the result's Error.
func (e *Engine) Run(ctx context.Context, version string, body []byte, inv jig.Invocation, input json.RawMessage) (result jig.ToolResult) {
	defer func() {
		if cause := recover(); cause != nil {
			if inv.Logger != nil {
				inv.Logger.ErrorContext(ctx, "thin tool panicked", slog.String("panic", fmt.Sprint(cause)), slog.String("stack", string(debug.Stack())))
			}
			result = jig.Failure(jig.Errorf(jig.CodeInternal, "the tool failed inside; the worker's log has the details").WithReason("panic"))
		}
	}()
	p, err := e.plan("the thin tool", body)
	if err != nil {
		return jig.Failure(noEffect(err))
	}
	if p.tool.Version != version {
		return jig.Failure(noEffect(jig.Errorf(jig.CodeInternal, "the document is of version %s; the call was admitted with %s",
			jig.ShortVersion(p.tool.Version), jig.ShortVersion(version))))
	}
	ctx, cancel := context.WithTimeout(ctx, p.tool.Timeout)
	defer cancel()
	r := &run{Engine: e, plan: p, inv: inv, entities: map[string]any{}, input: input}
	out, err := r.do(ctx)
	if err != nil {
		return jig.Failure(ended(ctx, err))
	}
	return r.result(out)
}

// ended makes an error that only says that the time is over, or that somebody cancelled, one with a code.
func ended(ctx context.Context, err error) error {
	if jig.CodeOf(err) != jig.CodeInternal || ctx.Err() == nil {
		return err
	}
	e := jig.Errorf(jig.CodeCanceled, "the call was canceled: %w", err)
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		e = jig.Errorf(jig.CodeTimeout, "the tool did not end in time: %w", err)
	}
	e.NotExecuted = jig.AsError(err).NotExecuted
	return e
}

func (e *Engine) plan(document string, body []byte) (*plan, error) {
	key := sha256.Sum256(body)
	e.mu.Lock()
	p, ok := e.plans[key]
	e.mu.Unlock()
	if ok {
		return p, nil
	}
	x, err := spec.LoadExecution(document, body)
	if err != nil {
		return nil, err
	}
	if p, err = compile(x); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.plans) >= maxPlans { // rare, and those in use are soon made anew
		clear(e.plans)
	}
	e.plans[key] = p
	return p, nil
}
