package workflows_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/workflows"
)

const soloTool = "solo.pay"

// solo runs a workflow with activities that answer as a test specifies.
type solo struct {
	*testsuite.TestWorkflowEnvironment
	// attempts counts the attempts of the call, and timers the timers.
	attempts, timers int
	// reports are the reports that the workflow sent to its session.
	reports []workflows.Waiting
}

func newSolo(t *testing.T, call activities.CallRef) *solo {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	s := &solo{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment()}
	s.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // on a busy machine a goroutine may wait for a processor
	s.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "ses_solo", TaskQueue: protocol.TaskQueue})
	workflows.Register(s, activities.New(activities.Deps{Store: new(store.DB)}), []string{soloTool}, "")
	s.SetOnTimerScheduledListener(func(string, time.Duration) { s.timers++ })
	s.OnActivity("OpenCall", mock.Anything, mock.Anything).Return(activities.Opened{Agent: jig.CallAgent, Limits: jig.Limits{}.WithDefaults()}, nil)
	s.OnActivity("Admit", mock.Anything, mock.Anything).Return(activities.Admitted{Calls: []activities.CallRef{call}}, nil)
	s.OnActivity("SettleCall", mock.Anything, mock.Anything).Return(activities.CallSettled{
		Settled: activities.Settled{Status: jig.StatusCompleted}, Call: activities.CallState{Status: jig.CallSucceeded},
	}, nil)
	s.OnActivity("End", mock.Anything, mock.Anything).Return(nil)
	s.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(
		func(_, _, _, _ string, arg any) error {
			if report, ok := arg.(workflows.Waiting); ok {
				s.reports = append(s.reports, report)
			}
			return nil
		})
	return s
}

// soloCall returns a call of the tool that may run.
func soloCall() activities.CallRef {
	return activities.CallRef{ID: "1.1", Tool: soloTool, State: jig.CallReserved, Timeout: 60}
}

// settles signals, at the given time, that the call was settled. status is the state that the store returns.
func (s *solo) settles(at time.Duration, call string, status jig.CallStatus) {
	s.OnActivity("Standing", mock.Anything, mock.Anything).Return(activities.Ran{State: status}, nil)
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(protocol.SignalSettled, protocol.Settlement{Call: call}) }, at)
}

func unknownRan() activities.Ran {
	return activities.Ran{State: jig.CallUnknown, Ask: &jig.Pending{Kind: jig.PendingReconcile, Call: "1.1", Tool: soloTool}}
}

// maxAttempts is how often a call may come back without having run. It limits the history of such a session.
const maxAttempts = 21

func TestIdleCall_BacksOffAndEndsInAnError(t *testing.T) {
	t.Parallel()
	for name, ref := range map[string]activities.CallRef{
		"activity":    soloCall(),
		"quick tool":  {ID: "1.1", Tool: soloTool, State: jig.CallReserved, Timeout: 60, Local: true},
		"composition": {ID: "1.1", Tool: soloTool, State: jig.CallReserved, Timeout: 60, Child: activities.ChildComposition},
		"agent":       {ID: "1.1", Tool: soloTool, State: jig.CallReserved, Timeout: 60, Child: activities.ChildAgent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSolo(t, ref)
			stuck := activities.Ran{State: jig.CallExecuting}
			count := func(mock.Arguments) { s.attempts++ }
			s.OnActivity(soloTool, mock.Anything, mock.Anything).Run(count).Return(stuck, nil)
			s.OnActivity("RunLocal", mock.Anything, mock.Anything).Run(count).Return([]activities.Ran{stuck}, nil)
			s.OnActivity("BeginChild", mock.Anything, mock.Anything).Run(count).Return(activities.Child{Ended: &stuck}, nil)
			s.OnWorkflow(protocol.CompositionWorkflow, mock.Anything, mock.Anything).Run(count).Return(&stuck, nil)
			began := s.Now()
			s.ExecuteWorkflow(protocol.CallWorkflow, protocol.CallInput{Tenant: "t", Tool: soloTool})
			require.True(t, s.IsWorkflowCompleted())
			err := activities.ErrorFrom(s.GetWorkflowError())
			require.Equal(t, jig.CodeUnavailable, err.Code)
			require.Contains(t, err.Message, "call 1.1 of solo.pay was started 21 times and never ran: it is still executing")
			require.Equal(t, maxAttempts, s.attempts)
			require.Equal(t, maxAttempts-1, s.timers, "a pause before each further attempt")
			require.Greater(t, s.Now().Sub(began), 5*time.Minute, "the pauses grow")
		})
	}
}

func TestIdleCall_ProgressIsNoError(t *testing.T) {
	t.Parallel()
	s := newSolo(t, soloCall())
	s.OnActivity(soloTool, mock.Anything, mock.Anything).Return(activities.Ran{State: jig.CallReserved}, nil).Times(maxAttempts - 1)
	s.OnActivity(soloTool, mock.Anything, mock.Anything).Return(activities.Ran{State: jig.CallSucceeded}, nil)
	s.ExecuteWorkflow(protocol.CallWorkflow, protocol.CallInput{Tenant: "t", Tool: soloTool})
	require.NoError(t, s.GetWorkflowError())
}

