package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig/activities"
)

// Sweep closes sessions and approvals whose workflow was terminated or timed out. A schedule starts it every minute.
func Sweep(ctx workflow.Context) (activities.Swept, error) {
	var a *activities.Activities
	var swept activities.Swept
	if err := workflow.ExecuteActivity(sweepOptions(ctx), a.Sweep).Get(ctx, &swept); err != nil {
		return swept, failure(err)
	}
	return swept, nil
}
