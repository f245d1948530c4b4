package workflows

import (
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
)

// call is a call that the run works on.
type call struct {
	ref activities.CallRef
	// running reports whether an attempt is running in this run.
	running bool
	// stuck reports that the call, if it runs, goes on only when a person acts: a pause holds it back, or everything in the composition or child
	// session that answers it waits for people.
	stuck   bool
	summary string
	// decided reports whether a decision about the call arrived while the attempt was running. What the attempt returns may be older.
	decided bool
	// idle counts the latest consecutive attempts that left the call unchanged.
	idle int
}

// words names the call, with the beginning of its input, for people.
func (c *call) words() string {
	return strings.TrimSpace(c.ref.ID + " " + c.ref.Tool + " " + c.ref.Title)
}

func (c *call) waiting() bool {
	return c.ref.State == jig.CallWaiting || c.ref.State == jig.CallUnknown
}

// ready reports whether the call may run but is not running.
func (c *call) ready() bool {
	return !c.running && (c.ref.State == jig.CallReserved || c.ref.State == jig.CallExecuting)
}

// maxEarly limits how many decisions on unknown calls a run remembers. A session also hears those on the steps of its compositions, which it
// never knows.
const maxEarly = 10_000

// callTable holds the calls that a run works on: those that may start, those that are running, and those that wait.
type callTable struct {
	ref protocol.SessionRef
	// flags are the flags with which the commands for people reach Temporal.
	flags string
	calls []*call
	// early holds the states that decisions gave to calls which the run does not know yet: people learn of a call from the store.
	early map[string]jig.CallStatus
	// failure is an error that no retry can fix.
	failure *jig.Error
	// changes counts the changes to calls, from inside and outside the run.
	changes int
	// asks counts the changes to the calls that wait for people: an approval was replaced, or a composition or child session sent a report.
	asks int
	// reported holds the sequence number of the latest accepted report of a composition or child session, by call.
	reported map[string]int64
	// ending is set when an approval expires whose terms end the session.
	ending jig.ExpiryOutcome
	// lapsing is set while the activity Expire stores reminders, escalations and expiries.
	lapsing bool
	// hold, if set, returns the context that a call runs in.
	hold func(ctx workflow.Context, id string) workflow.Context
}

func newCallTable(ctx workflow.Context, tenant string) callTable {
	return callTable{
		ref: protocol.SessionRef{Tenant: tenant, SessionID: workflow.GetInfo(ctx).WorkflowExecution.ID, Reset: reset(ctx)}, flags: temporalFlags(ctx),
	}
}

// reset reports whether the run came from a reset. It may only be passed to activities: what a run does must not depend on it, because the run
// replays what happened before the reset.
func reset(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.OriginalRunID != "" && info.OriginalRunID != info.WorkflowExecution.RunID
}

// awaitingPeople returns the calls that wait for a person.
func (b *callTable) awaitingPeople() []activities.CallRef {
	var list []activities.CallRef
	for _, c := range b.calls {
		if c.waiting() {
			list = append(list, c.ref)
		}
	}
	return list
}

func (b *callTable) find(id string) *call {
	for _, c := range b.calls {
		if c.ref.ID == id {
			return c
		}
	}
	return nil
}

// startReady starts ready calls in the order in which they were requested, as long as fewer than limit are running, and returns how
// many it started. Calls that go on only when a person acts do not count. A call waits for earlier calls with the same concurrency key. Quick tools that are ready together run in one
// local activity.
func (b *callTable) startReady(ctx workflow.Context, limit int) int {
	started, busy := 0, b.inFlight()-b.stuck()
	var quick []*call
	for i, c := range b.calls {
		if !c.ready() || busy >= limit && !c.stuck || b.blocked(i) {
			continue
		}
		c.running = true
		if !c.stuck {
			busy++
		}
		started++
		if c.ref.Local {
			quick = append(quick, c)
			continue
		}
		workflow.GoNamed(ctx, "call "+c.ref.ID, func(ctx workflow.Context) {
			if b.hold != nil {
				ctx = b.hold(ctx, c.ref.ID)
			}
			b.run(ctx, c)
		})
	}
	if len(quick) > 0 {
		workflow.GoNamed(ctx, "quick calls", func(ctx workflow.Context) { b.runQuick(ctx, quick) })
	}
	return started
}

// blocked reports whether an earlier call with the same concurrency key has not ended. Calls of a pass are ordered by their ordinals: a
// decision may add one to the table before those that were requested earlier. Other calls are in the order of the table.
func (b *callTable) blocked(i int) bool {
	this := b.calls[i]
	if this.ref.Key == "" {
		return false
	}
	for j, other := range b.calls {
		if j == i || other.ref.Key != this.ref.Key || other.ref.State.Final() {
			continue
		}
		earlier := j < i
		if requested := requestedBefore(other, this); requested != requestedBefore(this, other) { // both calls belong to a pass
			earlier = requested
		}
		if earlier {
			return true
		}
	}
	return false
}

// requestedBefore reports whether both calls belong to a pass and c has the lower ordinal.
func requestedBefore(c, other *call) bool {
	_, n, path, err := jig.ParseCallID(c.ref.ID)
	_, m, otherPath, otherErr := jig.ParseCallID(other.ref.ID)
	return err == nil && otherErr == nil && path == "" && otherPath == "" && n < m
}

// run executes one call, as an activity or as a child workflow, and records its state afterwards.
func (b *callTable) run(ctx workflow.Context, c *call) {
	switch c.ref.Child {
	case activities.ChildComposition, activities.ChildExtraction:
		ran, err := b.runComposition(ctx, c)
		b.ended(ctx, c, ran, err)
		return
	case activities.ChildAgent:
		ran, err := b.runAgent(ctx, c)
		b.ended(ctx, c, ran, err)
		return
	}
	var ran activities.Ran
	in := activities.RunInput{SessionRef: b.ref, Call: c.ref.ID, Stuck: c.stuck}
	err := workflow.ExecuteActivity(toolOptions(ctx, c), c.ref.Tool, in).Get(ctx, &ran)
	b.ended(ctx, c, ran, err)
}

