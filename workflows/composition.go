package workflows

import (
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/strictjson"
)

// CompositionInput is the input of a run of Composition or Extraction. It names the call that the run answers.
type CompositionInput struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id"`
	Call      string `json:"call"`
	// Task names the tool and its input. It is only shown.
	Task string `json:"task,omitempty"`
	// Canceled reports whether an earlier run was canceled, so that this one undoes what was done.
	Canceled bool `json:"canceled,omitempty"`
	// Told reports whether an earlier run may have reported something that has changed since.
	Told bool `json:"told,omitempty"`
}

// UnmarshalJSON implements [json.Unmarshaler]. It refuses what internal/strictjson refuses.
func (in *CompositionInput) UnmarshalJSON(text []byte) error {
	type plain CompositionInput
	return strictjson.Unmarshal(text, (*plain)(in))
}

// pausedAgain is how long to wait before retrying a call of agent.run that a pause holds back.
const pausedAgain = 30 * time.Second

// stepsAtOnce limits how many calls of a composition run at once. Loops have limits of their own.
const stepsAtOnce = 100

// FrameWorkflowID returns the id of the workflow that answers a call of an execution spec.
func FrameWorkflowID(sessionID, call string) string { return jig.QualifiedCallID(sessionID, call) }

// Composition answers a call of an execution spec. An activity works out the next steps from the stored state, so neither the data nor
// the spec language is part of a replay. The workflow runs the calls that the activity returns, waits for its timers, and runs the
// activity again after each change.
func Composition(ctx workflow.Context, in CompositionInput) (*activities.Ran, error) {
	return newFrame(protocol.CompositionWorkflow, in).toEnd(ctx)
}

// Extraction answers a call that fills one or more entities. It works like Composition; only the activity knows the difference. It
// answers the query status with a [protocol.Progress].
func Extraction(ctx workflow.Context, in CompositionInput) (*activities.Ran, error) {
	c := newFrame(protocol.ExtractionWorkflow, in)
	progress := func() (protocol.Progress, error) {
		if c.far == nil {
			return protocol.Progress{}, nil
		}
		return *c.far, nil
	}
	options := workflow.QueryHandlerOptions{Description: "How many tasks are done, running, failed and skipped. It takes no input."}
	if err := workflow.SetQueryHandlerWithOptions(ctx, protocol.QueryStatus, progress, options); err != nil {
		return nil, err //nolint:wrapcheck // registering fails only on a programming error
	}
	return c.toEnd(ctx)
}

func newFrame(name string, in CompositionInput) *composition {
	c := &composition{
		name:      name,
		callTable: callTable{ref: protocol.SessionRef{Tenant: in.Tenant, SessionID: in.SessionID}}, in: in, canceled: in.Canceled,
		stops: map[string]workflow.CancelFunc{}, earlier: in.Told,
	}
	c.hold = c.stoppable
	return c
}

// toEnd runs the composition until it ends or this run of the workflow does.
func (c *composition) toEnd(ctx workflow.Context) (*activities.Ran, error) {
	c.flags, c.ref.Reset = temporalFlags(ctx), reset(ctx)
	workflow.GoNamed(ctx, "woken", c.listen)
	workflow.GoNamed(ctx, "reports", c.listenReports)
	workflow.GoNamed(ctx, "yield", c.listenYield)
	workflow.GoNamed(ctx, "settled", c.listenSettled)
	for {
		seen := c.changes
		out, err := c.compose(ctx)
		if err != nil {
			return nil, failure(err)
		}
		if out.Done {
			c.outcome = &out.Ran
			c.report(ctx)
			out.Ran.Ending = c.ending
			return &out.Ran, nil
		}
		again, err := c.wait(ctx, out, seen)
		if err != nil {
			return nil, err
		}
		if c.failed(ctx) {
			return nil, failure(c.failure)
		}
		if again && c.yielding {
			return &activities.Ran{State: jig.CallExecuting}, nil
		}
		if again {
			in := c.in
			in.Told = !c.lastReport.same(Waiting{})
			in.Canceled = c.canceled || ctx.Err() != nil // Temporal does not pass a cancel on to the next run
			return nil, workflow.NewContinueAsNewError(ctx, c.name, in)
		}
	}
}

// composition is the state that a run keeps in memory: the current calls, without their inputs and results.
type composition struct {
	callTable
	name    string // the workflow type
	in      CompositionInput
	started int
	// canceled is set once the run is canceled. From then on the composition ends its open calls and undoes finished work.
	canceled bool
	// yielding is set when another workflow is about to take over the composition.
	yielding bool
	// stops holds the functions that cancel running calls, by call id.
	stops map[string]workflow.CancelFunc
	// lastReport is the latest report sent to the session. earlier reports that an earlier run may have sent another one.
	lastReport Waiting
	earlier    bool
	// unbegun reports that the composition has not begun and does so only when a person acts.
	unbegun bool
	// steps are the paths of the running steps, and far is the overall progress. Both are for display.
	steps []string
	far   *protocol.Progress
	// waits are the steps that wait for events or times, for display.
	waits []jig.Wait
	// outcome is set once the composition has ended.
	outcome *activities.Ran
	alarm   alarm
	// timer wakes the composition when a step is due.
	timer wakeTimer
}

