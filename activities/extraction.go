package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/protocol"
)

// inputPath is the path under which the input of an extraction is stored. No task has such an id.
const inputPath = "$input"

// beginExtraction determines which entities the call fills. If the call must not or cannot fill them, it ends with an error, and ended is
// set.
func (c *composition) beginExtraction(ctx context.Context, fence int) (ended *Ran, err error) {
	begun, err := c.Extractor.Begin(ctx, c.root.Tool, c.asCall(), c.root.Input)
	if err == nil {
		c.begun = &begun
		return nil, nil // nil means that the call has not ended
	}
	if ctx.Err() != nil || jig.CodeOf(err).Retryable() {
		return nil, err
	}
	refused := *jig.AsError(err)
	refused.NotExecuted = true // nothing has begun
	ran, err := c.completeChild(ctx, c.root, fence, jig.Failure(&refused), approval.Reads{})
	return &ran, err
}

// asCall returns the invocation whose permissions apply to what the composition reads.
func (c *composition) asCall() jig.Invocation {
	return jig.Invocation{
		Tenant: c.root.Tenant, Principal: c.session.Principal, SessionID: c.root.SessionID, CallID: c.root.ID,
		Agent: c.session.Agent.Name, Depth: c.session.Depth,
	}
}

// prepare reads what the moves of an extraction depend on: the entity type with which it began, and its input, which is stored with the
// first move and never changes.
func (c *composition) prepare(ctx context.Context) (ended *Ran, err error) {
	if !c.fills || c.frame.Done {
		return nil, nil // nil means that the call has not ended
	}
	if c.frame.Revision > 0 {
		kept, err := c.Store.FrameValues(ctx, c.root.Tenant, c.root.SessionID, c.root.ID, []string{inputPath})
		if err != nil {
			return nil, err
		}
		c.at.Input = kept[inputPath]
	} else {
		if c.begun == nil {
			if ended, err = c.beginExtraction(ctx, c.frame.Fence); ended != nil || err != nil {
				return ended, err
			}
		}
		c.at.Input = c.begun.Input
	}
	key := contractKey{c.root.Tenant, DocumentEntityType + "/" + c.frame.Name, c.frame.Version}
	found, err := c.contracts.Get(key, func(contract, bool) (contract, error) {
		body, err := c.Store.DocumentAt(ctx, c.root.Tenant, DocumentEntityType, c.frame.Name, c.frame.Version)
		return contract{body: body}, err
	})
	if err != nil {
		return nil, err
	}
	c.spec.body = found.body
	return nil, nil // nil means that the call has not ended
}

// toEntity adds to a move what only extractions store: the change of the entity and, with the first move, the input.
func (c *composition) toEntity(m *plan.FrameMove, change *entity.Change) {
	if m.Revision == 0 && len(c.at.Input) > 0 {
		m.Values = maps.Clone(m.Values)
		if m.Values == nil {
			m.Values = map[string]json.RawMessage{}
		}
		m.Values[inputPath] = c.at.Input
	}
	m.Entity = change
}

// Entity returns the state of the latest extraction of an entity, without the entity's content.
func (a *Activities) Entity(ctx context.Context, in protocol.EntityRequest) (jig.EntityStatus, error) {
	status, err := a.EntityStatus(ctx, in.Tenant, in.EntityID)
	if jig.CodeOf(err) == jig.CodeNotFound {
		err = jig.Errorf(jig.CodeNotFound, "there is no entity %s", in.EntityID).WithField("entity").
			WithHint("find it with `jig trigger entities.filter`; --tenant selects another tenant")
	}
	return fitStatus(status), temporalError(err)
}

// fitStatus shortens error messages if the status is too large. The events of the session have them in full.
func fitStatus(s jig.EntityStatus) jig.EntityStatus {
	if sizeOf(s) <= pageBytes {
		return s
	}
	for id, t := range s.Tasks {
		if t.Error != nil {
			t.Error = &jig.Error{Code: t.Error.Code, Message: jig.Cut(t.Error.Message, 40)}
			s.Tasks[id] = t
		}
	}
	return s
}

