package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/confine"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

const (
	// previewTime limits how long computing a preview may take. It fits into the grace period of an attempt, which computes it again.
	previewTime = 5 * time.Second
	// spareTime is left of an activity's time when a preview is computed in it.
	spareTime = 2 * time.Second
	// maxDifferent is how often a preview may turn out to be different before the call runs. With the last time, the call ends.
	maxDifferent = 3
)

// previews computes the preview of one call, once for each input.
type previews struct {
	*Activities
	session jig.Session
	tool    jig.Tool
	// before is the call as it was admitted before; the zero Call if it is admitted for the first time. voted reports that people have approved
	// it like that.
	before jig.Call
	voted  bool
	// known is the preview for input; nil if none was computed. outage is why there is none, if that may pass: a failure of what the tool reads,
	// or a time-out.
	input  []byte
	known  *jig.Preview
	outage *jig.Error
}

// of returns the preview of the call. If there is none, the preview says why. An error means that the preview could not be tried.
func (p *previews) of(ctx context.Context, call jig.Call) (*jig.Preview, error) {
	if p.known != nil && bytes.Equal(p.input, call.Input) {
		return p.known, nil
	}
	found, ok, err := p.find(ctx, call.Tenant, call.Tool, p.tool.Version)
	if err != nil {
		return nil, jig.Errorf(jig.CodeUnavailable, "this worker cannot read the tool %s: %w", call.Tool, err)
	}
	if !ok || found.preview == nil {
		return nil, jig.Errorf(jig.CodeUnavailable, "this worker cannot compute previews of %s", call.Tool)
	}
	shown, outage := p.compute(ctx, found, call)
	if err := ctx.Err(); err != nil {
		return nil, jig.Errorf(jig.CodeCanceled, "the preview of call %s was canceled: %w", call.ID, err)
	}
	p.input, p.known, p.outage = slices.Clone(call.Input), &shown, outage
	return p.known, nil
}

// computed is a preview, with why there is none if that may pass.
type computed struct {
	jig.Preview
	outage *jig.Error
}

// compute runs the tool's preview with the caller's rights. The preview cannot write to the store and, if the tool sends data away, cannot
// connect to anything through jig. A preview that does not return in time is left behind.
func (p *previews) compute(ctx context.Context, found contract, call jig.Call) (jig.Preview, *jig.Error) {
	limit := previewTime
	if ends, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(ends)-spareTime)
	}
	ctx, cancel := context.WithTimeout(confine.ReadOnly(ctx), limit)
	defer cancel()
	if found.tool.Sends() {
		ctx = confine.Offline(ctx)
	}
	call.Preview, call.IdempotencyKey = nil, ""
	inv := p.invocation(p.session, call, 0, nil)
	done := make(chan computed, 1)
	go func() {
		defer func() {
			if cause := recover(); cause != nil {
				p.Logger.ErrorContext(ctx, "a preview panicked", slog.String("tool", call.Tool),
					slog.String("panic", fmt.Sprint(cause)), slog.String("stack", string(debug.Stack())))
				done <- computed{Preview: preview.Missing("it failed with an internal error; see the worker's log")}
			}
		}()
		var raw jig.Preview
		again, stop := context.WithTimeout(ctx, limit/2)
		defer stop()
		err := retryWhileUnavailable(again, func() (err error) {
			raw, err = found.preview(ctx, slices.Clone(call.Input), inv, p.reader(call))
			return err
		})
		if err == nil {
			raw, err = preview.Clean(raw)
		}
		done <- computedFrom(raw, jig.AsError(err))
	}()
	select {
	case found := <-done:
		return found.Preview, found.outage
	case <-ctx.Done():
		late := jig.Errorf(jig.CodeTimeout, "it was not finished after %s", previewTime)
		return preview.Missing(late.Message), late
	}
}

// computedFrom returns the outcome of a tool's preview. failed is nil if it succeeded.
func computedFrom(raw jig.Preview, failed *jig.Error) computed {
	switch {
	case failed == nil:
		return computed{Preview: raw}
	case worthRetrying(failed.Code):
		return computed{preview.Missing(failed.Message), failed}
	}
	return computed{Preview: preview.Missing(failed.Message)}
}

// show sets the preview of a call that asks, in the call and in the approval to open. If previews of the same call have been different too
// often, the call ends instead.
func (p *previews) show(ctx context.Context, call *jig.Call, asked *jig.Pending) error {
	shown, err := p.of(ctx, *call)
	if err != nil {
		return err
	}
	call.Preview = shown
	if bytes.Equal(p.before.Input, call.Input) && p.outage == nil && different(p.before.Preview, shown) {
		why := "what it would change is not what was shown before"
		if p.voted {
			if call.Previews++; call.Previews >= maxDifferent {
				refuse(call, unsteady(call.Tool))
				return nil
			}
			why = fmt.Sprintf("what it would change is not what was approved before; after %d more such changes the call ends", maxDifferent-call.Previews)
		}
		asked.Reasons = append(slices.Clone(asked.Reasons), why)
	}
	if call.Digest, err = digest(p.Store.Installation(), *call); err != nil {
		return err
	}
	asked.Preview, asked.Digest = shown, call.Digest
	return nil
}

// different reports whether a call would change something else than people were shown. A card without a preview showed nothing that could be
// different: who approves it approves the arguments.
func different(shown, now *jig.Preview) bool {
	return shown != nil && shown.Missing == "" && !reflect.DeepEqual(*shown, *now)
}

// unsteady returns the error of a call whose previews were different too often.
func unsteady(tool string) *jig.Error {
	e := jig.Errorf(jig.CodeConflict, "nothing was done: what %s would change was different %d times from what people had approved", tool, maxDifferent).
		WithHint("find out what else changes it, and call again when that is over")
	e.NotExecuted = true
	return e
}

