package activities

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/preview"
)

// admittedNow returns the calls of a stored admission that the pass's workflow must work on.
func (a *Activities) admittedNow(ctx context.Context, session jig.Session, admission ledger.Admission, limit int) (Admitted, error) {
	if len(admission.Calls) > limit {
		return a.admittedBefore(ctx, session, admission.Pass, limit)
	}
	return a.openCalls(ctx, session, ledger.Window{Calls: open(admission.Calls), Approvals: byCall(admission.Approvals)})
}

// admittedBefore reads the open calls of a pass that was admitted earlier.
func (a *Activities) admittedBefore(ctx context.Context, session jig.Session, pass, limit int) (Admitted, error) {
	window, err := a.Store.Window(ctx, session.Tenant, session.ID, pass, limit)
	if err != nil {
		return Admitted{}, err
	}
	return a.openCalls(ctx, session, window)
}

// openCalls returns the calls that the pass's workflow must work on. If the session was started in the background to run an extraction, the
// extraction is first tried in a local activity, because an extraction that makes no calls needs no workflow of its own.
func (a *Activities) openCalls(ctx context.Context, session jig.Session, w ledger.Window) (Admitted, error) {
	refs, err := a.refs(ctx, w)
	admitted := Admitted{More: w.More, Calls: refs}
	if session.ParentID != "" && session.Agent.Name == jig.CallAgent {
		tryInline(admitted.Calls)
	}
	return admitted, err
}

func open(calls []jig.Call) []jig.Call {
	var list []jig.Call
	for _, c := range calls {
		if !c.Status.Final() {
			list = append(list, c)
		}
	}
	return list
}

func byCall(list []jig.Pending) map[string]jig.Pending {
	m := make(map[string]jig.Pending, len(list))
	for _, p := range list {
		m[p.Call] = p
	}
	return m
}

// shownBytes limits the total size of a pass's previews, in bytes, so that many approvals do not fill a history.
const shownBytes = 48 << 10

// refs returns references to calls. The reference to a call that waits for a person includes the question or approval.
func (a *Activities) refs(ctx context.Context, w ledger.Window) ([]CallRef, error) {
	list := make([]CallRef, len(w.Calls))
	room := shownBytes / max(1, len(w.Approvals))
	for i, c := range w.Calls {
		ref, err := a.ref(ctx, c)
		if err != nil {
			return nil, err
		}
		if p, ok := w.Approvals[c.ID]; ok && p.Grant == "" {
			ref.Ask = shorten(p, room)
		}
		list[i] = ref
	}
	return list, nil
}

// ref returns the reference to a call. It returns one even if this worker lacks the tool; running the call then reports the error.
func (a *Activities) ref(ctx context.Context, c jig.Call) (CallRef, error) {
	tool, ok, err := a.tool(ctx, c.Tenant, c.Tool, c.Version)
	if err != nil {
		return CallRef{}, err
	}
	if !ok {
		tool = jig.Tool{Name: c.Tool}.WithDefaults()
	}
	ref := CallRef{
		ID: c.ID, Tool: c.Tool, State: c.Status, Title: ledger.Title(c.Input),
		Local: localTool(tool), Child: childOf(tool),
		Previews: tool.Previews && c.Status == jig.CallReserved && c.Verdict == jig.VerdictAsk && c.Preview == nil,
		Timeout:  int((tool.Timeout + time.Second - 1) / time.Second),
	}
	if c.ConcurrencyKey != "" {
		ref.Key = shortHash(c.ConcurrencyKey)
	}
	return ref, nil
}

// shorten cuts a pending approval or question so that it fits into a workflow's history. The store keeps the complete text.
func shorten(p jig.Pending, room int) *jig.Pending {
	p.Tenant, p.SessionID = "", ""
	if p.Preview != nil {
		room /= 2
		fit, cut := preview.Fit(*p.Preview, room)
		p.Preview, p.Truncated = &fit, p.Truncated || cut
	}
	input, truncated := jig.Excerpt(p.Input, room)
	p.Input, p.Truncated = input, p.Truncated || truncated
	if p.Question != nil && sizeOf(p.Question) > room {
		p.Question, p.Truncated = &jig.Question{Text: jig.Cut(p.Question.Text, room)}, true
	}
	p.Summary = jig.Cut(p.Summary, 200)
	return &p
}

// admitted writes the spans of the calls that ended when they were admitted (denied, refused or duplicate ones), and of the approvals that are
// asked for.
func (a *Activities) admitted(ctx context.Context, session jig.Session, admission ledger.Admission) {
	for _, call := range admission.Calls {
		call.Tenant, call.SessionID = admission.Tenant, admission.SessionID
		a.Tracing.CallRefused(ctx, call)
	}
	a.Tracing.Asked(ctx, session, admission.Approvals...)
}

// traced runs a call once, within the span of the attempt.
func (a *Activities) traced(ctx context.Context, found contract, call jig.Call, inv jig.Invocation) jig.ToolResult {
	ctx, end := a.Tracing.Call(ctx, call, inv.Attempt)
	result := found.run(ctx, call.Input, inv)
	end(result)
	return result
}
