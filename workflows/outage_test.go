package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/workflows"
)

// A database that is away for an hour delays sessions, compositions and quick tools, and ends none of them.
func TestDatabaseOutage_DelaysWorkflows(t *testing.T) {
	t.Parallel()
	const outage = time.Hour
	s := newSolo(t, soloCall())
	var began time.Time
	away := func() error {
		if s.Now().Sub(began) < outage {
			return jig.Errorf(jig.CodeUnavailable, "the database is away")
		}
		return nil
	}
	s.OnActivity("Compose", mock.Anything, mock.Anything).Return(func(context.Context, activities.ComposeInput) (activities.Composed, error) {
		return activities.Composed{Done: true}, away()
	})
	began = s.Now()
	s.ExecuteWorkflow(protocol.CompositionWorkflow, workflows.CompositionInput{Tenant: "t", SessionID: "ses_solo", Call: "1.1"})
	require.NoError(t, s.GetWorkflowError())

	local := soloCall()
	local.Local = true
	s = newSolo(t, local)
	s.OnActivity("Open", mock.Anything, mock.Anything).Return(func(context.Context, activities.OpenInput) (activities.Opened, error) {
		return activities.Opened{Agent: "solo", Pass: 1, Limits: jig.Limits{}.WithDefaults()}, away()
	})
	s.OnActivity("Think", mock.Anything, mock.Anything).Run(func(mock.Arguments) { began = s.Now() }).Return(activities.Thought{
		Calls: 1, Admitted: &activities.Admitted{Calls: []activities.CallRef{local}},
	}, nil)
	s.OnActivity("RunLocal", mock.Anything, mock.Anything).Return(func(context.Context, activities.RunLocalInput) ([]activities.Ran, error) {
		return []activities.Ran{{State: jig.CallSucceeded}}, away()
	})
	s.OnActivity("Settle", mock.Anything, mock.Anything).Return(activities.Settled{Status: jig.StatusCompleted}, nil)
	began = s.Now()
	s.ExecuteWorkflow(protocol.PassWorkflow, protocol.PassInput{Tenant: "t", Start: &protocol.StartSession{Agent: "solo"}})
	require.NoError(t, s.GetWorkflowError())
	require.Equal(t, jig.StatusCompleted, s.status(t))
}
