package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
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
		if err := workflow.ExecuteLocalActivity(databaseOptions(ctx), a.Standing, in).Get(ctx, &stands); err != nil {
			return changed // the session is being canceled
		}
		if stands.State != ran.State || stands.Ask != nil {
			*ran, changed = stands, true
		}
	}
	return changed
}
