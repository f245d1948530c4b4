package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
)

// Pass runs one pass of an agent session: one turn of the model and the calls that it asks for. A session is a chain of runs under
// one workflow id, which is the session's id. When a pass ends and the session does not, the run continues as new with the next
// pass, unless the limits of the session let several passes share a run. The workflow ends with the session's answer, fails with
// the error code of what went wrong, or is canceled.
func Pass(ctx workflow.Context, in protocol.PassInput) (*protocol.PassResult, error) {
	in = startedPass(ctx, in)
	s := &session{
		callTable: newCallTable(ctx, in.Tenant),
		agent:     agentOf(in),
		task:      taskOf(in),
		pass:      in.Pass, begun: in.Calling, continues: in.Continues, quick: in.Quick, limits: in.Limits, deadline: in.Deadline,
		tools: in.Tools, inbox: in.Inbox, copies: map[string]int{}, said: countsOf(in.Said), status: jig.StatusWorking, shown: shownBefore(in),
		parent: parentOf(ctx, in),
	}
	if err := s.listen(ctx); err != nil {
		return nil, err
	}
	ctx = canceledBefore(ctx, in.Canceled)
	if err := s.open(ctx, in); err != nil {
		return nil, s.unopened(ctx, err)
	}
	for passes, calls := 1, true; ; passes++ {
		began := workflow.Now(ctx)
		next, err := s.onePass(ctx, in.Calling && passes == 1, calls)
		if err == nil && next == sameRun {
			if calls = s.shares(ctx, passes, began); calls || s.asksAhead(ctx) {
				continue
			}
		}
		if err == nil && next != finished {
			s.settleInbox(ctx)
			err = ctx.Err()
		}
		if err != nil {
			if err := s.end(ctx, err); err != nil {
				return nil, err
			}
			next = finished
		}
		return s.close(ctx, in, next)
	}
}

// startedPass returns the input of a run. Only a run that continues another one has what that one handed over; anybody who can reach Temporal can
// put the same into a start.
func startedPass(ctx workflow.Context, in protocol.PassInput) protocol.PassInput {
	if workflow.GetInfo(ctx).ContinuedExecutionRunID != "" {
		return in
	}
	return protocol.PassInput{Tenant: in.Tenant, Start: in.Start, Woken: in.Woken, Task: in.Task, Parent: in.Parent}
}

// canceledBefore returns a context that is canceled if the run before was asked to cancel while it was ending. In that case this run ends the
// session as canceled.
func canceledBefore(ctx workflow.Context, canceled bool) workflow.Context {
	if !canceled {
		return ctx
	}
	ctx, cancel := workflow.WithCancel(ctx)
	cancel()
	return ctx
}

// step says how a session continues after a pass.
type step int

const (
	// sameRun means that the next pass follows, in the same run unless the run has reached its limits.
	sameRun step = iota
	// samePass means that the pass continues in the next run.
	samePass
	// finished means that the session has ended.
	finished
)

// open loads the session's settings for the run. A run that continues another one has them in its input.
func (s *session) open(ctx workflow.Context, in protocol.PassInput) error {
	if in.Pass == 0 {
		var a *activities.Activities
		var opened activities.Opened
		err := workflow.ExecuteLocalActivity(databaseOptions(ctx, "check the request and store the session"), a.Open, activities.OpenInput{
			SessionRef: s.ref, Start: in.Start, Woken: in.Woken, Began: workflow.GetInfo(ctx).WorkflowStartTime,
		}).Get(ctx, &opened)
		if err != nil {
			return err //nolint:wrapcheck // the caller distinguishes cancellation from failure by Temporal's own types
		}
		s.pass, s.agent, s.limits, s.deadline = opened.Pass, opened.Agent, opened.Limits, opened.Deadline
		s.quick, s.wait = opened.Quick, opened.Wait
	}
	s.opened = true
	return nil
}

