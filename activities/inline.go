package activities

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

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
