package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/spec"
)

// thinDocument is the thin tool of P3. It creates an entity and starts its extraction, which has seven compute tasks.
const thinDocument = `kind: thin_tool
name: bench.review
description: Creates a page and starts to fill it.
input_schema:
  type: object
  required: [path]
  properties: {path: {type: string}}
creates:
  type: page
  title: "${input.path}"
  fields: {path: "${input.path}"}
starts: {}
`

// thinTool is the tool's name.
const thinTool = "bench.review"

// thinEvery is the time between calls: ten calls per second.
const thinEvery = 100 * time.Millisecond

// thinTools measures P3: how soon a thin tool answers while the extractions that it has started are running. Calls start at fixed times, even
// if earlier calls have not been answered. The duration of each call is measured from its scheduled time.
func thinTools(ctx context.Context, b *bench) ([]row, error) {
	tenant := newTenant("thin")
	if err := b.registerThin(ctx, tenant); err != nil {
		return nil, err
	}
	for n := range 5 { // warm up
		one, err := b.thinCall(ctx, tenant, -1-n, time.Now())
		if err == nil {
			err = b.thinFilled(ctx, tenant, one.session)
		}
		if err != nil {
			return nil, err
		}
	}
	var calls []thinCall
	began := time.Now()
	err := b.profiled("p3", "jig", func() (err error) {
		calls, err = b.thinLoad(ctx, tenant, int(b.size.thinFor/thinEvery))
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, one := range calls { // every extraction must complete
		if err := b.thinFilled(ctx, tenant, one.session); err != nil {
			return nil, err
		}
	}
	all := time.Since(began)
	times := make([]float64, len(calls))
	for i, one := range calls {
		times[i] = milliseconds(one.took)
	}
	p50, p99, slowest := quantile(times, 0.5), quantile(times, 0.99), quantile(times, 1)
	what := fmt.Sprintf("thin tool, %d calls per second for %s: due time of the call → answer, ", time.Second/thinEvery, b.size.thinFor)
	return []row{
		{figure: what + "p50", target: "≤ 60 ms", jig: fmt.Sprintf("%.1f ms", p50), verdict: judge(p50 <= 60)},
		{figure: what + "p99 (slowest)", target: "< 500 ms", jig: fmt.Sprintf("%.1f ms (%.1f)", p99, slowest), verdict: judge(p99 < 500)},
		{
			figure: fmt.Sprintf("extractions of %d compute tasks that these calls started: completed (after the first call)", len(fillSteps())),
			target: "all", jig: fmt.Sprintf("%d of %d (%s)", len(calls), int(b.size.thinFor/thinEvery), all.Round(100*time.Millisecond)),
			verdict: judge(len(calls) == int(b.size.thinFor/thinEvery)),
		},
	}, nil
}

func (b *bench) registerThin(ctx context.Context, tenant string) error {
	if _, err := b.fillTenant(ctx, tenant, sevenTasks, 0); err != nil {
		return err
	}
	tool, err := b.engine.specs.Load(thinTool, []byte(thinDocument))
	if err != nil {
		return fmt.Errorf("read %s: %w", thinTool, err)
	}
	if err := b.engine.store.PutDocument(ctx, tenant, activities.DocumentSpec, thinTool, tool.Contract.Version, []byte(thinDocument)); err != nil {
		return fmt.Errorf("register %s: %w", thinTool, err)
	}
	return nil
}

// thinCall is an answered call of the thin tool.
type thinCall struct {
	// session is the session that fills the created entity.
	session string
	took    time.Duration
}

// thinLoad starts each call when it is due.
func (b *bench) thinLoad(ctx context.Context, tenant string, n int) ([]thinCall, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	calls := make([]thinCall, n)
	var running sync.WaitGroup
	began := time.Now()
	for i := range calls {
		due := began.Add(time.Duration(i) * thinEvery)
		if pause(ctx, time.Until(due)) != nil {
			break
		}
		running.Go(func() {
			var err error
			if calls[i], err = b.thinCall(ctx, tenant, i, due); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	return calls, context.Cause(ctx) //nolint:wrapcheck // the error of a call or of the caller's context
}

func (b *bench) thinCall(ctx context.Context, tenant string, n int, due time.Time) (thinCall, error) {
	answer, err := b.jig.Trigger(ctx, client.CallInput{
		Tenant: tenant, Tool: thinTool, Input: fmt.Appendf(nil, `{"path":"github.com/owner%d/page%d"}`, n%17, n), Principal: filler(),
	}, "")
	took := time.Since(due)
	if err != nil {
		return thinCall{}, fmt.Errorf("call %s: %w", thinTool, err)
	}
	var made spec.ThinResult
	if answer.Result == nil || !answer.Result.Success {
		return thinCall{}, fmt.Errorf("session %s is %s: %+v", answer.SessionID, answer.Status, answer.Result)
	}
	err = json.Unmarshal(answer.Result.Data, &made)
	if err == nil && made.SessionID == "" {
		err = errors.New("the result names no session")
	}
	if err != nil {
		return thinCall{}, fmt.Errorf("session %s gave %s: %w", answer.SessionID, answer.Result.Data, err)
	}
	return thinCall{session: made.SessionID, took: took}, nil
}

// thinFilled waits until an extraction has completed.
func (b *bench) thinFilled(ctx context.Context, tenant, session string) error {
	ended, err := b.jig.WaitCall(ctx, tenant, session)
	if err != nil {
		return fmt.Errorf("wait for the extraction %s: %w", session, err)
	}
	var out struct {
		Counts struct{ Completed int } `json:"counts"`
	}
	if ended.Result == nil || !ended.Result.Success || json.Unmarshal(ended.Result.Data, &out) != nil || out.Counts.Completed != len(fillSteps()) {
		return fmt.Errorf("the extraction %s is %s: %+v", session, ended.Status, ended.Result)
	}
	return nil
}
