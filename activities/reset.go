package activities

import (
	"context"
	"log/slog"
	"strings"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
)

// maxResets is how many runs a worker remembers whose resets it has recorded. A forgotten one is looked for in the audit again.
const maxResets = 1000

// RecordResets returns an interceptor for the worker that runs the activities. Before the first activity of a run that came from a reset, it
// records the reset. If that fails, the activity fails and is tried again, so no reset is lost whose run does anything.
func RecordResets(a *Activities) interceptor.WorkerInterceptor {
	return &resetInterceptor{activities: a}
}

type resetInterceptor struct {
	interceptor.WorkerInterceptorBase
	activities *Activities
}

// InterceptActivity implements [interceptor.WorkerInterceptor].
func (i *resetInterceptor) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &resetRecorder{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, activities: i.activities}
}

type resetRecorder struct {
	interceptor.ActivityInboundInterceptorBase
	activities *Activities
}

// ExecuteActivity implements [interceptor.ActivityInboundInterceptor].
func (r *resetRecorder) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	for _, arg := range in.Args {
		if from, ok := arg.(interface{ Ref() protocol.SessionRef }); ok && from.Ref().Reset {
			if err := r.activities.recordReset(ctx, from.Ref()); err != nil {
				return nil, temporalError(err)
			}
		}
	}
	return r.Next.ExecuteActivity(ctx, in) //nolint:wrapcheck // the error is the activity's
}

// recordReset records in the audit that the workflow run of this activity came from a reset, once for each run.
func (a *Activities) recordReset(ctx context.Context, ref protocol.SessionRef) error {
	run := activity.GetInfo(ctx).WorkflowExecution
	if run.ID != ref.SessionID && !strings.HasPrefix(run.ID, jig.QualifiedCallID(ref.SessionID, "")) {
		return nil // not a workflow of the session, whatever it says
	}
	_, err := a.resets.Get(run.RunID, func(struct{}, bool) (struct{}, error) {
		e := audit.Entry{Kind: audit.AuditReset, SessionID: ref.SessionID, Subject: run.RunID, Note: nobody}
		e.Call, _ = strings.CutPrefix(strings.TrimPrefix(run.ID, ref.SessionID), "/")
		if a.Runs != nil {
			asking, cancel := context.WithTimeout(ctx, askTimeout)
			defer cancel()
			var err error
			if e.Reason, err = a.Runs.ResetReason(asking, run.ID, run.RunID); err != nil {
				a.Logger.WarnContext(ctx, "it is not known why a workflow was reset", slog.String("workflow_id", run.ID), slog.String("error", err.Error()))
			}
		}
		return struct{}{}, a.Store.RecordOnce(ctx, ref.Tenant, e)
	})
	return err
}
