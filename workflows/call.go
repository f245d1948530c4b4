package workflows

import (
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
)

// Call runs one tool call from a person or a program, without a model. The call has the same admission, approval, ledger and events as a
// model's call, and a session of its own whose id is the workflow id. The workflow ends when the call has its result.
func Call(ctx workflow.Context, in protocol.CallInput) (*protocol.CallResult, error) {
	if workflow.GetInfo(ctx).ContinuedExecutionRunID == "" { // see startedPass
		in.Calling, in.Inbox, in.Said, in.Canceled = false, nil, nil, false
	}
	s := &session{
		callTable: newCallTable(ctx, in.Tenant),
		agent:     jig.CallAgent,
		task:      taskOfCall(in),
		pass:      1, begun: true, inbox: in.Inbox, copies: map[string]int{}, said: countsOf(in.Said), status: jig.StatusWorking,
		limits: jig.Limits{}.WithDefaults(), shown: protocol.Shown{Status: jig.StatusWorking, Pass: 1},
	}
	if err := s.listen(ctx); err != nil {
		return nil, err
	}
	wait := func(ctx workflow.Context) (*protocol.CallResult, error) {
		if err := workflow.Await(ctx, func() bool {
			return s.opened && len(s.calls) > 0 && s.idle() && !s.anyReady() || s.status.Final() || s.leaving
		}); err != nil {
			return nil, err //nolint:wrapcheck // a canceled workflow answers with Temporal's own error
		}
		if s.leaving {
			return nil, temporal.NewNonRetryableApplicationError("the next run of the session answers", protocol.TypeUpdateCutOff, nil)
		}
		return s.storedResult(ctx)
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, protocol.UpdateWait, wait, updateOptions(protocol.UpdateWait)); err != nil {
		return nil, err //nolint:wrapcheck // registering fails only on a programming error
	}
	ctx = canceledBefore(ctx, in.Canceled)
	if err := s.openCall(ctx, in); err != nil {
		return nil, s.unopened(ctx, err)
	}
	var pass workflow.Context
	pass, s.stopPass = workflow.WithCancel(ctx)
	more, err := s.runCalls(pass, nil)
	if err == nil && s.failure != nil {
		err = s.failure
	}
	switch {
	case err != nil:
		if err := s.end(ctx, err); err != nil {
			return nil, err
		}
		s.show(ctx)
		s.answerLate(ctx)
		_, err := s.result()
		return nil, err
	case more:
		s.leaving = true // the run cannot end before the updates that wait for the call are answered
		s.settleInbox(ctx)
		s.record(ctx)
		s.drain(ctx)
		return nil, workflow.NewContinueAsNewError(ctx, protocol.CallWorkflow, protocol.CallInput{
			Tenant: in.Tenant, Task: s.task, Calling: true, Inbox: s.inbox, Said: s.said, Canceled: ctx.Err() != nil,
		})
	}
	return s.closeCall(ctx)
}

func (s *session) openCall(ctx workflow.Context, in protocol.CallInput) error {
	if !in.Calling {
		var a *activities.Activities
		var opened activities.Opened
		err := workflow.ExecuteLocalActivity(databaseOptions(ctx, "check the call and store its session"), a.OpenCall, activities.OpenCallInput{
			SessionRef: s.ref, Call: in, Began: workflow.GetInfo(ctx).WorkflowStartTime,
		}).Get(ctx, &opened)
		if err != nil {
			return err //nolint:wrapcheck // the caller distinguishes cancellation from failure by Temporal's own types
		}
		s.agent, s.limits = opened.Agent, opened.Limits
	}
	s.opened = true
	return nil
}

func (s *session) anyReady() bool {
	for _, c := range s.calls {
		if c.ready() {
			return true
		}
	}
	return false
}

// closeCall settles the session and answers the updates that still wait.
func (s *session) closeCall(ctx workflow.Context) (*protocol.CallResult, error) {
	var a *activities.Activities
	var settled activities.CallSettled
	if err := workflow.ExecuteLocalActivity(databaseOptions(ctx, "store how the session ended"), a.SettleCall, s.passRef()).Get(ctx, &settled); err != nil {
		return nil, failure(err)
	}
	s.settled, s.status, s.closed = settled.Settled, settled.Status, s.resultOf(settled.Call)
	s.settleInbox(ctx)
	s.show(ctx)
	s.answerLate(ctx)
	return s.closed, nil
}

// answerLate answers the signals and updates that arrived while the session was ending. Nothing may block between answerLate and the end
// of the run.
func (s *session) answerLate(ctx workflow.Context) {
	for {
		s.settleInbox(ctx)
		s.record(ctx)
		s.drain(ctx)
		if len(s.inbox) == 0 {
			return
		}
	}
}

