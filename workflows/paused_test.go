package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/workflows"
)

// A session whose next pass a pause holds back is shown as waiting for a person until the pause is lifted.
func TestSession_WaitsForAPersonWhilePaused(t *testing.T) {
	t.Parallel()
	s := newSolo(t, soloCall())
	s.OnActivity("Open", mock.Anything, mock.Anything).Return(
		activities.Opened{Agent: "solo", Pass: 1, Limits: jig.Limits{}.WithDefaults()}, nil)
	s.OnActivity("Think", mock.Anything, mock.Anything).Return(activities.Thought{Paused: true}, nil).Once()
	s.OnActivity("AwaitResume", mock.Anything, mock.Anything).After(time.Minute).Return(nil)
	var paused, resumed jig.Status
	s.RegisterDelayedCallback(func() { paused = s.status(t) }, 30*time.Second)
	s.OnActivity("Think", mock.Anything, mock.Anything).Run(func(mock.Arguments) { resumed = s.status(t) }).Return(
		activities.Thought{Ended: &activities.Settled{Status: jig.StatusCompleted}}, nil)
	s.ExecuteWorkflow(protocol.PassWorkflow, protocol.PassInput{Tenant: "t", Start: &protocol.StartSession{Agent: "solo"}})
	require.NoError(t, s.GetWorkflowError())
	require.Equal(t, jig.StatusInputRequired, paused)
	require.Equal(t, jig.StatusWorking, resumed)
}

// status returns the status that the query status shows.
func (s *solo) status(t *testing.T) jig.Status {
	t.Helper()
	answer, err := s.QueryWorkflow(protocol.QueryStatus)
	require.NoError(t, err)
	var view jig.SessionView
	require.NoError(t, answer.Get(&view))
	return view.Status
}

// A session waits for a person, too, if a call of the same concurrency key is held back behind the one that waits.
func TestSession_WaitsForAPersonWhileOrderHoldsACallBack(t *testing.T) {
	t.Parallel()
	first, second := soloCall(), soloCall()
	first.State, first.Ask, first.Key = jig.CallWaiting, &jig.Pending{Kind: jig.PendingApproval, Call: "1.1", Tool: soloTool}, "a"
	second.ID, second.Key = "1.2", "a"
	s := newSolo(t, first)
	s.OnActivity("Open", mock.Anything, mock.Anything).Return(
		activities.Opened{Agent: "solo", Pass: 1, Limits: jig.Limits{}.WithDefaults()}, nil)
	s.OnActivity("Think", mock.Anything, mock.Anything).Return(
		activities.Thought{Calls: 2, Admitted: &activities.Admitted{Calls: []activities.CallRef{first, second}}}, nil)
	s.OnActivity("Hear", mock.Anything, mock.Anything).Return(activities.Handled{
		Decisions: []jig.Ruled{{Call: "1.1", Outcome: jig.DecisionAccepted, Status: jig.CallReserved}},
	}, nil)
	s.OnActivity(soloTool, mock.Anything, mock.Anything).After(time.Minute).Return(activities.Ran{State: jig.CallSucceeded}, nil)
	s.OnActivity("Settle", mock.Anything, mock.Anything).Return(activities.Settled{Status: jig.StatusCompleted}, nil)
	var before, after jig.Status
	s.RegisterDelayedCallback(func() { before = s.status(t) }, time.Second)
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(protocol.SignalApprove, map[string]string{"call": "1.1"}) }, 2*time.Second)
	s.RegisterDelayedCallback(func() { after = s.status(t) }, 30*time.Second)
	s.ExecuteWorkflow(protocol.PassWorkflow, protocol.PassInput{Tenant: "t", Start: &protocol.StartSession{Agent: "solo"}})
	require.NoError(t, s.GetWorkflowError())
	require.Equal(t, jig.StatusInputRequired, before)
	require.Equal(t, jig.StatusWorking, after)
}