// runQuick runs calls in one local activity.
func (b *callTable) runQuick(ctx workflow.Context, calls []*call) {
	var a *activities.Activities
	in := activities.RunLocalInput{SessionRef: b.ref}
	for _, c := range calls {
		in.Calls = append(in.Calls, c.ref.ID)
	}
	var list []activities.Ran
	err := workflow.ExecuteLocalActivity(localToolOptions(ctx, calls), a.RunLocal, in).Get(ctx, &list)
	for i, c := range calls {
		var ran activities.Ran
		if err == nil {
			ran = list[i]
		}
		if idle(ran, err) { // the other calls do not wait for this one
			workflow.GoNamed(ctx, "call "+c.ref.ID, func(ctx workflow.Context) { b.ended(ctx, c, ran, nil) })
			continue
		}
		b.ended(ctx, c, ran, err)
	}
}

// note records how decisions changed the calls.
func (b *callTable) note(decisions []jig.Ruled) {
	b.changes++
	for _, ruled := range decisions {
		if ruled.Status == "" || ruled.Status == jig.CallWaiting || ruled.Status == jig.CallUnknown {
			continue // no decision makes a call wait, so this may be older than a decision that was already applied
		}
		c := b.find(ruled.Call)
		switch {
		case c == nil:
			if b.early == nil {
				b.early = map[string]jig.CallStatus{}
			}
			if len(b.early) < maxEarly {
				b.early[ruled.Call] = ruled.Status
			}
			continue
		case c.running:
			c.decided = true
			continue
		case c.ref.State.Final():
			continue
		}
		c.ref.State = ruled.Status
		if !c.waiting() {
			c.ref.Ask = nil
		}
	}
}

// decided returns the reference to a call that the run does not know yet, as a decision that arrived before it left the call.
func (b *callTable) decided(ref activities.CallRef) activities.CallRef {
	status, ok := b.early[ref.ID]
	if !ok || ref.State != jig.CallWaiting && ref.State != jig.CallUnknown {
		return ref
	}
	ref.State, ref.Ask = status, nil
	return ref
}

// replace stores the new reference of a call. It ignores a reference which says that the call waits if the call no longer does.
func (b *callTable) replace(c *call, ref activities.CallRef) {
	if ref.State == jig.CallWaiting || ref.State == jig.CallUnknown {
		if !c.waiting() {
			return // it was decided in the meantime
		}
		b.asks++
	}
	c.ref = ref
}

// ran records the state of a call after an attempt.
func (b *callTable) ran(ctx workflow.Context, c *call, ran activities.Ran, err error) {
	c.running, c.decided, c.stuck = false, false, ran.Stuck
	b.changes++
	if ran.Ending.Strictness() > b.ending.Strictness() {
		b.ending = ran.Ending
	}
	switch {
	case err == nil && ran.Paused:
		c.ref.State, c.ref.Local = ran.State, false // from now on it runs as an activity, whose retries do not add to the history
	case err == nil:
		c.ref.State, c.ref.Ask, c.ref.Previews, c.summary = ran.State, ran.Ask, false, ran.Summary
	case temporal.IsCanceledError(err) || ctx.Err() != nil:
		c.ref.State = jig.CallCanceled
	default:
		// Only errors that no retry can fix get here. The call is still open in the store; ending the session closes it.
		b.failure = activities.ErrorFrom(err)
		c.ref.State, c.summary = jig.CallFailed, b.failure.Message
	}
}

// awaitRunning waits until no call is running, even if the run is canceled.
func (b *callTable) awaitRunning(ctx workflow.Context) {
	free, _ := workflow.NewDisconnectedContext(ctx)
	_ = workflow.Await(free, func() bool { return b.inFlight() == 0 }) //nolint:errcheck // a disconnected wait cannot be canceled
}

// abandon waits until the running calls have noticed that the session was canceled.
func (b *callTable) abandon(ctx workflow.Context) error {
	b.awaitRunning(ctx)
	return ctx.Err()
}

// progress returns a value that changes whenever the state of a call does. Its first element is the number of running calls.
func (b *callTable) progress() [5]int {
	var p [5]int
	p[3], p[4] = len(b.calls), b.asks
	for i, c := range b.calls {
		switch {
		case c.running:
			p[0]++
		case c.waiting():
			p[1]++
		case c.ref.State.Final():
			p[2] += i + 1
		}
	}
	return p
}

func (b *callTable) inFlight() int { return b.progress()[0] }

// stuck counts the running calls that go on only when a person acts.
func (b *callTable) stuck() int {
	n := 0
	for _, c := range b.calls {
		if c.running && c.stuck {
			n++
		}
	}
	return n
}

// idle reports whether nothing goes on until a person acts.
func (b *callTable) idle() bool { return b.inFlight() == b.stuck() }

// full reports whether the run must start no more calls. If all that run are stuck, the limit is higher: other calls that somebody approves
// meanwhile must not wait for them.
func (b *callTable) full(ctx workflow.Context, started int) bool {
	length := workflow.GetInfo(ctx).GetCurrentHistoryLength()
	if b.inFlight() > 0 && b.idle() && length <= eventsAtMost {
		return false
	}
	return started >= callsPerRun || length > eventsPerRun
}

func (b *callTable) done() bool {
	return b.failure != nil || !slices.ContainsFunc(b.calls, func(c *call) bool { return !c.ref.State.Final() })
}