// wakeTimer is a timer for a point in time. due is set once that time has come.
type wakeTimer struct {
	at     time.Time
	cancel workflow.CancelFunc
	due    bool
}

// set starts the timer for at, unless it is already set for that time and has not fired. A zero time stops the timer.
func (t *wakeTimer) set(ctx workflow.Context, at time.Time, summary string) {
	if at.Equal(t.at) && !t.due {
		return
	}
	if t.cancel != nil {
		t.cancel()
	}
	*t = wakeTimer{at: at}
	if at.IsZero() {
		return
	}
	ctx, t.cancel = workflow.WithCancel(ctx)
	workflow.GoNamed(ctx, "timer", func(ctx workflow.Context) {
		wait := max(at.Sub(workflow.Now(ctx)), time.Millisecond)
		fired := workflow.NewTimerWithOptions(ctx, wait, workflow.TimerOptions{Summary: summary}).Get(ctx, nil) == nil
		if fired && t.at.Equal(at) {
			t.due = true
		}
	})
}

// compose asks the activity for the next steps and adds the calls that it returns.
func (c *composition) compose(ctx workflow.Context) (activities.Composed, error) {
	if ctx.Err() != nil && !c.canceled {
		c.canceled = true
		c.awaitRunning(ctx)
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx) // the final state must be stored even when the run is canceled
	var a *activities.Activities
	var out activities.Composed
	c.settle()
	err := workflow.ExecuteLocalActivity(databaseOptions(ctx, "work out the next steps"), a.Compose, activities.ComposeInput{
		SessionRef: c.ref, Call: c.in.Call, Now: workflow.Now(ctx), Known: c.known(), Cancel: c.canceled,
	}).Get(ctx, &out)
	if err != nil {
		return out, err //nolint:wrapcheck // the caller turns it into the workflow's failure
	}
	for _, ref := range out.Calls {
		if c.find(ref.ID) == nil {
			c.calls = append(c.calls, &call{ref: c.decided(ref)})
		}
	}
	for _, id := range out.Cancel {
		c.stop(id)
	}
	for _, id := range out.Stop {
		if cancel, ok := c.stops[id]; ok && c.runs(id) { // a call that is not running is started instead, to learn how it ended
			cancel()
		}
	}
	c.steps, c.waits, c.unbegun = out.Steps, out.Waits, out.Stuck
	if out.Progress != nil {
		c.far = out.Progress
	}
	return out, nil
}

// failed reports whether a step failed in a way that no retry can fix, and waits until the other steps have ended. The step is still open
// in the store; the session fails too, and closes it.
func (c *composition) failed(ctx workflow.Context) bool {
	if c.failure == nil {
		return false
	}
	c.awaitRunning(ctx)
	return true
}

// settle drops the finished calls. Their results are in the store.
func (c *composition) settle() {
	c.calls = slices.DeleteFunc(c.calls, func(one *call) bool { return one.ref.State.Final() })
}

func (c *composition) known() []string {
	ids := make([]string, 0, len(c.calls))
	for _, one := range c.calls {
		ids = append(ids, one.ref.ID)
	}
	return ids
}

// stop cancels a call that is no longer needed.
func (c *composition) stop(id string) {
	if cancel, ok := c.stops[id]; ok {
		cancel()
	}
	if one := c.find(id); one != nil && !one.running {
		one.ref.State = jig.CallCanceled
	}
}

func (c *composition) runs(id string) bool {
	one := c.find(id)
	return one != nil && one.running
}

// stoppable gives a call a cancelable context of its own.
func (c *composition) stoppable(ctx workflow.Context, id string) workflow.Context {
	ctx, c.stops[id] = workflow.WithCancel(ctx)
	return ctx
}

// wait starts calls and waits until something happens that may let the composition continue. seen is the number of changes that the
// caller has already handled. again reports that this run must end: it has grown large, or another workflow takes over.
func (c *composition) wait(ctx workflow.Context, out activities.Composed, seen int) (again bool, err error) {
	if c.canceled { // these calls undo what was done, so nothing may cancel them
		ctx, _ = workflow.NewDisconnectedContext(ctx)
	}
	full := c.yielding || c.full(ctx, c.started)
	if !full {
		c.started += c.startReady(ctx, stepsAtOnce)
	}
	if full && c.inFlight() == 0 && !c.timerDue(ctx) {
		return true, nil
	}
	c.report(ctx)
	c.arm(ctx, &c.alarm)
	c.timer.set(ctx, out.Wake, c.due(out.Wake))
	err = workflow.Await(ctx, func() bool { return c.timer.due || c.changes != seen })
	if err != nil && !c.canceled {
		return false, nil // the run was canceled; the next call of compose handles that
	}
	return false, err //nolint:wrapcheck // fails only when the workflow is ended from outside
}

