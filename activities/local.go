package activities

import (
	"context"
	"slices"
	"sync"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// RunLocalInput names the calls to run in a local activity.
type RunLocalInput struct {
	protocol.SessionRef
	Calls []string `json:"calls"`
}

// RunLocal runs calls of quick, read-only, idempotent tools together: it reads the calls once, runs all tools at the same time, and
// records all results at once. A call that is not that simple (another attempt has begun, the tool changed, the result is large, or a
// retry may help) runs as in RunTool. Extractions that make no calls run to their end. The results are in the order of the input.
func (a *Activities) RunLocal(ctx context.Context, in RunLocalInput) ([]Ran, error) {
	session, calls, err := a.store.CallsOf(ctx, in.Tenant, in.SessionID, in.Calls)
	if err != nil {
		return nil, temporalError(err)
	}
	if err := a.acting(ctx, &session); err != nil {
		return nil, temporalError(err)
	}
	quick := a.runQuick(ctx, session, calls)
	finished := map[string]Ran{}
	inline, err := a.runInline(ctx, in.SessionRef, calls)
	if err != nil {
		return nil, err
	}
	if len(quick) > 0 {
		ids, err := a.store.FinishQuick(ctx, in.Tenant, in.SessionID, quick)
		if err != nil {
			return nil, temporalError(err)
		}
		for _, id := range ids {
			finished[id] = Ran{}
		}
		for _, done := range quick {
			if _, ok := finished[done.CallID]; ok {
				finished[done.CallID] = Ran{State: done.Status, Summary: jig.Cut(done.Result.Summary, 120)}
			}
		}
	}
	list := make([]Ran, len(in.Calls))
	for i, id := range in.Calls {
		ran, ok := finished[id]
		if !ok {
			ran, ok = inline[id]
		}
		if paused(calls, id) {
			if err := a.store.NoteHeld(ctx, in.Tenant, in.SessionID, id); err != nil {
				return nil, temporalError(err)
			}
			list[i] = Ran{State: jig.CallReserved, Paused: true}
			continue
		}
		if !ok {
			if ran, err = a.tryTool(ctx, RunInput{SessionRef: in.SessionRef, Call: id}); err != nil {
				return nil, temporalError(err)
			}
		}
		list[i] = ran
	}
	return list, nil
}

// runQuick runs the calls that have not begun, all at the same time. It returns the records of those calls that need only one record.
func (a *Activities) runQuick(ctx context.Context, session jig.Session, calls []jig.Call) []ledger.QuickCompletion {
	records := make([]*ledger.QuickCompletion, len(calls))
	var running sync.WaitGroup
	for i, call := range calls {
		tool, ok := a.catalogue.Tool(call.Tool) // only Go tools are quick
		if !ok || !localTool(tool) {
			continue
		}
		if unreserved, err := a.mayRunUnreserved(ctx, session, tool, call); err != nil || !unreserved {
			continue
		}
		running.Go(func() {
			progress, flush := a.progress(ctx, call)
			record := a.firstAttempt(ctx, session, a.inCode(tool), call, progress)
			flush()
			if recordable(record) {
				records[i] = &record
			}
		})
	}
	running.Wait()
	list := make([]ledger.QuickCompletion, 0, len(records))
	for _, record := range records {
		if record != nil {
			list = append(list, *record)
		}
	}
	return list
}

// paused reports whether a pause holds back a call that has not begun.
func paused(calls []jig.Call, id string) bool {
	return slices.ContainsFunc(calls, func(c jig.Call) bool { return c.ID == id && c.Paused != "" && c.Status == jig.CallReserved })
}

// localTool reports whether a tool may run in a local activity.
func localTool(t jig.Tool) bool { return t.Execution == jig.ExecutionLocal && repeatable(t) }
