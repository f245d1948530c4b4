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

// A session whose next pass a pause holds back is shown as waiting for a person until the pause is lifted.
func TestSession_WaitsForAPersonWhilePaused(t *testing.T) {
	t.Parallel()
	s := newSolo(t, soloCall())
	s.OnActivity("Open", mock.Anything, mock.Anything).Return(
		activities.Opened{Agent: "solo", Pass: 1, Revision: protocol.Revision, Limits: jig.Limits{}.WithDefaults()}, nil)
	s.OnActivity("Think", mock.Anything, mock.Anything).Return(activities.Thought{Paused: true}, nil).Once()
	s.OnActivity("AwaitResume", mock.Anything, mock.Anything).After(time.Minute).Return(nil)
	status := func() jig.Status {
		answer, err := s.QueryWorkflow(protocol.QueryStatus)
		require.NoError(t, err)
		var view jig.SessionView
		require.NoError(t, answer.Get(&view))
		return view.Status
	}
	var paused, resumed jig.Status
	s.RegisterDelayedCallback(func() { paused = status() }, 30*time.Second)
	s.OnActivity("Think", mock.Anything, mock.Anything).Run(func(mock.Arguments) { resumed = status() }).Return(
		activities.Thought{Ended: &activities.Settled{Status: jig.StatusCompleted}}, nil)
	s.ExecuteWorkflow(protocol.PassWorkflow, protocol.PassInput{Tenant: "t", Start: &protocol.StartSession{Agent: "solo"}})
	require.NoError(t, s.GetWorkflowError())
	require.Equal(t, jig.StatusInputRequired, paused)
	require.Equal(t, jig.StatusWorking, resumed)
}