// A quick model that fails beside the workflow is asked again in an activity, after the wait that its provider asks for. A failure that no retry
// can fix is final at once.
func TestSession_WaitsForTheProviderOfAQuickModel(t *testing.T) {
	t.Parallel()
	for wait, final := range map[time.Duration]bool{0: false, 30 * time.Minute: false, time.Second: true} {
		s := newSolo(t, soloCall())
		s.OnActivity("Open", mock.Anything, mock.Anything).Return(
			activities.Opened{Agent: "solo", Pass: 1, Quick: true, Limits: jig.Limits{}.WithDefaults()}, nil)
		var asked []time.Time
		s.OnActivity("Think", mock.Anything, mock.Anything).Return(func(context.Context, activities.ThinkInput) (activities.Thought, error) {
			asked = append(asked, s.Now())
			if len(asked) > 1 {
				return activities.Thought{Ended: &activities.Settled{Status: jig.StatusCompleted}}, nil
			}
			return activities.Thought{}, temporal.NewApplicationErrorWithOptions("slow down", string(jig.CodeRateLimited),
				temporal.ApplicationErrorOptions{NextRetryDelay: wait, NonRetryable: final})
		})
		s.OnActivity("End", mock.Anything, mock.Anything).Return(nil)
		s.ExecuteWorkflow(protocol.PassWorkflow, protocol.PassInput{Tenant: "t", Start: &protocol.StartSession{Agent: "solo"}})
		if final {
			require.Error(t, s.GetWorkflowError())
			require.Len(t, asked, 1)
			continue
		}
		require.NoError(t, s.GetWorkflowError())
		require.Len(t, asked, 2)
		require.GreaterOrEqual(t, asked[1].Sub(asked[0]), wait)
	}
}

// A session waits for a person while a pause holds back its only call, and works again before the call runs. Other calls do not wait behind it.
func TestSession_WaitsForAPersonWhileACallIsPaused(t *testing.T) {
	t.Parallel()
	held, other := soloCall(), soloCall()
	other.ID = "1.2"
	s := newSolo(t, held)
	limits := jig.Limits{MaxParallelCalls: 1}.WithDefaults()
	s.OnActivity("Open", mock.Anything, mock.Anything).Return(activities.Opened{Agent: "solo", Pass: 1, Limits: limits}, nil)
	s.OnActivity("Think", mock.Anything, mock.Anything).Return(
		activities.Thought{Calls: 2, Admitted: &activities.Admitted{Calls: []activities.CallRef{held, other}}}, nil)
	of := func(call string, stuck bool) any {
		return mock.MatchedBy(func(in activities.RunInput) bool { return in.Call == call && in.Stuck == stuck })
	}
	s.OnActivity(soloTool, mock.Anything, of("1.1", false)).Return(activities.Ran{State: jig.CallReserved, Paused: true, Stuck: true}, nil).Once()
	s.OnActivity(soloTool, mock.Anything, of("1.2", false)).After(time.Minute).Return(activities.Ran{State: jig.CallSucceeded}, nil).Once()
	s.OnActivity(soloTool, mock.Anything, of("1.1", true)).After(time.Hour).Return(activities.Ran{State: jig.CallReserved, Paused: true}, nil).Once()
	s.OnActivity(soloTool, mock.Anything, of("1.1", false)).After(time.Minute).Return(activities.Ran{State: jig.CallSucceeded}, nil).Once()
	s.OnActivity("Settle", mock.Anything, mock.Anything).Return(activities.Settled{Status: jig.StatusCompleted}, nil)
	got := map[time.Duration]jig.Status{}
	for _, at := range []time.Duration{30 * time.Second, 30 * time.Minute, time.Hour + 30*time.Second} {
		s.RegisterDelayedCallback(func() { got[at] = s.status(t) }, at)
	}
	s.ExecuteWorkflow(protocol.PassWorkflow, protocol.PassInput{Tenant: "t", Start: &protocol.StartSession{Agent: "solo"}})
	require.NoError(t, s.GetWorkflowError())
	require.Equal(t, map[time.Duration]jig.Status{
		30 * time.Second: jig.StatusWorking, 30 * time.Minute: jig.StatusInputRequired, time.Hour + 30*time.Second: jig.StatusWorking,
	}, got)
}