// unopened ends a session that could not be opened. Its status says why, for later queries and in lists.
func (s *session) unopened(ctx workflow.Context, err error) error {
	s.status = jig.StatusFailed
	if temporal.IsCanceledError(err) {
		s.status = jig.StatusCanceled
	}
	s.settled = activities.Settled{Status: s.status, Error: activities.ErrorFrom(err)}
	s.pass = max(s.pass, 1)
	s.show(ctx)
	return failure(err)
}

// slowPass is how long a pass may take so that the next one may share its run, if the agent leaves that to the engine.
const slowPass = 5 * time.Second

// shares reports whether the next pass runs in the same workflow run. passes is the number of passes that the run has had, began the time at
// which the latest of them began.
func (s *session) shares(ctx workflow.Context, passes int, began time.Time) bool {
	if s.limits.PassesPerRun == jig.PassesAuto {
		return workflow.Now(ctx).Sub(began) < slowPass && !grown(ctx)
	}
	return passes < s.limits.PassesPerRun && !grown(ctx)
}

// asksAhead reports whether the model is asked for the next turn although its calls belong to the next run. If the turn ends the session,
// no other run is needed.
func (s *session) asksAhead(ctx workflow.Context) bool {
	return s.quick && !grown(ctx)
}

// onePass asks the model, runs the calls that it requests, and settles the pass. If calling is true, the pass continues from an earlier
// run and begins with the calls. If calls is false, the calls are left to the next run.
func (s *session) onePass(ctx workflow.Context, calling, calls bool) (step, error) {
	ctx, cancel := s.withDeadline(ctx)
	defer cancel()
	s.stopPass = cancel
	var thought activities.Thought
	if !calling {
		s.settleInbox(ctx)
		s.calls, s.early, s.more, s.begun, s.spoken = nil, nil, false, true, false
		s.show(ctx)
		var err error
		if thought, err = s.think(ctx); err != nil {
			return finished, err
		}
		s.continues = thought.Continues
		calling = thought.Calls > 0 && thought.Ended == nil
	}
	if calling && !calls {
		return samePass, nil
	}
	if calling {
		more, err := s.runCalls(ctx, thought.Admitted)
		if err != nil {
			return finished, err
		}
		if s.failure != nil {
			return finished, s.failure
		}
		if more {
			return samePass, nil
		}
	}
	switch {
	case thought.Ended != nil:
		s.settled = *thought.Ended
	case !s.continues:
		if err := s.settle(ctx); err != nil {
			return finished, err
		}
	}
	if s.settled.Status.Final() {
		s.status = s.settled.Status
		return finished, nil
	}
	s.pass++
	s.begun = false
	return sameRun, nil
}

// settle decides how the session continues after a pass, if that was not known when its calls were admitted.
func (s *session) settle(ctx workflow.Context) error {
	s.settleInbox(ctx)
	s.spoken = false
	var a *activities.Activities
	return workflow.ExecuteLocalActivity(databaseOptions(ctx, "store how pass "+itoa(s.pass)+" ended"), a.Settle, s.passRef()).Get(ctx, &s.settled) //nolint:wrapcheck // the caller distinguishes cancellation from failure by Temporal's own types
}

// looks is how often a run looks by itself whether its session may begin. After that an activity looks, whose attempts do not make the history
// longer.
const looks = 10

// awaitStart waits until the rate limits allow the session to begin. Few sessions look more than once, because the first answer says when it is
// their turn.
func (s *session) awaitStart(ctx workflow.Context) error {
	const summary = "the session waits for a rate limit"
	var a *activities.Activities
	for range looks {
		if s.wait == 0 {
			return nil
		}
		if err := workflow.NewTimerWithOptions(ctx, s.wait, workflow.TimerOptions{Summary: summary}).Get(ctx, nil); err != nil {
			return err //nolint:wrapcheck // the caller distinguishes cancellation from failure by Temporal's own types
		}
		if err := workflow.ExecuteLocalActivity(databaseOptions(ctx, "ask the rate limit again"), a.StartsIn, s.ref).Get(ctx, &s.wait); err != nil {
			return err //nolint:wrapcheck // as above
		}
	}
	s.wait = 0
	return workflow.ExecuteActivity(pausedOptions(ctx, summary), a.AwaitStart, s.ref).Get(ctx, nil) //nolint:wrapcheck // as above
}

