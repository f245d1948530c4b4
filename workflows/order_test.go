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

// A program approves the third and then the second of three calls with one concurrency key before the session learns of them. They still run in
// the order of the model's answer.
func TestConcurrencyKey_OrderHoldsForEarlyDecisions(t *testing.T) {
	t.Parallel()
	ref := func(id string, state jig.CallStatus) activities.CallRef {
		call := soloCall()
		call.ID, call.Key, call.State = id, "same", state
		if state == jig.CallWaiting {
			call.Ask = &jig.Pending{Kind: jig.PendingApproval, Call: id, Tool: soloTool}
		}
		return call
	}
	s := newSolo(t, soloCall())
	s.OnActivity("Open", mock.Anything, mock.Anything).Return(activities.Opened{
		Agent: "solo", Pass: 1, Limits: jig.Limits{}.WithDefaults(),
	}, nil)
	s.OnActivity("Think", mock.Anything, mock.Anything).After(time.Minute).Return(activities.Thought{
		Calls: 3, Admitted: &activities.Admitted{Calls: []activities.CallRef{
			ref("1.1", jig.CallReserved), ref("1.2", jig.CallWaiting), ref("1.3", jig.CallWaiting),
		}},
	}, nil)
	for n, id := range []string{"1.3", "1.2"} {
		s.OnActivity("Hear", mock.Anything, mock.Anything).Return(activities.Handled{
			Decisions: []jig.Ruled{{Call: id, Outcome: jig.DecisionAccepted, Status: jig.CallReserved}},
			Calls:     []activities.CallRef{ref(id, jig.CallReserved)},
		}, nil).Once()
		s.RegisterDelayedCallback(func() {
			s.SignalWorkflow(protocol.SignalApprove, map[string]string{"call": id})
		}, time.Duration(n+1)*time.Second)
	}
	s.OnActivity("Settle", mock.Anything, mock.Anything).Return(activities.Settled{Status: jig.StatusCompleted}, nil)
	var order []string
	s.OnActivity(soloTool, mock.Anything, mock.Anything).Run(func(args mock.Arguments) {
		in, ok := args.Get(1).(activities.RunInput)
		require.True(t, ok)
		order = append(order, in.Call)
	}).Return(activities.Ran{State: jig.CallSucceeded}, nil)
	s.ExecuteWorkflow(protocol.PassWorkflow, protocol.PassInput{Tenant: "t", Start: &protocol.StartSession{Agent: "solo"}})
	require.True(t, s.IsWorkflowCompleted())
	require.NoError(t, s.GetWorkflowError())
	require.Equal(t, []string{"1.1", "1.2", "1.3"}, order)
}