// A call that is held back is watched even while others take up max_parallel_calls, so it is known at once that it may go on.
func TestSession_WatchesPausedCallsBesideOthers(t *testing.T) {
	t.Parallel()
	first, second := soloCall(), soloCall()
	second.ID = "1.2"
	s := newSolo(t, first)
	limits := jig.Limits{MaxParallelCalls: 1}.WithDefaults()
	s.OnActivity("Open", mock.Anything, mock.Anything).Return(activities.Opened{Agent: "solo", Pass: 1, Limits: limits}, nil)
	s.OnActivity("Think", mock.Anything, mock.Anything).Return(
		activities.Thought{Calls: 2, Admitted: &activities.Admitted{Calls: []activities.CallRef{first, second}}}, nil)
	returns := func(call string, stuck bool, after time.Duration, ran activities.Ran) {
		of := mock.MatchedBy(func(in activities.RunInput) bool { return in.Call == call && in.Stuck == stuck })
		s.OnActivity(soloTool, mock.Anything, of).After(after).Return(ran, nil).Once()
	}
	stuck := activities.Ran{State: jig.CallReserved, Paused: true, Stuck: true}
	freed, done := activities.Ran{State: jig.CallReserved, Paused: true}, activities.Ran{State: jig.CallSucceeded}
	returns("1.1", false, 0, stuck)
	returns("1.1", true, time.Minute, freed)
	returns("1.2", false, time.Hour, stuck)
	returns("1.1", false, 2*time.Hour, done) // begins after an hour
	returns("1.2", true, time.Hour, freed)   // begins then, too
	returns("1.2", false, time.Hour, done)
	s.OnActivity("Settle", mock.Anything, mock.Anything).Return(activities.Settled{Status: jig.StatusCompleted}, nil)
	var got jig.Status
	s.RegisterDelayedCallback(func() { got = s.status(t) }, 3*time.Hour+30*time.Minute)
	s.ExecuteWorkflow(protocol.PassWorkflow, protocol.PassInput{Tenant: "t", Start: &protocol.StartSession{Agent: "solo"}})
	require.NoError(t, s.GetWorkflowError())
	require.Equal(t, jig.StatusWorking, got)
}

// A composition reports that only people can move it when that holds of every running step, and no more when one of them goes on.
func TestComposition_ReportsWhenOnlyPeopleCanMoveIt(t *testing.T) {
	t.Parallel()
	own, below := soloCall(), soloCall()
	own.ID, own.State, own.Ask = "1.1/own", jig.CallWaiting, &jig.Pending{Kind: jig.PendingApproval, Call: "1.1/own", Tool: soloTool}
	below.ID = "1.1/below"
	s := newSolo(t, soloCall())
	s.OnActivity("Compose", mock.Anything, mock.Anything).Return(activities.Composed{Calls: []activities.CallRef{own, below}}, nil).Once()
	s.OnActivity("Compose", mock.Anything, mock.Anything).Return(activities.Composed{Done: true, Ran: activities.Ran{State: jig.CallSucceeded}}, nil)
	s.OnActivity(soloTool, mock.Anything, mock.Anything).After(time.Hour).Return(activities.Ran{State: jig.CallSucceeded}, nil)
	for i, idle := range []bool{true, true, false, true} {
		s.RegisterDelayedCallback(func() {
			s.SignalWorkflow("jig.waiting", workflows.Waiting{Call: below.ID, Idle: idle, Seq: int64(i + 1)})
		}, time.Duration(i+1)*time.Minute)
	}
	s.ExecuteWorkflow(protocol.CompositionWorkflow, workflows.CompositionInput{Tenant: "t", SessionID: "ses_asks", Call: "1.1"})
	require.NoError(t, s.GetWorkflowError())
	var idle []bool
	for _, report := range s.reports {
		idle = append(idle, report.Idle)
	}
	require.Equal(t, []bool{false, true, false, true}, idle)
}
