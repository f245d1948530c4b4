package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
)

// CompositionInput is the input of a run of Composition or Extraction: the call that it answers.
type CompositionInput struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id"`
	Call      string `json:"call"`
	// Canceled says that an earlier run of it was cancelled: what was done is being undone.
	Canceled bool `json:"canceled,omitempty"`
}

// Waiting is what a composition tells its session whenever it changes: the calls that wait for a person.
type Waiting struct {
	// Call is the call that the composition answers.
	Call  string               `json:"call"`
	Calls []activities.CallRef `json:"calls,omitempty"`
	// Idle says that nothing of it runs: it waits for people alone.
	Idle bool `json:"idle,omitempty"`
	// Ending says that the session ends, because an approval expired that says so.
	Ending jig.ExpiryOutcome `json:"ending,omitempty"`
	// Seq grows with each one that is sent for a call: Temporal may deliver them in another order. 0 in older histories.
	Seq int64 `json:"seq,omitempty"`
}

// following is a sequence number above the last one, also above those of the runs before.
func following(ctx workflow.Context, last int64) int64 {
	return max(last+1, workflow.Now(ctx).UnixNano())
}

// pausedAgain is how soon an agent's call that a pause holds back is looked at again.
const pausedAgain = 30 * time.Second

// stepsAtOnce bounds the calls of a composition that run at once; its loops have bounds of their own.
const stepsAtOnce = 100

// FrameWorkflowID is the id of the workflow that answers a call of an execution spec.
func FrameWorkflowID(sessionID, call string) string { return jig.QualifiedCallID(sessionID, call) }

// Composition answers one call of an execution spec. What it does next is worked out by an activity, from what the store
// knows, so that neither data nor the language is part of a replay: the workflow runs the calls that it is given, keeps
// the time, and asks again whenever something has happened.
func Composition(ctx workflow.Context, in CompositionInput) (*activities.Ran, error) {
	return newFrame(CompositionWorkflow, in).toEnd(ctx)
}

// Extraction answers one call that fills an entity, or many, as Composition answers one of an execution spec: what tells them
// apart is known to the activity alone. It answers the query status with a jig.Progress.
func Extraction(ctx workflow.Context, in CompositionInput) (*activities.Ran, error) {
	c := newFrame(ExtractionWorkflow, in)
	err := workflow.SetQueryHandler(ctx, QueryStatus, func() (jig.Progress, error) {
		if c.far == nil {
			return jig.Progress{}, nil
		}
		return *c.far, nil
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // registering fails for a programming error alone
	}
	return c.toEnd(ctx)
}

func newFrame(name string, in CompositionInput) *composition {
	c := &composition{
		name:  name,
		board: board{ref: activities.SessionRef{Tenant: in.Tenant, SessionID: in.SessionID}}, in: in, canceled: in.Canceled,
		stops: map[string]workflow.CancelFunc{},
	}
	c.hold = c.stoppable
	return c
}

// toEnd runs a workflow to the end of its frame, or of the run.
func (c *composition) toEnd(ctx workflow.Context) (*activities.Ran, error) {
	workflow.GoNamed(ctx, "woken", c.listen)
	workflow.GoNamed(ctx, "yield", c.listenYield)
	workflow.GoNamed(ctx, "settled", c.listenSettled)
	for {
		seen := c.changes
		out, err := c.compose(ctx)
		if err != nil {
			return nil, failure(err)
		}
		if out.Done {
			c.report(ctx)
			out.Ran.Ending = c.ending
			return &out.Ran, nil
		}
		again, err := c.wait(ctx, out, seen)
		if err != nil {
			return nil, err
		}
		if again && c.yielding {
			return &activities.Ran{State: jig.CallExecuting}, nil
		}
		if again {
			in := c.in
			in.Canceled = c.canceled
			return nil, workflow.NewContinueAsNewError(ctx, c.name, in)
		}
	}
}

// composition is what a run keeps in memory: the calls in hand, and nothing of what they say.
type composition struct {
	board
	name    string // of the workflow's type
	in      CompositionInput
	started int
	// canceled is set once the run was cancelled: from then on it ends what is open and undoes what was done.
	canceled bool
	// yielding is set once another workflow is about to go on with the composition.
	yielding bool
	// stops cancel the calls that run.
	stops map[string]workflow.CancelFunc
	// told is what the session was told last.
	told Waiting
	// steps under way, and how far it has come, for people.
	steps []string
	far   *jig.Progress
	alarm alarm
	// timer wakes the composition at the next moment of a step.
	timer wakeTimer
}

// wakeTimer is set for a moment, and due when it has come.
type wakeTimer struct {
	at     time.Time
	cancel workflow.CancelFunc
	due    bool
}

// set sets the timer for a moment, unless it is set for it already; a zero moment stops it.
func (t *wakeTimer) set(ctx workflow.Context, at time.Time) {
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
		fired := workflow.NewTimerWithOptions(ctx, wait, workflow.TimerOptions{Summary: "the next moment of a step"}).Get(ctx, nil) == nil
		if fired && t.at.Equal(at) {
			t.due = true
		}
	})
}

