package workflows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/protocol"
)

const (
	// maxIdle is how many times in a row a call may come back without having run.
	maxIdle = 20
	// firstRest is the wait before a call that came back without having run is started again. It doubles each time, up to longestRest.
	firstRest   = time.Second
	longestRest = 30 * time.Second
)

// idle reports whether an attempt left its call open and unchanged even though no pause holds it back.
func idle(ran activities.Ran, err error) bool {
	return err == nil && !ran.Paused && (ran.State == jig.CallReserved || ran.State == jig.CallExecuting)
}

// ended records the end of an attempt. A call that made no progress waits before it starts again, so that it does not loop without a
// pause. After too many such attempts the call fails.
func (b *callTable) ended(ctx workflow.Context, c *call, ran activities.Ran, err error) {
	if err == nil && b.superseded(ctx, c, &ran) {
		c.idle = 0
		b.ran(ctx, c, ran, nil)
		return
	}
	switch {
	case !idle(ran, err):
		c.idle = 0
	case c.idle == maxIdle:
		err = failure(jig.Errorf(jig.CodeUnavailable, "call %s of %s was started %d times and never ran: it is still %s",
			c.ref.ID, c.ref.Tool, maxIdle+1, ran.State).WithHint("the workers' logs may say why; send a message to continue the session"))
	default:
		rest := min(firstRest<<c.idle, longestRest)
		c.idle++
		err = workflow.Sleep(ctx, rest)
	}
	b.ran(ctx, c, ran, err)
}

// superseded reports whether people decided, before an attempt returned, on the question with which it ended. ran becomes the state that the
// store has now.
func (b *callTable) superseded(ctx workflow.Context, c *call, ran *activities.Ran) bool {
	changed := false
	for c.decided && (ran.State == jig.CallWaiting || ran.State == jig.CallUnknown) {
		c.decided = false
		var a *activities.Activities
		var stands activities.Ran
		in := activities.RunInput{SessionRef: b.ref, Call: c.ref.ID}
		if err := workflow.ExecuteLocalActivity(databaseOptions(ctx, "read what was decided about "+c.ref.ID), a.Standing, in).Get(ctx, &stands); err != nil {
			return changed // the session is being canceled
		}
		if stands.State != ran.State || stands.Ask != nil {
			*ran, changed = stands, true
		}
	}
	return changed
}

// listenSettled receives the signals which say that a call changed without this workflow: it was settled late, or others may decide it now, or nobody.
func (b *callTable) listenSettled(ctx workflow.Context) {
	for channel := signals(ctx, protocol.SignalSettled); ; {
		var settled protocol.Settlement
		channel.Receive(ctx, &settled)
		workflow.GoNamed(ctx, "settled "+settled.Call, func(ctx workflow.Context) { b.look(ctx, settled.Call) })
	}
}

// look waits until this run considers a call unknown or waits for people, and then reads the state of the call. The signal may arrive while the
// attempt that made the call unknown has not returned yet. Anybody can send the signal, so look reads the state from the store.
func (b *callTable) look(ctx workflow.Context, id string) {
	var c *call
	open := func() bool {
		c = b.find(id)
		return c != nil && !c.running && (c.ref.State == jig.CallUnknown || c.ref.State == jig.CallWaiting)
	}
	if workflow.Await(ctx, open) != nil {
		return
	}
	var a *activities.Activities
	var ran activities.Ran
	err := workflow.ExecuteLocalActivity(databaseOptions(ctx, "read what was decided about "+id), a.Standing, activities.RunInput{SessionRef: b.ref, Call: id}).Get(ctx, &ran)
	if err != nil {
		workflow.GetLogger(ctx).Error("a settled call could not be read", "call", id, "error", err.Error())
		return
	}
	if open() && (ran.State.Final() || ran.Ask != nil) {
		b.ran(ctx, c, ran, nil)
	}
}

// runAgent answers a call by running a child session.
func (b *callTable) runAgent(ctx workflow.Context, c *call) (activities.Ran, error) {
	var a *activities.Activities
	var child activities.Child
	in := activities.RunInput{SessionRef: b.ref, Call: c.ref.ID}
	if err := workflow.ExecuteLocalActivity(databaseOptions(ctx, "begin the session that answers "+c.words()), a.BeginChild, in).Get(ctx, &child); err != nil {
		return activities.Ran{}, err //nolint:wrapcheck // the caller checks for Temporal's own types
	}
	if child.Ended != nil {
		if child.Ended.Paused { // try again later, or in the next run
			c.stuck = child.Ended.Stuck
			b.asks++
			if err := workflow.Sleep(ctx, pausedAgain); err != nil {
				return activities.Ran{}, err //nolint:wrapcheck // the caller checks for Temporal's own types
			}
		}
		return *child.Ended, nil
	}
	options := b.childOptions(child.SessionID, c)
	options.TypedSearchAttributes = temporal.NewSearchAttributes(
		temporal.NewSearchAttributeKeyKeyword(protocol.AttrTenant).ValueSet(b.ref.Tenant),
		temporal.NewSearchAttributeKeyKeyword(protocol.AttrAgent).ValueSet(child.Start.Agent),
		temporal.NewSearchAttributeKeyKeyword(protocol.AttrStatus).ValueSet(string(jig.StatusWorking)),
		temporal.NewSearchAttributeKeyInt64(protocol.AttrPass).ValueSet(1),
		temporal.NewSearchAttributeKeyInt64(protocol.AttrPending).ValueSet(0),
	)
	options.StaticSummary = protocol.Summary(child.Start.Agent, child.Start.Asked())
	options.Memo = map[string]any{protocol.MemoSummary: options.StaticSummary}
	end := activities.EndChildInput{RunInput: in}
	if err := b.child(ctx, options, protocol.PassWorkflow, protocol.PassInput{Tenant: b.ref.Tenant, Start: &child.Start}, nil); err != nil {
		end.Error = activities.ErrorFrom(err)
	}
	free, _ := workflow.NewDisconnectedContext(ctx)
	var ran activities.Ran
	err := workflow.ExecuteLocalActivity(databaseOptions(free, "take over the answer to "+c.words()), a.EndChild, end).Get(free, &ran)
	return ran, err //nolint:wrapcheck // the caller checks for Temporal's own types
}

