package activities_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
)

// resets keeps the entries that activities record.
type resets struct {
	activities.Store
	entries []audit.Entry
	down    error
}

func (r *resets) RecordOnce(_ context.Context, _ string, e audit.Entry) error {
	if r.down == nil {
		r.entries = append(r.entries, e)
	}
	return r.down
}

// An activity of a run that came from a reset does nothing before the reset is in the audit.
func TestRecordResets_RecordsEachRunOnce(t *testing.T) {
	t.Parallel()
	const workflowID = "default-test-workflow-id" // of the test environment
	r := &resets{}
	a := activities.New(activities.Deps{Policy: noPolicies{}, Store: r, Logger: slog.New(slog.DiscardHandler)})
	ran := 0
	run := func(ref protocol.SessionRef) error {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		env.SetWorkerOptions(sdkworker.Options{Interceptors: []interceptor.WorkerInterceptor{activities.RecordResets(a)}})
		settle := func(context.Context, activities.PassRef) error { ran++; return nil }
		env.RegisterActivity(settle)
		_, err := env.ExecuteActivity(settle, activities.PassRef{SessionRef: ref, Pass: 1})
		return err
	}
	require.NoError(t, run(protocol.SessionRef{Tenant: "acme", SessionID: workflowID}))
	require.NoError(t, run(protocol.SessionRef{Tenant: "acme", SessionID: "ses_other", Reset: true}))
	require.Empty(t, r.entries, "not reset, or not a workflow of the session")
	require.Equal(t, 2, ran)

	r.down = jig.Errorf(jig.CodeUnavailable, "busy")
	reset := protocol.SessionRef{Tenant: "acme", SessionID: workflowID, Reset: true}
	require.Error(t, run(reset))
	require.Equal(t, 2, ran)
	r.down = nil
	require.NoError(t, run(reset))
	require.NoError(t, run(reset))
	require.Equal(t, 4, ran)
	require.Len(t, r.entries, 1)
	require.Equal(t, audit.AuditReset, r.entries[0].Kind)
	require.NotEmpty(t, r.entries[0].Subject)
}