func TestSettledCall_ContinuesItsSession(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(*solo){
		"while it waits for a person": func(s *solo) {
			s.OnActivity(soloTool, mock.Anything, mock.Anything).Return(unknownRan(), nil)
			s.settles(time.Hour, "1.1", jig.CallSucceeded)
		},
		"before the session knows that it is unknown": func(s *solo) {
			s.OnActivity(soloTool, mock.Anything, mock.Anything).After(time.Minute).Return(unknownRan(), nil)
			s.settles(time.Second, "1.1", jig.CallSucceeded)
		},
		"while it waits for an approval": func(s *solo) {
			ask := jig.Pending{Kind: jig.PendingApproval, Call: "1.1", Tool: soloTool}
			s.OnActivity(soloTool, mock.Anything, mock.Anything).Return(activities.Ran{State: jig.CallWaiting, Ask: &ask}, nil)
			s.settles(time.Hour, "1.1", jig.CallDenied)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSolo(t, soloCall())
			play(s)
			s.ExecuteWorkflow(protocol.CallWorkflow, protocol.CallInput{Tenant: "t", Tool: soloTool})
			require.True(t, s.IsWorkflowCompleted())
			require.NoError(t, s.GetWorkflowError())
			var result protocol.CallResult
			require.NoError(t, s.GetWorkflowResult(&result))
			require.Equal(t, jig.CallSucceeded, result.Status)
		})
	}
}

// Anybody can send the signal, so the session relies on the store.
func TestSettledCall_HasTheStoredResult(t *testing.T) {
	t.Parallel()
	s := newSolo(t, soloCall())
	s.OnActivity(soloTool, mock.Anything, mock.Anything).Return(unknownRan(), nil)
	s.settles(time.Second, "1.1", jig.CallUnknown)
	s.RegisterDelayedCallback(func() {
		var view converter.EncodedValue
		view, err := s.QueryWorkflow(protocol.QueryStatus)
		require.NoError(t, err)
		var status map[string]any
		require.NoError(t, view.Get(&status))
		require.Equal(t, string(jig.StatusInputRequired), status["status"])
		s.CancelWorkflow()
	}, time.Hour)
	s.ExecuteWorkflow(protocol.CallWorkflow, protocol.CallInput{Tenant: "t", Tool: soloTool})
	require.Error(t, s.GetWorkflowError())
}

func TestSettledCall_ContinuesItsComposition(t *testing.T) {
	t.Parallel()
	s := newSolo(t, soloCall())
	step := soloCall()
	step.ID = "1.1/pay"
	s.OnActivity("Compose", mock.Anything, mock.Anything).Return(activities.Composed{Calls: []activities.CallRef{step}}, nil).Once()
	s.OnActivity(soloTool, mock.Anything, mock.Anything).Return(unknownRan(), nil)
	s.OnActivity("Compose", mock.Anything, mock.Anything).Return(activities.Composed{}, nil).Once() // it waits
	s.OnActivity("Compose", mock.Anything, mock.Anything).Return(activities.Composed{Done: true, Ran: activities.Ran{State: jig.CallSucceeded}}, nil)
	s.settles(time.Hour, step.ID, jig.CallSucceeded)
	s.ExecuteWorkflow(protocol.CompositionWorkflow, workflows.CompositionInput{Tenant: "t", SessionID: "ses_solo", Call: "1.1"})
	require.True(t, s.IsWorkflowCompleted())
	require.NoError(t, s.GetWorkflowError())
}

// A step that no retry can run ends its composition and its session, like a call of the session. It does not start again without end.
func TestStepThatCannotRun_EndsItsComposition(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func(*solo, func(mock.Arguments)){
		"error that no retry can fix": func(s *solo, count func(mock.Arguments)) {
			broken := temporal.NewNonRetryableApplicationError("the row is broken", string(jig.CodeInvalidInput), nil)
			s.OnActivity(soloTool, mock.Anything, mock.Anything).Run(count).Return(activities.Ran{}, broken)
		},
		"no attempt runs": func(s *solo, count func(mock.Arguments)) {
			s.OnActivity(soloTool, mock.Anything, mock.Anything).Run(count).Return(activities.Ran{State: jig.CallReserved}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSolo(t, soloCall())
			step := soloCall()
			step.ID = "1.1/pay"
			s.OnActivity("Compose", mock.Anything, mock.Anything).Return(activities.Composed{Calls: []activities.CallRef{step}}, nil)
			fails(s, func(mock.Arguments) { s.attempts++ })
			s.ExecuteWorkflow(protocol.CompositionWorkflow, workflows.CompositionInput{Tenant: "t", SessionID: "ses_solo", Call: "1.1"})
			require.True(t, s.IsWorkflowCompleted())
			var next *workflow.ContinueAsNewError
			require.NotErrorAs(t, s.GetWorkflowError(), &next)
			require.Error(t, s.GetWorkflowError())
			require.LessOrEqual(t, s.attempts, maxAttempts)
		})
	}
}
