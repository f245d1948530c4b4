package activities

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/jig-run/jig"
)

const (
	// aloneTimeout bounds extractions that are tried beside a workflow, in seconds, aloneAtOnce how many work at a time.
	aloneTimeout = 60
	aloneAtOnce  = 8
)

// isExtraction reports whether the calls of a tool fill entities.
func (a *Activities) isExtraction(name string) bool {
	tool, ok := a.catalogue.Tool(name)
	return ok && childOf(tool) == ChildExtraction
}

// beside lets the extractions among a batch's calls be tried beside its workflow, until one turned out to make calls.
func (c *composition) beside(refs []CallRef) {
	if c.callers.has(c.root) {
		return
	}
	tryAlone(refs)
}

func tryAlone(refs []CallRef) {
	for i := range refs {
		if refs[i].Child == ChildExtraction {
			refs[i].Local, refs[i].Timeout = true, aloneTimeout
		}
	}
}

// runAlone takes extractions that are steps of a batch, or that a thin tool started, to their end when nothing in them calls anything: then they need no workflow
// of their own. Of the others nothing but their beginning is stored, and they run as workflows from there.
func (a *Activities) runAlone(ctx context.Context, ref SessionRef, calls []jig.Call) (map[string]Ran, error) {
	var (
		mu      sync.Mutex
		failed  error
		running sync.WaitGroup
		room    = make(chan struct{}, aloneAtOnce)
		done    = map[string]Ran{}
	)
	for _, call := range calls {
		if call.Status.Final() || !a.isExtraction(call.Tool) {
			continue
		}
		running.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			ran, err := a.alone(ctx, ref, call)
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

// alone takes one extraction as far as it goes without a call. It runs in a goroutine of its own, where nobody else would catch a
// panic: that is an error of the activity, as it is everywhere else, and not the end of the worker.
func (a *Activities) alone(ctx context.Context, ref SessionRef, call jig.Call) (ran Ran, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			a.logger.ErrorContext(ctx, "an extraction panicked", slog.String("session_id", call.SessionID), slog.String("call_id", call.ID),
				slog.String("panic", fmt.Sprint(cause)), slog.String("stack", string(debug.Stack())))
			failed := jig.Errorf(jig.CodeInternal, "call %s failed inside; the worker's log has the details", call.ID).WithReason("panic")
			ran, err = Ran{}, temporalError(failed)
		}
	}()
	for {
		out, err := a.Compose(ctx, ComposeInput{SessionRef: ref, Call: call.ID, Now: a.now(), alone: true})
		switch {
		case err != nil:
			return Ran{}, err
		case out.Done:
			return out.Ran, nil
		case out.Wake.IsZero(): // it calls something
			if call.Frame != "" { // of a batch, which has more like it
				a.callers.put(jig.Call{Tenant: call.Tenant, SessionID: call.SessionID, ID: call.Frame})
			}
			return Ran{State: jig.CallExecuting, Paused: true}, nil // as one that a pause held back, it is run anew otherwise
		case out.Wake.After(a.now()): // a pause holds it back
			return Ran{State: call.Status, Paused: true}, nil
		}
	}
}

// callers remembers batches whose extractions make calls: trying them beside the workflow would be in vain. It is a hint alone.
type callers struct {
	mu    sync.Mutex
	known map[string]bool
}

// maxCallers bounds what is remembered.
const maxCallers = 1000

func callerKey(c jig.Call) string { return c.Tenant + "\x00" + jig.QualifiedCallID(c.SessionID, c.ID) }

func (c *callers) has(call jig.Call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[callerKey(call)]
}

func (c *callers) put(call jig.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxCallers {
		c.known = map[string]bool{}
	}
	c.known[callerKey(call)] = true
}