// compose asks what is to be done now.
func (c *composition) compose(ctx workflow.Context) (activities.Composed, error) {
	if ctx.Err() != nil && !c.canceled {
		c.canceled = true
		free, _ := workflow.NewDisconnectedContext(ctx)
		_ = workflow.Await(free, func() bool { return c.inFlight() == 0 }) //nolint:errcheck // a disconnected wait cannot be cancelled
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx) // the last word must be written also when the run is cancelled
	var a *activities.Activities
	var out activities.Composed
	c.settle()
	err := workflow.ExecuteLocalActivity(databaseOptions(ctx), a.Compose, activities.ComposeInput{
		SessionRef: c.ref, Call: c.in.Call, Now: workflow.Now(ctx), Known: c.known(), Cancel: c.canceled,
	}).Get(ctx, &out)
	if err != nil {
		return out, err //nolint:wrapcheck // the caller turns it into the workflow's failure
	}
	for _, ref := range out.Calls {
		if c.find(ref.ID) == nil {
			c.calls = append(c.calls, &call{ref: ref})
		}
	}
	for _, id := range out.Cancel {
		c.stop(id)
	}
	for _, id := range out.Stop {
		if cancel, ok := c.stops[id]; ok && c.runs(id) { // a call that does not run is started: that shows what became of it
			cancel()
		}
	}
	c.steps = out.Steps
	if out.Progress != nil {
		c.far = out.Progress
	}
	return out, nil
}

// settle drops the calls that are over: what they gave is in the store.
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

// stop ends a call that is of no use any more.
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

// stoppable gives a call a context of its own, so that it can be stopped.
func (c *composition) stoppable(ctx workflow.Context, id string) workflow.Context {
	ctx, c.stops[id] = workflow.WithCancel(ctx)
	return ctx
}

// wait runs the calls in hand until something has happened (since seen) that may let the composition go on; again says that
// the run has grown enough and the next one is to go on.
func (c *composition) wait(ctx workflow.Context, out activities.Composed, seen int) (again bool, err error) {
	if c.canceled { // what is done now undoes what was done: nobody cancels that
		ctx, _ = workflow.NewDisconnectedContext(ctx)
	}
	full := c.yielding || c.started >= callsPerRun || grown(ctx)
	if !full {
		c.started += c.startReady(ctx, stepsAtOnce)
	}
	if full && c.inFlight() == 0 && !c.timeActs(ctx) {
		return true, nil
	}
	c.report(ctx)
	c.arm(ctx, &c.alarm)
	c.timer.set(ctx, out.Wake)
	err = workflow.Await(ctx, func() bool { return c.timer.due || c.changes != seen })
	if err != nil && !c.canceled {
		return false, nil // the run was cancelled: the next round sees to it
	}
	return false, err //nolint:wrapcheck // fails only when the workflow is cut off
}

// listen takes what the session passes on: decisions on calls of this composition, and word that an event came.
func (c *composition) listen(ctx workflow.Context) {
	for channel := workflow.GetSignalChannel(ctx, signalWake); ; {
		var heard activities.Heard
		channel.Receive(ctx, &heard)
		c.note(heard.Decisions)
		for _, ref := range heard.Calls {
			if one := c.find(ref.ID); one != nil && !one.running && !one.ref.State.Final() {
				c.replace(one, ref)
			}
		}
		if heard.Event {
			c.passOn(ctx, heard)
		}
	}
}

