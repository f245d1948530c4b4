package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
)

// People learn of a question from the store, and programs may answer it at once. The answer counts even if it reaches the session before
// the attempt that asked the question has returned.
func TestDecision_CountsBeforeTheAttemptReturns(t *testing.T) {
	t.Parallel()
	asking := activities.Ran{State: jig.CallWaiting, Ask: &jig.Pending{Kind: jig.PendingApproval, Call: "1.1", Tool: soloTool}}
	for name, play := range map[string]struct {
		returns activities.Ran
		// decided is the state after the decision, stands the one that the store returns.
		decided, stands jig.CallStatus
		attempts        int
	}{
		"it did not happen":    {unknownRan(), jig.CallReserved, jig.CallReserved, 2},
		"it happened":          {unknownRan(), jig.CallSucceeded, jig.CallSucceeded, 1},
		"approved":             {asking, jig.CallReserved, jig.CallReserved, 2},
		"approved and ran out": {asking, jig.CallReserved, jig.CallExpired, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSolo(t, soloCall())
			count := func(mock.Arguments) { s.attempts++ }
			s.OnActivity(soloTool, mock.Anything, mock.Anything).After(time.Minute).Run(count).Return(play.returns, nil).Once()
			s.OnActivity(soloTool, mock.Anything, mock.Anything).Run(count).Return(activities.Ran{State: jig.CallSucceeded}, nil)
			s.OnActivity("Hear", mock.Anything, mock.Anything).Return(activities.Handled{
				Decisions: []jig.Ruled{{Call: "1.1", Outcome: jig.DecisionAccepted, Status: play.decided}},
			}, nil)
			s.OnActivity("Standing", mock.Anything, mock.Anything).Return(activities.Ran{State: play.stands}, nil)
			s.RegisterDelayedCallback(func() { s.SignalWorkflow(protocol.SignalReconcile, map[string]string{"call": "1.1"}) }, time.Second)
			s.ExecuteWorkflow(protocol.CallWorkflow, protocol.CallInput{Tenant: "t", Tool: soloTool})
			require.True(t, s.IsWorkflowCompleted())
			require.NoError(t, s.GetWorkflowError())
			require.Equal(t, play.attempts, s.attempts)
		})
	}
}

// A model's answer and the approvals that its calls need are stored before the session learns of them.
func TestDecision_CountsBeforeTheCallIsKnown(t *testing.T) {
	t.Parallel()
	for status, attempts := range map[jig.CallStatus]int{jig.CallDenied: 0, jig.CallReserved: 1} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			waiting := soloCall()
			waiting.State, waiting.Ask = jig.CallWaiting, &jig.Pending{Kind: jig.PendingApproval, Call: "1.1", Tool: soloTool}
			s := newSolo(t, waiting)
			s.OnActivity("Open", mock.Anything, mock.Anything).Return(activities.Opened{
				Agent: "solo", Pass: 1, Limits: jig.Limits{}.WithDefaults(),
			}, nil)
			s.OnActivity("Think", mock.Anything, mock.Anything).After(time.Minute).Return(activities.Thought{
				Calls: 1, Admitted: &activities.Admitted{Calls: []activities.CallRef{waiting}},
			}, nil)
			s.OnActivity("Hear", mock.Anything, mock.Anything).Return(activities.Handled{
				Decisions: []jig.Ruled{{Call: "1.1", Outcome: jig.DecisionAccepted, Status: status}},
			}, nil)
			s.OnActivity("Settle", mock.Anything, mock.Anything).Return(activities.Settled{Status: jig.StatusCompleted}, nil)
			s.OnActivity(soloTool, mock.Anything, mock.Anything).Run(func(mock.Arguments) { s.attempts++ }).
				Return(activities.Ran{State: jig.CallSucceeded}, nil).Maybe()
			s.RegisterDelayedCallback(func() { s.SignalWorkflow(protocol.SignalDeny, map[string]string{"call": "1.1"}) }, time.Second)
			s.ExecuteWorkflow(protocol.PassWorkflow, protocol.PassInput{Tenant: "t", Start: &protocol.StartSession{Agent: "solo"}})
			require.True(t, s.IsWorkflowCompleted())
			require.NoError(t, s.GetWorkflowError())
			require.Equal(t, attempts, s.attempts)
		})
	}
}
