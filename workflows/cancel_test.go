package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/workflows"
)

// A run that continues as new first records the latest decision, which takes a moment. Somebody who denies a call and cancels the session at
// once cancels it in that moment.
func TestCancel_CountsWhileARunEnds(t *testing.T) {
	t.Parallel()
	waiting := soloCall()
	waiting.State, waiting.Ask = jig.CallWaiting, &jig.Pending{Kind: jig.PendingApproval, Call: "1.1", Tool: soloTool}
	agent := func(t *testing.T) *solo {
		t.Helper()
		s := newSolo(t, waiting)
		s.OnActivity("Open", mock.Anything, mock.Anything).Return(activities.Opened{
			Agent: "solo", Pass: 1, Limits: jig.Limits{}.WithDefaults(),
		}, nil)
		return s
	}

	s := agent(t)
	s.OnActivity("Think", mock.Anything, mock.Anything).Return(activities.Thought{
		Calls: 1, Continues: true, Admitted: &activities.Admitted{Calls: []activities.CallRef{waiting}},
	}, nil)
	s.denies("1.1")
	s.ExecuteWorkflow(protocol.PassWorkflow, protocol.PassInput{Tenant: "t", Start: &protocol.StartSession{Agent: "solo"}})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, s.GetWorkflowError(), &next)
	var in protocol.PassInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))
	require.Equal(t, 2, in.Pass)

	s = agent(t)
	s.SetContinuedExecutionRunID("before")
	s.OnActivity("Think", mock.Anything, mock.Anything).After(time.Minute).Return(activities.Thought{Ended: &activities.Settled{Status: jig.StatusCompleted}}, nil)
	s.ExecuteWorkflow(protocol.PassWorkflow, in)
	require.True(t, temporal.IsCanceledError(s.GetWorkflowError()), "the cancel was lost: %v", s.GetWorkflowError())
	s.AssertNotCalled(t, "Think", mock.Anything, mock.Anything)
	s.AssertCalled(t, "End", mock.Anything, mock.MatchedBy(func(end activities.EndInput) bool { return end.Status == jig.StatusCanceled }))
}

// denies denies a call with an update after a second, and cancels the session immediately afterwards.
func (s *solo) denies(call string) {
	s.OnActivity("Hear", mock.Anything, mock.Anything).Return(activities.Handled{
		Decisions: []jig.Ruled{{Call: call, Outcome: jig.DecisionAccepted, Status: jig.CallDenied}},
	}, nil)
	length := 10
	s.SetCurrentHistoryLength(length)
	s.SetOnTimerFiredListener(func(string) { length++; s.SetCurrentHistoryLength(length) })
	s.RegisterDelayedCallback(func() {
		s.UpdateWorkflow(protocol.UpdateDecide, "deny", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(error) {}, OnComplete: func(any, error) {},
		}, protocol.Decisions{Decision: jig.Decision{Call: call, By: "fay", Answer: jig.AnswerDeny}})
	}, time.Second)
	s.RegisterDelayedCallback(s.CancelWorkflow, time.Second+time.Millisecond/2)
}

// A composition that has started many calls continues as new. A cancel that arrives while it works out its next steps, for example because the
// database is down for some seconds, reaches the next run.
func TestCancel_CountsWhileACompositionContinuesAsNew(t *testing.T) {
	t.Parallel()
	s := newSolo(t, soloCall())
	s.SetCurrentHistoryLength(10_000)
	s.OnActivity("Compose", mock.Anything, mock.Anything).After(10*time.Second).Return(activities.Composed{}, nil)
	s.RegisterDelayedCallback(s.CancelWorkflow, time.Second)
	s.ExecuteWorkflow(protocol.CompositionWorkflow, workflows.CompositionInput{Tenant: "t", SessionID: "ses_solo", Call: "1.1"})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, s.GetWorkflowError(), &next)
	var in workflows.CompositionInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))
	require.True(t, in.Canceled)
}

// A program that waits for a call does not keep the call's run from continuing as new. A pause holds back a call of an agent, whose attempts
// make the history long.
func TestAwaitedCall_ContinuesAsNew(t *testing.T) {
	t.Parallel()
	call := soloCall()
	call.Child = activities.ChildAgent
	s := newSolo(t, call)
	s.OnActivity("BeginChild", mock.Anything, mock.Anything).Return(activities.Child{Ended: &activities.Ran{State: jig.CallReserved, Paused: true}}, nil)
	var answer error
	s.RegisterDelayedCallback(func() {
		s.UpdateWorkflow(protocol.UpdateWait, "wait", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(error) {}, OnComplete: func(_ any, err error) { answer = err },
		})
	}, time.Second)
	s.RegisterDelayedCallback(func() { s.SetCurrentHistoryLength(10_000) }, 2*time.Second)
	s.SetTestTimeout(10 * time.Second)
	s.ExecuteWorkflow(protocol.CallWorkflow, protocol.CallInput{Tenant: "t", Tool: soloTool})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, s.GetWorkflowError(), &next)
	var again *temporal.ApplicationError
	require.ErrorAs(t, answer, &again)
	require.Equal(t, protocol.TypeUpdateCutOff, again.Type(), "the client asks the next run")
}
