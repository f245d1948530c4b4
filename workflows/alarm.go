package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/approval"
)

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
		if workflow.NewTimerWithOptions(ctx, wait, workflow.TimerOptions{Summary: "the first approval expires"}).Get(ctx, nil) != nil {
			return
		}
		*t = alarm{}
		b.expire(ctx)
		b.arm(ctx, t)
	})
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
	err := workflow.ExecuteLocalActivity(databaseOptions(ctx), a.Expire, activities.ExpireInput{SessionRef: b.ref, Calls: due, Now: workflow.Now(ctx)}).Get(ctx, &heard)
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