// think asks the model. If a rate limit holds the session back, or a pause does, it first waits until that ends.
func (s *session) think(ctx workflow.Context) (activities.Thought, error) {
	if err := s.awaitStart(ctx); err != nil {
		return activities.Thought{}, err
	}
	var a *activities.Activities
	for {
		thought, err := s.ask(ctx)
		if err != nil || !thought.Paused {
			return thought, err
		}
		held := pausedOptions(ctx, "pass "+itoa(s.pass)+" is held back by a pause")
		s.paused = true
		s.show(ctx)
		err = workflow.ExecuteActivity(held, a.AwaitResume, s.passRef()).Get(ctx, nil)
		s.paused = false
		if err != nil {
			return thought, err //nolint:wrapcheck // the caller distinguishes cancellation from failure by Temporal's own types
		}
		s.show(ctx)
	}
}

// ask runs Think: as a local activity if the model is known to be quick, and as an activity if it is not, or if it was not quick this time. If
// the provider of a quick model fails, it first waits as long as the provider asks.
func (s *session) ask(ctx workflow.Context) (thought activities.Thought, err error) {
	var a *activities.Activities
	in := activities.ThinkInput{PassRef: s.passRef(), Limit: callsPerRun}
	if s.quick {
		err = workflow.ExecuteLocalActivity(quickModelOptions(ctx, "ask the model, pass "+itoa(s.pass)), a.Think, in).Get(ctx, &thought)
		var failed *temporal.ApplicationError
		switch {
		case !errors.As(err, &failed): // it was slow this time
		case failed.NonRetryable():
			return thought, err //nolint:wrapcheck // the caller distinguishes cancellation from failure by Temporal's own types
		case failed.NextRetryDelay() > 0:
			wait := workflow.TimerOptions{Summary: "pass " + itoa(s.pass) + " waits for the model's provider"}
			_ = workflow.NewTimerWithOptions(ctx, failed.NextRetryDelay(), wait).Get(ctx, nil) //nolint:errcheck // the next line reports a canceled context
		}
		if ctx.Err() != nil {
			return thought, err //nolint:wrapcheck // the caller distinguishes cancellation from failure by Temporal's own types
		}
	}
	if !s.quick || err != nil {
		err = workflow.ExecuteActivity(modelOptions(ctx, "ask the model, pass "+itoa(s.pass)), a.Think, in).Get(ctx, &thought)
	}
	if thought.Quick != nil {
		s.quick = *thought.Quick
	}
	return thought, err //nolint:wrapcheck // the caller distinguishes cancellation from failure by Temporal's own types
}

// close ends the run. It processes what has arrived in the meantime, and then either continues as new or ends the workflow.
func (s *session) close(ctx workflow.Context, in protocol.PassInput, next step) (*protocol.PassResult, error) {
	for {
		s.record(ctx)
		s.showAll(ctx)
		s.drain(ctx) // nothing may block between here and the end of the run
		switch {
		case next != finished:
			return nil, workflow.NewContinueAsNewError(ctx, protocol.PassWorkflow, s.handOver(ctx, in, next))
		case !workflow.AllHandlersFinished(ctx): // an update arrived while the session was ending; answer it first
		case s.spoken || s.hasMessage():
			// A message to a session that has just ended starts the next pass.
			s.pass++
			return nil, workflow.NewContinueAsNewError(ctx, protocol.PassWorkflow, s.handOver(ctx, in, sameRun))
		case len(s.inbox) == 0:
			return s.result()
		}
		s.settleInbox(ctx) // late decisions are refused, so that their senders get an answer
	}
}

func (s *session) hasMessage() bool {
	for _, signal := range s.inbox {
		if signal.Name == protocol.SignalMessage {
			return true
		}
	}
	return false
}