// storedResult returns the state of the call. If the call has finished, it waits until its result is stored.
func (s *session) storedResult(ctx workflow.Context) (*protocol.CallResult, error) {
	if s.failure == nil && s.done() {
		if err := workflow.Await(ctx, func() bool { return s.closed != nil || s.status.Final() }); err != nil {
			return nil, err //nolint:wrapcheck // a canceled workflow answers with Temporal's own error
		}
		if s.closed != nil {
			return s.closed, nil
		}
	}
	return s.callResult(ctx)
}

// callResult reads the state of the call from the store.
func (s *session) callResult(ctx workflow.Context) (*protocol.CallResult, error) {
	var a *activities.Activities
	var state activities.CallState
	in := activities.RunInput{SessionRef: s.ref, Call: jig.CallID(1, 1)}
	if err := workflow.ExecuteLocalActivity(databaseOptions(ctx, "read the state of the call"), a.CallState, in).Get(ctx, &state); err != nil {
		return nil, failure(err)
	}
	return s.resultOf(state), nil
}

func (s *session) resultOf(state activities.CallState) *protocol.CallResult {
	return &protocol.CallResult{SessionID: s.ref.SessionID, Call: jig.CallID(1, 1), Status: state.Status, Result: state.Result}
}

const (
	// callsPerRun is how many calls a run starts before it continues as new within the pass.
	callsPerRun = 100
	// eventsPerRun is the history length, in events, beyond which a run starts no more calls, so that it soon continues as new.
	eventsPerRun = 600
	// eventsAtMost is the same limit for a run that cannot continue as new because one of its compositions or child sessions waits for
	// people.
	eventsAtMost = 4 * eventsPerRun
)

// runCalls runs the calls of the pass until each has its result, or until the history of the run has grown too long. In the second case
// it waits until no call is in flight and returns more = true. Each call is decided and run on its own. If admitted is nil, the calls are
// admitted first.
func (s *session) runCalls(ctx workflow.Context, admitted *activities.Admitted) (more bool, err error) {
	if admitted == nil {
		var a *activities.Activities
		err = workflow.ExecuteLocalActivity(databaseOptions(ctx, "decide which calls may run"), a.Admit, activities.AdmitInput{
			PassRef: s.passRef(), Limit: callsPerRun,
		}).Get(ctx, &admitted)
		if err != nil {
			return false, err //nolint:wrapcheck // the caller distinguishes cancellation from failure by Temporal's own types
		}
	}
	s.take(*admitted)

	expiry := &alarm{}
	started := 0
	for {
		full := s.full(ctx, started)
		if !full {
			started += s.startReady(ctx, s.limits.MaxParallelCalls)
		}
		if s.ending.Strictness() > 0 {
			s.show(ctx)
			s.finishEarly(s.ending)
			return false, s.abandon(ctx)
		}
		over := func() bool { return s.inFlight() == 0 && !s.timerDue(ctx) && (full || s.done()) }
		if over() {
			return full && !s.done() || s.more, nil
		}
		s.show(ctx)
		s.finishEarly(s.ending)
		s.arm(ctx, expiry)
		before := s.progress()
		outgrown := func() bool { return !full && s.inFlight() == 0 && !s.timerDue(ctx) && grown(ctx) }
		if err := workflow.Await(ctx, func() bool { return s.progress() != before || outgrown() || over() }); err != nil {
			return false, s.abandon(ctx)
		}
	}
}

// grown reports whether the history of the run is so long that the next run should take over.
func grown(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetCurrentHistoryLength() > eventsPerRun
}

// take adds the admitted calls in the order in which they were requested.
func (s *session) take(admitted activities.Admitted) {
	s.more = admitted.More
	for _, ref := range admitted.Calls {
		if s.find(ref.ID) == nil {
			s.add(s.decided(ref))
		}
	}
}

func (s *session) add(ref activities.CallRef) {
	s.calls = append(s.calls, &call{ref: ref})
	if i, found := slices.BinarySearch(s.tools, ref.Tool); !found {
		s.tools = slices.Insert(s.tools, i, ref.Tool)
	}
}

// apply records how a decision changed the calls of the pass. An approved call that is not in memory yet is added at once.
func (s *session) apply(heard activities.Handled) {
	s.note(heard.Decisions)
	for _, ref := range heard.Calls {
		if pass, _, path, err := jig.ParseCallID(ref.ID); err != nil || path != "" || pass != s.pass || !s.begun {
			continue
		}
		if c := s.find(ref.ID); c == nil {
			s.add(ref)
		} else if !c.running && !c.ref.State.Final() {
			s.replace(c, ref)
		}
	}
}
