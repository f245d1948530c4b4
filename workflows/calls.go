package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
)

const (
	// callsPerRun is how many calls a run starts before it continues as new within the pass.
	callsPerRun = 100
	// eventsPerRun is the length of history beyond which a run starts no further call.
	eventsPerRun = 600
)

// call is a call in hand.
type call struct {
	ref activities.CallRef
	// running says that an attempt is under way in this run.
	running bool
	summary string
}

func (c *call) waiting() bool {
	return c.ref.State == jig.CallWaiting || c.ref.State == jig.CallUnknown
}

// ready reports whether the call may run and does not.
func (c *call) ready() bool {
	return !c.running && (c.ref.State == jig.CallReserved || c.ref.State == jig.CallExecuting)
}

// runCalls takes the pass's calls in hand until each has its result, or until the run has grown enough: then it returns
// more = true once nothing is in flight. Each call is decided and run by itself.
func (s *session) runCalls(ctx workflow.Context) (more bool, err error) {
	var a *activities.Activities
	var admitted activities.Admitted
	err = workflow.ExecuteLocalActivity(databaseOptions(ctx), a.Admit, activities.AdmitInput{
		PassRef: s.passRef(), Limit: callsPerRun,
	}).Get(ctx, &admitted)
	if err != nil {
		return false, err //nolint:wrapcheck // the caller tells cancellation from failure by Temporal's own types
	}
	s.take(admitted)

	expiry := &alarm{}
	started := 0
	for {
		full := started >= callsPerRun || workflow.GetInfo(ctx).GetCurrentHistoryLength() > eventsPerRun
		if !full {
			started += s.startReady(ctx)
		}
		if s.inFlight() == 0 && (full || s.done()) {
			return full && !s.done() || s.more, nil
		}
		s.show(ctx)
		s.arm(ctx, expiry)
		before := s.progress()
		grown := func() bool {
			return !full && s.inFlight() == 0 && workflow.GetInfo(ctx).GetCurrentHistoryLength() > eventsPerRun
		}
		if err := workflow.Await(ctx, func() bool { return s.progress() != before || grown() }); err != nil {
			return false, s.abandon(ctx)
		}
	}
}

// take puts the admitted calls in hand, in the order asked.
func (s *session) take(admitted activities.Admitted) {
	s.more = admitted.More
	for _, ref := range admitted.Calls {
		if s.find(ref.ID) == nil {
			s.add(ref)
		}
	}
}

func (s *session) add(ref activities.CallRef) {
	s.calls = append(s.calls, &call{ref: ref})
	if i, found := slices.BinarySearch(s.tools, ref.Tool); !found {
		s.tools = slices.Insert(s.tools, i, ref.Tool)
	}
}

func (s *session) find(id string) *call {
	for _, c := range s.calls {
		if c.ref.ID == id {
			return c
		}
	}
	return nil
}

// startReady starts as many calls as may run at once, in the order asked, and returns how many. A call waits for the
// earlier ones with its concurrency key. Quick tools run beside the workflow, all that are ready together.
func (s *session) startReady(ctx workflow.Context) int {
	started, busy := 0, s.inFlight()
	var quick []*call
	for i, c := range s.calls {
		if busy >= s.limits.MaxParallelCalls {
			break
		}
		if !c.ready() || s.blocked(i) {
			continue
		}
		c.running = true
		busy++
		started++
		if c.ref.Local {
			quick = append(quick, c)
			continue
		}
		workflow.GoNamed(ctx, "call "+c.ref.ID, func(ctx workflow.Context) { s.run(ctx, c) })
	}
	if len(quick) > 0 {
		workflow.GoNamed(ctx, "quick calls", func(ctx workflow.Context) { s.runQuick(ctx, quick) })
	}
	return started
}

func (s *session) blocked(i int) bool {
	key := s.calls[i].ref.Key
	if key == "" {
		return false
	}
	for _, earlier := range s.calls[:i] {
		if earlier.ref.Key == key && !earlier.ref.State.Final() {
			return true
		}
	}
	return false
}

// run brings one call to a worker and notes where it stands afterwards.
func (s *session) run(ctx workflow.Context, c *call) {
	var ran activities.Ran
	err := workflow.ExecuteActivity(toolOptions(ctx, c.ref), c.ref.Tool, activities.RunInput{SessionRef: s.ref, Call: c.ref.ID}).Get(ctx, &ran)
	s.ran(ctx, c, ran, err)
}