func (b *callTable) childOptions(id string, c *call) workflow.ChildWorkflowOptions {
	summary := strings.TrimSpace(c.ref.ID + " " + protocol.Summary(c.ref.Tool, c.ref.Title))
	return workflow.ChildWorkflowOptions{
		WorkflowID: id, WaitForCancellation: true, StaticSummary: summary, Memo: map[string]any{protocol.MemoSummary: summary},
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}
}

// child runs a child workflow to its end. After a reset, the previous run's child may still exist. In that case child asks a composition
// to yield, or waits for a session to end, and then tries again.
func (b *callTable) child(ctx workflow.Context, options workflow.ChildWorkflowOptions, name string, in, result any) error {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, options), name, in).Get(ctx, result)
		var running *temporal.ChildWorkflowExecutionAlreadyStartedError
		if !errors.As(err, &running) {
			return err //nolint:wrapcheck // the caller checks for Temporal's own types
		}
		if name != protocol.PassWorkflow {
			workflow.SignalExternalWorkflow(ctx, options.WorkflowID, "", signalYield, nil)
		}
		if err := workflow.Sleep(ctx, pause); err != nil {
			return err //nolint:wrapcheck // the caller checks for Temporal's own types
		}
	}
}

// alarm is the timer for the call that is due next.
type alarm struct {
	at     time.Time
	cancel workflow.CancelFunc
}

// due returns the next time at which something happens to the pending call without a person: a reminder, an escalation or its
// expiry. It is zero if nothing is due.
func (c *call) due() time.Time {
	if c.ref.State != jig.CallWaiting || c.ref.Ask == nil {
		return time.Time{}
	}
	return approval.Due(*c.ref.Ask)
}

// timerDue reports whether a reminder, an escalation or an expiry is being processed or is due now. The run must not end before it has
// seen the outcome.
func (b *callTable) timerDue(ctx workflow.Context) bool {
	now := workflow.Now(ctx)
	return b.lapsing || slices.ContainsFunc(b.calls, func(c *call) bool {
		at := c.due()
		return !at.IsZero() && !at.After(now)
	})
}

// arm sets the alarm for the call that is due first. An alarm that rings too early does no harm: it finds nothing to do and is set again.
func (b *callTable) arm(ctx workflow.Context, t *alarm) {
	var first time.Time
	for _, c := range b.calls {
		if at := c.due(); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if first.IsZero() || (!t.at.IsZero() && !first.Before(t.at)) {
		return
	}
	if t.cancel != nil {
		t.cancel()
	}
	timed, cancel := workflow.WithCancel(ctx)
	t.at, t.cancel = first, cancel
	workflow.GoNamed(timed, "expiry", func(ctx workflow.Context) {
		wait := first.Sub(workflow.Now(ctx))
		if wait <= 0 {
			wait = time.Second // the database's clock is a little behind: check again soon
		}
		if workflow.NewTimerWithOptions(ctx, wait, workflow.TimerOptions{Summary: b.dueAt(first)}).Get(ctx, nil) != nil {
			return
		}
		*t = alarm{}
		b.expire(ctx)
		b.arm(ctx, t)
	})
}

// dueAt says what is due at a time, for the summary of its timer.
func (b *callTable) dueAt(at time.Time) string {
	for _, c := range b.calls {
		switch {
		case !c.due().Equal(at):
			continue
		case c.ref.Ask.ExpiresAt.After(at):
			return fmt.Sprintf("%s %s: remind people until somebody decides", c.ref.ID, c.ref.Tool)
		default:
			return fmt.Sprintf("%s %s: waiting for %s until %s", c.ref.ID, c.ref.Tool, awaited(c.ref.Ask.Kind), at.UTC().Format("2006-01-02 15:04 MST"))
		}
	}
	return "somebody must decide"
}

// expire has the store process the calls that are due: it sends reminders, escalates approvals and expires them.
func (b *callTable) expire(ctx workflow.Context) {
	var due []string
	for _, c := range b.calls {
		if at := c.due(); !at.IsZero() && !at.After(workflow.Now(ctx)) {
			due = append(due, c.ref.ID)
		}
	}
	if len(due) == 0 {
		return
	}
	b.lapsing = true
	defer func() { b.lapsing = false }()
	var a *activities.Activities
	var heard activities.Handled
	err := workflow.ExecuteLocalActivity(databaseOptions(ctx, "remind people, or expire approvals"), a.Expire, activities.ExpireInput{SessionRef: b.ref, Calls: due, Now: workflow.Now(ctx)}).Get(ctx, &heard)
	if err != nil {
		b.changes++
		workflow.GetLogger(ctx).Error("approvals could not be expired", "error", err.Error())
		return
	}
	b.note(heard.Decisions)
	for _, ref := range heard.Calls {
		if c := b.find(ref.ID); c != nil && !c.running && c.ref.State == jig.CallWaiting && ref.State == jig.CallWaiting {
			c.ref.Ask = ref.Ask
		}
	}
	if heard.Ending.Strictness() > b.ending.Strictness() {
		b.ending = heard.Ending
	}
}