const (
	// inlineTimeout is the time limit, in seconds, of an extraction that is tried in a local activity. maxInline is how many of them run
	// at the same time.
	inlineTimeout = 60
	maxInline     = 8
)

// isExtraction reports whether the calls of a tool fill entities.
func (a *Activities) isExtraction(name string) bool {
	tool, ok := a.Catalog.Tool(name)
	return ok && childOf(tool) == ChildExtraction
}

// markInline marks the extractions among a batch's calls, so that they are first tried in a local activity. It does nothing if an
// extraction of the batch is already known to make calls.
func (c *composition) markInline(refs []CallRef) {
	if !c.makesCalls(c.root.Tenant, c.root.SessionID, c.root.ID).Load() {
		tryInline(refs)
	}
}

func tryInline(refs []CallRef) {
	for i := range refs {
		if refs[i].Child == ChildExtraction {
			refs[i].Local, refs[i].Timeout = true, inlineTimeout
		}
	}
}

// runInline runs extractions that are steps of a batch or were started by a thin tool. An extraction that makes no calls runs to its end
// and needs no workflow of its own. An extraction that makes calls stops before its first call, and a workflow continues it.
func (a *Activities) runInline(ctx context.Context, ref protocol.SessionRef, calls []jig.Call) (map[string]Ran, error) {
	var (
		mu      sync.Mutex
		failed  error
		running sync.WaitGroup
		room    = make(chan struct{}, maxInline)
		done    = map[string]Ran{}
	)
	for _, call := range calls {
		if call.Status.Final() || !a.isExtraction(call.Tool) {
			continue
		}
		running.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			ran, err := a.advanceInline(ctx, ref, call)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && failed == nil {
				failed = err
			}
			done[call.ID] = ran
		})
	}
	running.Wait()
	return done, failed
}

// advanceInline advances one extraction as far as possible without making a call. It runs in its own goroutine, where an uncaught panic would
// crash the worker, so it returns a panic as an error.
func (a *Activities) advanceInline(ctx context.Context, ref protocol.SessionRef, call jig.Call) (ran Ran, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			a.Logger.ErrorContext(ctx, "an extraction panicked", slog.String("session_id", call.SessionID), slog.String("call_id", call.ID),
				slog.String("panic", fmt.Sprint(cause)), slog.String("stack", string(debug.Stack())))
			failed := jig.Errorf(jig.CodeInternal, "call %s failed with an internal error; see the worker's log", call.ID).WithReason("panic")
			ran, err = Ran{}, temporalError(failed)
		}
	}()
	for {
		out, err := a.Compose(ctx, ComposeInput{SessionRef: ref, Call: call.ID, Now: a.Now(), noCalls: true})
		switch {
		case err != nil:
			return Ran{}, err
		case out.Done:
			return out.Ran, nil
		case out.Wake.IsZero(): // it makes a call
			if call.Frame != "" { // the other extractions of its batch probably do too
				a.makesCalls(call.Tenant, call.SessionID, call.Frame).Store(true)
			}
			return Ran{State: jig.CallExecuting, Paused: true}, nil // reported as paused, so that it runs again, as a workflow
		case out.Wake.After(a.Now()): // a pause holds it back
			return Ran{State: call.Status, Paused: true}, nil
		}
	}
}

// maxCallers limits how many batches are remembered.
const maxCallers = 1000

// makesCalls remembers whether the extractions of a batch make calls, so that trying them in a local activity is pointless. It is only a hint.
func (a *Activities) makesCalls(tenant, session, batch string) *atomic.Bool {
	key := tenant + "\x00" + jig.QualifiedCallID(session, batch)
	//nolint:errcheck // the function returns no error
	known, _ := a.callers.Get(key, func(*atomic.Bool, bool) (*atomic.Bool, error) { return new(atomic.Bool), nil })
	return known
}