// runQuick runs calls beside the workflow, in one local activity.
func (s *session) runQuick(ctx workflow.Context, calls []*call) {
	var a *activities.Activities
	in := activities.RunLocalInput{SessionRef: s.ref}
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
		s.ran(ctx, c, ran, err)
	}
}

// ran notes where a call stands after an attempt.
func (s *session) ran(ctx workflow.Context, c *call, ran activities.Ran, err error) {
	c.running = false
	switch {
	case err == nil:
		c.ref.State, c.ref.Ask, c.summary = ran.State, ran.Ask, ran.Summary
	case temporal.IsCanceledError(err) || ctx.Err() != nil:
		c.ref.State = jig.CallCanceled
	default:
		// Only what no retry can mend comes here. The store still has the call open; ending the session closes it.
		s.failure = activities.ErrorFrom(err)
		c.ref.State, c.summary = jig.CallFailed, s.failure.Message
	}
}

// apply notes what a decision did to the calls in hand; an approved call of a later window is taken in hand at once.
func (s *session) apply(heard activities.Heard) {
	for _, ruled := range heard.Decisions {
		c := s.find(ruled.Call)
		if c == nil || c.running || c.ref.State.Final() || ruled.Status == "" {
			continue
		}
		c.ref.State = ruled.Status
		if !c.waiting() {
			c.ref.Ask = nil
		}
	}
	for _, ref := range heard.Calls {
		if pass, _, _, err := jig.ParseCallID(ref.ID); err != nil || pass != s.pass || !s.begun {
			continue
		}
		if c := s.find(ref.ID); c == nil {
			s.add(ref)
		} else if !c.running && !c.ref.State.Final() {
			c.ref = ref
		}
	}
}

// abandon waits for the calls in flight to notice that the session was cancelled.
func (s *session) abandon(ctx workflow.Context) error {
	free, _ := workflow.NewDisconnectedContext(ctx)
	_ = workflow.Await(free, func() bool { return s.inFlight() == 0 }) //nolint:errcheck // a disconnected wait cannot be cancelled
	return ctx.Err()
}

// progress changes whenever a call does.
func (s *session) progress() [4]int {
	var p [4]int
	p[3] = len(s.calls)
	for i, c := range s.calls {
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

func (s *session) inFlight() int { return s.progress()[0] }

func (s *session) pending() int { return s.progress()[1] }

func (s *session) done() bool {
	return s.failure != nil || !slices.ContainsFunc(s.calls, func(c *call) bool { return !c.ref.State.Final() })
}

// alarm is the timer of the approval that expires first.
type alarm struct {
	at     time.Time
	cancel workflow.CancelFunc
}

// arm sets the alarm for the approval that expires first. A timer that is too early does no harm: it looks and is set again.
func (s *session) arm(ctx workflow.Context, t *alarm) {
	var first time.Time
	for _, c := range s.calls {
		if c.ref.State == jig.CallWaiting && c.ref.Ask != nil && (first.IsZero() || c.ref.Ask.ExpiresAt.Before(first)) {
			first = c.ref.Ask.ExpiresAt
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
			wait = time.Second // the database's clock is a little behind: look again soon
		}
		if workflow.NewTimerWithOptions(ctx, wait, workflow.TimerOptions{Summary: "the first approval expires"}).Get(ctx, nil) != nil {
			return
		}
		*t = alarm{}
		s.expire(ctx)
		s.arm(ctx, t)
	})
}

// expire closes the approvals whose time has come.
func (s *session) expire(ctx workflow.Context) {
	var due []string
	for _, c := range s.calls {
		if c.ref.State == jig.CallWaiting && c.ref.Ask != nil && !c.ref.Ask.ExpiresAt.After(workflow.Now(ctx)) {
			due = append(due, c.ref.ID)
		}
	}
	if len(due) == 0 {
		return
	}
	var a *activities.Activities
	var heard activities.Heard
	err := workflow.ExecuteLocalActivity(databaseOptions(ctx), a.Expire, activities.ExpireInput{SessionRef: s.ref, Calls: due, Now: workflow.Now(ctx)}).Get(ctx, &heard)
	if err != nil {
		workflow.GetLogger(ctx).Error("approvals could not be expired", "error", err.Error())
		return
	}
	s.apply(heard)
}