// handOver returns the input of the next run.
func (s *session) handOver(ctx workflow.Context, in protocol.PassInput, next step) protocol.PassInput {
	return protocol.PassInput{
		Tenant: in.Tenant, Task: s.task, Pass: s.pass, Calling: next == samePass, Continues: next == samePass && s.continues, Agent: s.agent, Quick: s.quick, Limits: s.limits,
		Deadline: s.deadline, Tools: s.tools, Inbox: s.inbox, Shown: s.shown, Parent: s.parent.handOver(), Said: s.said,
		Canceled: ctx.Err() != nil && !s.status.Final(), // the end of a session that is canceled is stored already
	}
}

// result returns the workflow's result: an answer, or a failure or cancellation that the Web UI shows as such.
func (s *session) result() (*protocol.PassResult, error) {
	r := &protocol.PassResult{
		SessionID: s.ref.SessionID, Status: s.settled.Status, Answer: s.settled.Answer, Truncated: s.settled.Truncated,
		Reason: s.settled.Reason, Passes: s.pass, Error: s.settled.Error,
	}
	switch e := s.settled.Error; {
	case s.settled.Status == jig.StatusCanceled:
		return nil, temporal.NewCanceledError(r)
	case s.settled.Status == jig.StatusFailed && e != nil:
		return nil, temporal.NewNonRetryableApplicationError(e.Message, string(e.Code), nil, e, r)
	}
	return r, nil
}

// end closes everything that is open in the store when the session cannot continue: it was canceled, an approval expired whose terms end
// the session, the deadline passed, or an error occurred that no retry can fix.
func (s *session) end(ctx workflow.Context, cause error) error {
	in := activities.EndInput{PassRef: s.passRef(), Status: jig.StatusFailed, Error: activities.ErrorFrom(cause)}
	if in.Error != nil {
		in.Reason = in.Error.Reason
	}
	switch {
	case ctx.Err() != nil:
		in.Status, in.Error, in.Reason = jig.StatusCanceled, nil, ""
	case s.ending == jig.ExpiryCancel:
		in.Status, in.Error, in.Reason = jig.StatusCanceled, nil, jig.ReasonExpired
	case s.ending == jig.ExpiryFail:
		in.Reason = jig.ReasonExpired
		in.Error = &jig.Error{Code: jig.CodeExpired, Message: "nobody decided in time on a call that the session depends on", Reason: jig.ReasonExpired}
	case s.overdue(ctx):
		in.Reason = jig.ReasonDeadline
		in.Error = &jig.Error{Code: jig.CodeBudgetExhausted, Message: "the session did not end within its deadline", Reason: jig.ReasonDeadline}
	}
	free, _ := workflow.NewDisconnectedContext(ctx)
	s.settleInbox(free)
	s.spoken = false
	var a *activities.Activities
	if err := workflow.ExecuteLocalActivity(databaseOptions(free, "store how the session ended"), a.End, in).Get(free, nil); err != nil {
		return failure(err)
	}
	s.status, s.calls = in.Status, nil
	s.settled = activities.Settled{Status: in.Status, Reason: in.Reason, Error: in.Error}
	return nil
}

// withDeadline returns a context that is canceled at the session's deadline, if it has one.
func (s *session) withDeadline(ctx workflow.Context) (workflow.Context, workflow.CancelFunc) {
	bounded, cancel := workflow.WithCancel(ctx)
	if s.deadline.IsZero() {
		return bounded, cancel
	}
	workflow.GoNamed(bounded, "deadline", func(ctx workflow.Context) {
		wait := max(s.deadline.Sub(workflow.Now(ctx)), time.Millisecond)
		if workflow.NewTimerWithOptions(ctx, wait, workflow.TimerOptions{Summary: "the session's deadline"}).Get(ctx, nil) == nil {
			cancel()
		}
	})
	return bounded, cancel
}

func (s *session) overdue(ctx workflow.Context) bool {
	return !s.deadline.IsZero() && !workflow.Now(ctx).Before(s.deadline)
}

func (s *session) passRef() activities.PassRef {
	return activities.PassRef{SessionRef: s.ref, Pass: s.pass}
}
