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

// Events for the call that a session was started with are taken whenever they come: before its first task, while it is admitted, and while it waits
// for approval.
func TestEvent_IsTakenWhileTheCallIsOpen(t *testing.T) {
	t.Parallel()
	waiting := soloCall()
	waiting.State, waiting.Ask = jig.CallWaiting, &jig.Pending{Kind: jig.PendingApproval, Call: "1.1", Tool: soloTool}
	s := newSolo(t, waiting)
	taken := 0
	s.OnActivity("Hear", mock.Anything, mock.MatchedBy(func(in activities.Signal) bool { return in.Name == protocol.SignalEvent })).
		Run(func(args mock.Arguments) {
			in, ok := args.Get(1).(activities.Signal)
			require.True(t, ok)
			if in.Composing {
				taken++
			}
		}).Return(activities.Handled{Event: true}, nil)
	s.OnActivity("Hear", mock.Anything, mock.Anything).Return(activities.Handled{
		Decisions: []jig.Ruled{{Call: "1.1", Outcome: jig.DecisionAccepted, Status: jig.CallReserved}},
	}, nil)
	s.OnActivity(soloTool, mock.Anything, mock.Anything).After(time.Minute).Return(activities.Ran{State: jig.CallSucceeded}, nil)
	at := func(when time.Duration, name string) {
		s.RegisterDelayedCallback(func() { s.SignalWorkflow(name, map[string]any{"name": "paid"}) }, when)
	}
	at(0, protocol.SignalEvent)
	at(time.Second, protocol.SignalEvent)
	at(2*time.Second, protocol.SignalApprove)
	at(3*time.Second, protocol.SignalEvent)
	s.ExecuteWorkflow(protocol.CallWorkflow, protocol.CallInput{Tenant: "t", Tool: soloTool})
	require.NoError(t, s.GetWorkflowError())
	require.Equal(t, 3, taken)
}
