package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
)

const (
	// maxIdle is how often a call may come back without having run, one time after the other.
	maxIdle = 20
	// firstRest is how long it rests the first time before it starts again; the rest doubles up to longestRest.
	firstRest   = time.Second
	longestRest = 30 * time.Second
)

// idle reports whether an attempt left its call open and no further than it was, with no reason to wait.
func idle(ran activities.Ran, err error) bool {
	return err == nil && !ran.Paused && (ran.State == jig.CallReserved || ran.State == jig.CallExecuting)
}

// ended notes how an attempt ended. A call that did not get anywhere rests first, so that nothing loops without a pause; a call that
// never gets anywhere is an error.
func (b *board) ended(ctx workflow.Context, c *call, ran activities.Ran, err error) {
	switch {
	case !idle(ran, err):
		c.idle = 0
	case workflow.GetVersion(ctx, changeRest, workflow.DefaultVersion, 1) == workflow.DefaultVersion:
	case c.idle == maxIdle:
		err = failure(jig.Errorf(jig.CodeUnavailable, "call %s of %s was started %d times and never ran: it is still %s",
			c.ref.ID, c.ref.Tool, maxIdle+1, ran.State).WithHint("the log of the workers may say why; a message continues the session"))
	default:
		rest := min(firstRest<<c.idle, longestRest)
		c.idle++
		err = workflow.Sleep(ctx, rest)
	}
	b.ran(ctx, c, ran, err)
}