// again returns the call as it would run now. If people were shown a preview, it is computed again. A call that an attempt may have carried out
// keeps its preview, because the attempt may have changed what the preview is computed from. outage is why the preview cannot be computed now,
// if that may pass; then nothing is known to have changed.
func (p *previews) again(ctx context.Context, call jig.Call) (running jig.Call, outage *jig.Error, err error) {
	shown := call.Preview
	if shown == nil || shown.Missing != "" || call.Status != jig.CallReserved || call.InDoubt || call.Version != p.tool.Version {
		return call, nil, nil
	}
	call.Preview, err = p.of(ctx, call)
	return call, p.outage, err
}

// unasked reports whether nobody was asked about a call that asks, because there was no preview yet.
func (p *previews) unasked(ctx context.Context, call jig.Call) (bool, error) {
	if !p.tool.Previews || call.Preview != nil || call.Verdict != jig.VerdictAsk || call.Status != jig.CallReserved {
		return false, nil
	}
	by, _, err := p.Store.Approved(ctx, call.Tenant, call.SessionID, call.ID)
	return len(by) == 0, err
}

// precondition returns the precondition of the preview that people approved.
func precondition(call jig.Call) string {
	if call.Preview == nil {
		return ""
	}
	return call.Preview.Precondition
}

// readers are the tools that [Activities.ReadWithTool] may run. They read from the database quickly, and do not ask a model.
var readers = []string{
	toolname.EntitiesListTypes, toolname.EntitiesFilter, toolname.EntitiesSearch, toolname.EntitiesGet, toolname.EntitiesGetText,
	toolname.EntitiesListRelations, toolname.TasksGetStatus,
}

// ReadWithTool runs a reading tool for a principal, without a session. The rules are those for a call of the tool: the tenant must have the tool, the
// principal the permissions, the input must fit the schema, and policy must allow it. If the call would have to wait for approval, it is refused.
func (a *Activities) ReadWithTool(ctx context.Context, in protocol.ToolReadRequest) (_ protocol.ToolReading, err error) {
	defer asTemporal(&err)
	tool, known, err := a.tool(ctx, in.Tenant, in.Tool, "")
	if err != nil {
		return protocol.ToolReading{}, err
	}
	if !known || !slices.Contains(readers, in.Tool) || !tool.OnlyReads() {
		return protocol.ToolReading{}, jig.Errorf(jig.CodeToolNotFound, "the tool %s cannot be used for reading without a session", jig.Known(in.Tool)).WithField("tool").
			WithHint("call the tool instead")
	}
	session := jig.Session{
		Tenant: in.Tenant, Pass: 1, Principal: in.Principal, Source: jig.SourceAPI, Agent: jig.Agent{Name: jig.CallAgent, Tools: []string{in.Tool}},
	}
	if err := a.acting(ctx, &session); err != nil {
		return protocol.ToolReading{}, err
	}
	data, err := a.readNow(ctx, session, tool, jig.Call{Tenant: in.Tenant, ID: jig.CallID(1, 1), Pass: 1, Ordinal: 1, Tool: tool.Name}, in.Input)
	if len(data) > pageBytes {
		return protocol.ToolReading{}, jig.Errorf(jig.CodeInvalidInput, "the result has %d bytes; at most %d are allowed", len(data), pageBytes).
			WithHint("request fewer entities, fewer fields, or a field of the object")
	}
	return protocol.ToolReading{Data: data}, err
}

// readNow runs a reading tool outside the ledger and returns its data. The call is checked like any other: the principal and its agent must be allowed
// to use the tool, the input must fit, and policy must let the call run without asking.
func (a *Activities) readNow(ctx context.Context, session jig.Session, tool jig.Tool, call jig.Call, input json.RawMessage) (json.RawMessage, error) {
	if refused := allowed(tool, session); refused != nil {
		return nil, refused
	}
	if refused := a.normalize(ctx, session, tool, input, &call); refused != nil {
		return nil, refused
	}
	if err := (&origins{Activities: a}).trace(ctx, session, tool, &call); err != nil { // rules read what the session has read
		return nil, err
	}
	ruling, err := a.Policy.Rule(ctx, tool, call, session, a.Now())
	if err != nil {
		return nil, err
	}
	if ruling.Held != "" || ruling.Verdict != jig.VerdictRun {
		return nil, jig.Errorf(jig.CodeNotPermitted, "policy does not let %s run without asking", tool.Name).WithReason("policy").
			WithHint("call the tool instead; the call waits for approval, or fails with the reason")
	}
	result := a.goContract(tool).run(ctx, call.Input, a.invocation(session, call, 0, nil))
	if !result.Success {
		return nil, result.Error
	}
	return result.Data, nil
}

// reader returns the function that makes the call which a document's preview asks for. The call is checked like every other one: the tool must be
// one that only reads, the caller and its agent may use it, the input fits, and the policies let it run without asking.
func (p *previews) reader(call jig.Call) plan.Read {
	return func(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error) {
		tool, ok, err := p.goTool(ctx, call.Tenant, name)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, p.noTool(ctx, call.Tenant, name)
		}
		if !tool.OnlyReads() {
			return nil, jig.Errorf(jig.CodeNotPermitted, "a preview only reads, and %s does more than that or sends data away", name)
		}
		session := p.session
		if session.Agent.Name == jig.CallAgent && session.Depth == 0 { // nobody but the principal chose the tool, so no agent's list limits it
			session.Agent.Tools = []string{"*"}
		}
		return p.readNow(ctx, session, tool, jig.Call{Tenant: call.Tenant, SessionID: call.SessionID, ID: call.ID, Pass: call.Pass, Tool: name, CreatedAt: p.Now()}, input)
	}
}
