package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
)

// shown is a change of a session's search attributes, at a time since the start.
type shown struct {
	At      time.Duration
	Status  string
	Pending int64
}

// The search attributes show at once that people are asked. That they have answered is shown with the end of the run, or after two seconds
// if the call still runs.
func TestSearchAttributes_ShowAnswersLater(t *testing.T) {
	t.Parallel()
	const asked, answered = 0, 10 * time.Second
	waits := shown{asked, string(jig.StatusInputRequired), 1}
	for name, play := range map[string]struct {
		runs time.Duration
		want []shown
	}{
		"a quick call": {time.Second, []shown{waits, {answered + time.Second, string(jig.StatusCompleted), 0}}},
		"a slow call": {time.Minute, []shown{
			waits, {answered + 2*time.Second, string(jig.StatusWorking), 0}, {answered + time.Minute, string(jig.StatusCompleted), 0},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waiting := soloCall()
			waiting.State, waiting.Ask = jig.CallWaiting, &jig.Pending{Kind: jig.PendingApproval, Call: "1.1", Tool: soloTool}
			s := newSolo(t, waiting)
			began := s.Now()
			latest, got := shown{}, []shown(nil)
			s.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
				changed, ok := args.Get(0).(temporal.SearchAttributes)
				require.True(t, ok)
				latest.At = s.Now().Sub(began)
				if status, ok := changed.GetKeyword(temporal.NewSearchAttributeKeyKeyword(protocol.AttrStatus)); ok {
					latest.Status = status
				}
				if pending, ok := changed.GetInt64(temporal.NewSearchAttributeKeyInt64(protocol.AttrPending)); ok {
					latest.Pending = pending
				}
				got = append(got, latest)
			}).Return(nil)
			s.OnActivity("Open", mock.Anything, mock.Anything).Return(activities.Opened{
				Agent: "solo", Pass: 1, Limits: jig.Limits{}.WithDefaults(),
			}, nil)
			s.OnActivity("Think", mock.Anything, mock.Anything).Return(activities.Thought{
				Calls: 1, Admitted: &activities.Admitted{Calls: []activities.CallRef{waiting}},
			}, nil)
			s.OnActivity("Hear", mock.Anything, mock.Anything).Return(activities.Handled{
				Decisions: []jig.Ruled{{Call: "1.1", Outcome: jig.DecisionAccepted, Status: jig.CallReserved}}, Calls: []activities.CallRef{soloCall()},
			}, nil)
			s.OnActivity(soloTool, mock.Anything, mock.Anything).After(play.runs).Return(activities.Ran{State: jig.CallSucceeded}, nil)
			s.OnActivity("Settle", mock.Anything, mock.Anything).Return(activities.Settled{Status: jig.StatusCompleted}, nil)
			s.RegisterDelayedCallback(func() { s.SignalWorkflow(protocol.SignalApprove, map[string]string{"call": "1.1"}) }, answered)
			s.ExecuteWorkflow(protocol.PassWorkflow, protocol.PassInput{Tenant: "t", Start: &protocol.StartSession{Agent: "solo"}})
			require.True(t, s.IsWorkflowCompleted())
			require.NoError(t, s.GetWorkflowError())
			require.Equal(t, play.want, got)
		})
	}
}