// listenYield ends the composition as it stands, when it is asked to: with its calls in flight over, and those of its own
// compositions. After a reset of the session, a new workflow goes on from what is stored.
func (c *composition) listenYield(ctx workflow.Context) {
	workflow.GetSignalChannel(ctx, signalYield).Receive(ctx, nil)
	c.yielding = true
	c.changes++
	for _, one := range c.calls {
		if one.running && frames(one.ref.Child) != "" {
			workflow.SignalExternalWorkflow(ctx, FrameWorkflowID(c.ref.SessionID, one.ref.ID), "", signalYield, nil)
		}
	}
}

// passOn lets the compositions of this one's steps hear of an event too.
func (b *board) passOn(ctx workflow.Context, heard activities.Heard) {
	for _, one := range b.calls {
		if one.running && frames(one.ref.Child) != "" {
			wake(ctx, b.ref.SessionID, one.ref.ID, heard)
		}
	}
}

// wake tells a composition that something concerns it. One that has ended does not hear it, and need not.
func wake(ctx workflow.Context, sessionID, call string, heard activities.Heard) {
	workflow.SignalExternalWorkflow(ctx, FrameWorkflowID(sessionID, call), "", signalWake, heard)
}

// report tells the session what waits for a person, when that has changed.
func (c *composition) report(ctx workflow.Context) {
	now := Waiting{Call: c.in.Call, Calls: c.asking()}
	now.Idle = len(now.Calls) > 0 && c.inFlight() == 0
	now.Ending = c.ending
	now.Seq = following(ctx, c.told.Seq)
	workflow.SetCurrentDetails(ctx, c.details())
	if now.Idle == c.told.Idle && now.Ending == c.told.Ending && slices.EqualFunc(now.Calls, c.told.Calls, sameAsk) {
		return
	}
	c.told = now
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	workflow.SignalExternalWorkflow(ctx, c.ref.SessionID, "", signalWaiting, now)
}

func sameAsk(x, y activities.CallRef) bool {
	return x.ID == y.ID && x.State == y.State && (x.Ask == nil) == (y.Ask == nil) && (x.Ask == nil || x.Ask.Digest == y.Ask.Digest &&
		len(x.Ask.Votes) == len(y.Ask.Votes) && len(x.Ask.Delegations) == len(y.Ask.Delegations))
}

// frames is the type of the workflow that answers calls by a frame, of which the store knows where it stands; "" of others.
func frames(child string) string {
	switch child {
	case activities.ChildComposition:
		return CompositionWorkflow
	case activities.ChildExtraction:
		return ExtractionWorkflow
	}
	return ""
}

// runComposition answers a call of an execution spec, or one that fills an entity, by a child workflow.
func (b *board) runComposition(ctx workflow.Context, c *call) (activities.Ran, error) {
	options := b.childOptions(FrameWorkflowID(b.ref.SessionID, c.ref.ID), c)
	options.TypedSearchAttributes = temporal.NewSearchAttributes(
		temporal.NewSearchAttributeKeyKeyword(AttrTenant).ValueSet(b.ref.Tenant),
		temporal.NewSearchAttributeKeyKeywordList(AttrTool).ValueSet([]string{c.ref.Tool}),
	)
	var ran activities.Ran
	in := CompositionInput{Tenant: b.ref.Tenant, SessionID: b.ref.SessionID, Call: c.ref.ID}
	err := b.child(ctx, options, frames(c.ref.Child), in, &ran)
	if err == nil {
		return ran, nil
	}
	// The child was ended from outside, or could not go on: its call is closed, so that this run can.
	free, _ := workflow.NewDisconnectedContext(ctx)
	var a *activities.Activities
	err = workflow.ExecuteLocalActivity(databaseOptions(free), a.AbandonFrame, activities.ComposeInput{
		SessionRef: b.ref, Call: c.ref.ID, Now: workflow.Now(ctx),
	}).Get(free, &ran)
	return ran, err //nolint:wrapcheck // ran tells cancellation from failure by Temporal's own types
}
