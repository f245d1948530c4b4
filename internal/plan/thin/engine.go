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
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/spec"
)

const (
	// maxPlans is the number of plans that an Engine keeps.
	maxPlans = 256
	// timeout limits one attempt, and maxAttempts the number of attempts of a call. Running a call again is safe.
	timeout     = 30 * time.Second
	maxAttempts = 10
)

// Records gives access to the entities and bundles of tenants. Records of other tenants appear not to exist.
type Records interface {
	// HasBundle reports whether the bundle is installed for the tenant now.
	HasBundle(ctx context.Context, tenant, bundle string) (bool, error)
	// Readable returns an entity that the call's principal may read. found is false for every other id, whether or not an entity has it.
	Readable(ctx context.Context, inv jig.Invocation, id string) (e entity.Entity, found bool, err error)
	// InWorkspace reports whether an entity is in a workspace.
	InWorkspace(ctx context.Context, tenant, workspace, id string) (bool, error)
	// Connected lists the entities that are connected with an entity and that the principal may read. Their contents are not needed.
	Connected(ctx context.Context, inv jig.Invocation, id string, which spec.ThinConnected) ([]entity.Entity, error)
	// Trespassed takes ids that were not found and records in the audit which of them belong to another tenant's entities.
	Trespassed(ctx context.Context, inv jig.Invocation, ids []string) error
	// Made returns the entity that was created under a key. found is false if there is none.
	Made(ctx context.Context, tenant, key string) (e entity.Entity, found bool, err error)
	// Create creates an entity after checking the principal's permission. If the key was used before, it returns the entity made then, and
	// created is false. missing lists related ids that do not exist for the principal; if there are any, nothing was created. Errors about
	// fields name the place in the document as their Field, e.g. creates.fields.module.
	Create(ctx context.Context, inv jig.Invocation, c Creation) (e entity.Entity, created bool, missing []string, err error)
}

// Creation is an entity to create.
type Creation struct {
	Type, Title string
	// Content holds the fields by name. Missing fields get their defaults.
	Content map[string]json.RawMessage
	// Relations holds ids by relation name. Workspaces holds names.
	Relations  map[string][]string
	Workspaces []string
	// Bundle is the bundle that the tool belongs to.
	Bundle string
	// Key makes the creation idempotent. Shared says that the key comes from the document and not from the call. Deleting the entity frees
	// a shared key.
	Key    string
	Shared bool
	// SessionID and Call identify the extraction that will fill the entity. They are empty if there is none.
	SessionID, Call string
}

// Starter starts extractions.
type Starter interface {
	// Start begins a session for a call of entities.extract with this input, on behalf of the invocation's principal, and returns at once.
	// If the session already exists, Start does nothing, even if the session has ended.
	Start(ctx context.Context, inv jig.Invocation, session string, input json.RawMessage) error
	// Begun reports whether a session exists. The session that a call was meant to begin does not exist if that call failed first.
	Begun(ctx context.Context, tenant, session string) (bool, error)
}

// Options configures an [Engine].
type Options struct {
	Records Records
	Starter Starter
	// URL is the link for tools that define none. It may contain {tenant}, {entity_id} and {session_id}. The default is
	// /entities/{entity_id}.
	URL string
	// Now is the clock. The default is [time.Now].
	Now func() time.Time
}

// Engine runs thin tools and caches their plans. It is safe for concurrent use.
type Engine struct {
	records Records
	starter Starter
	url     string
	now     func() time.Time

	mu sync.Mutex
	// plans are keyed by the SHA-256 of the document's text.
	plans map[[sha256.Size]byte]*plan
}

// NewEngine returns an Engine with these options.
func NewEngine(o Options) *Engine {
	if o.URL == "" {
		o.URL = "/entities/{entity_id}"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Engine{records: o.Records, starter: o.Starter, url: o.URL, now: o.Now, plans: map[[sha256.Size]byte]*plan{}}
}

// Contract returns the contract of the tool that a thin tool document defines. ok is false for an execution spec of another kind. document
// is the file name for error messages. The error is a [spec.Problems] if the document is not valid.
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

// Run runs a call of the thin tool with this body. version is the version that the call was admitted with; a body of another version is
// refused as INTERNAL. Run never panics; all errors are in the result's Error.
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

// ended gives the code CANCELED or TIMEOUT to an INTERNAL error that was caused by the end of the context.
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
	if len(e.plans) >= maxPlans { // rare; plans that are still in use will be compiled again
		clear(e.plans)
	}
	e.plans[key] = p
	return p, nil
}