// due says which steps wait until a time, for the summary of its timer.
func (c *composition) due(at time.Time) string {
	var texts []string
	for _, w := range c.waits {
		if w.Until.Equal(at) && len(texts) < 3 {
			texts = append(texts, w.String())
		}
	}
	if len(texts) == 0 {
		return "the next step is due"
	}
	return strings.Join(texts, "; ")
}

// listen receives the signals of the session: decisions on calls of this composition, and notices that an event arrived.
func (c *composition) listen(ctx workflow.Context) {
	for channel := signals(ctx, signalWake); ; {
		var heard activities.Handled
		channel.Receive(ctx, &heard)
		c.note(heard.Decisions)
		for _, ref := range heard.Calls {
			if one := c.find(ref.ID); one != nil && !one.running && !one.ref.State.Final() {
				c.replace(one, ref)
			}
		}
		if heard.Event {
			c.forwardEvent(ctx, heard)
		}
	}
}

// listenReports receives the reports of nested compositions and of the sessions that answer calls.
func (c *composition) listenReports(ctx workflow.Context) {
	for channel := signals(ctx, signalWaiting); ; {
		var waiting Waiting
		channel.Receive(ctx, &waiting)
		if c.hears(waiting) {
			c.report(ctx)
		}
	}
}

// listenYield handles a request to stop: the composition ends as soon as none of its calls is running, and nested compositions get
// the same request. After a reset of the session, a new workflow continues from the stored state.
func (c *composition) listenYield(ctx workflow.Context) {
	signals(ctx, signalYield).Receive(ctx, nil)
	c.yielding = true
	c.changes++
	for _, one := range c.calls {
		if one.running && frames(one.ref.Child) != "" {
			workflow.SignalExternalWorkflow(ctx, FrameWorkflowID(c.ref.SessionID, one.ref.ID), "", signalYield, nil)
		}
	}
}

// forwardEvent forwards an event to the compositions that answer the running calls.
func (b *callTable) forwardEvent(ctx workflow.Context, heard activities.Handled) {
	for _, one := range b.calls {
		if one.running && frames(one.ref.Child) != "" {
			wake(ctx, b.ref.SessionID, one.ref.ID, heard)
		}
	}
}

// wake sends a composition the decisions and events that concern it. If it has already ended, the signal fails, which does no harm.
func wake(ctx workflow.Context, sessionID, call string, heard activities.Handled) {
	workflow.SignalExternalWorkflow(ctx, FrameWorkflowID(sessionID, call), "", signalWake, heard)
}

// report tells the session which calls wait for a person, if that has changed.
func (c *composition) report(ctx workflow.Context) {
	now := Waiting{Call: c.in.Call, Calls: c.awaitingPeople()}
	if c.outcome == nil {
		now.Waits = c.waits
	}
	now.Idle = c.unbegun || c.idle() && len(now.Calls)+c.stuck() > 0
	now.Ending = c.ending
	now.Seq = following(ctx, c.lastReport.Seq)
	workflow.SetCurrentDetails(ctx, c.details())
	if !c.earlier && now.same(c.lastReport) {
		return
	}
	now.send(ctx, c.ref.SessionID, c.earlier || now.Idle != c.lastReport.Idle)
	c.lastReport, c.earlier = now, false
}

// frames returns the type of the workflow that answers a composition or an extraction, the calls whose progress the store keeps in a
// frame. It returns "" for other calls.
func frames(child string) string {
	switch child {
	case activities.ChildComposition:
		return protocol.CompositionWorkflow
	case activities.ChildExtraction:
		return protocol.ExtractionWorkflow
	}
	return ""
}

// runComposition answers a call of an execution spec, or a call that fills entities, with a child workflow.
func (b *callTable) runComposition(ctx workflow.Context, c *call) (activities.Ran, error) {
	options := b.childOptions(FrameWorkflowID(b.ref.SessionID, c.ref.ID), c)
	options.TypedSearchAttributes = temporal.NewSearchAttributes(
		temporal.NewSearchAttributeKeyKeyword(protocol.AttrTenant).ValueSet(b.ref.Tenant),
		temporal.NewSearchAttributeKeyKeywordList(protocol.AttrTool).ValueSet([]string{c.ref.Tool}),
	)
	var ran activities.Ran
	in := CompositionInput{Tenant: b.ref.Tenant, SessionID: b.ref.SessionID, Call: c.ref.ID, Task: protocol.Summary(c.ref.Tool, c.ref.Title)}
	err := b.child(ctx, options, frames(c.ref.Child), in, &ran)
	if err == nil {
		return ran, nil
	}
	// The child was ended from outside or could not continue. Close its call so that this run can continue.
	free, _ := workflow.NewDisconnectedContext(ctx)
	var a *activities.Activities
	err = workflow.ExecuteLocalActivity(databaseOptions(free, "end "+c.words()), a.AbandonFrame, activities.ComposeInput{
		SessionRef: b.ref, Call: c.ref.ID, Now: workflow.Now(ctx),
	}).Get(free, &ran)
	return ran, err //nolint:wrapcheck // ran distinguishes cancellation from failure by Temporal's own types
}
