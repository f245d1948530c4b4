package worker

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowservicepb "go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig/internal/metrics"
	"github.com/jig-run/jig/internal/store"
)

// poolOf reads the state of a store's connections.
func poolOf(db *store.DB) func() metrics.Pool {
	return func() metrics.Pool { return metrics.Pool(db.PoolStats()) }
}

// backlogsOf reads from Temporal how many tasks of a task queue wait for a worker.
func backlogsOf(temporal sdk.Client, s Settings) func(ctx context.Context) ([]metrics.Backlog, error) {
	kinds := []struct {
		name string
		kind enumspb.TaskQueueType
	}{{"workflow", enumspb.TASK_QUEUE_TYPE_WORKFLOW}, {"activity", enumspb.TASK_QUEUE_TYPE_ACTIVITY}}
	return func(ctx context.Context) ([]metrics.Backlog, error) {
		backlogs := make([]metrics.Backlog, 0, len(kinds))
		for _, k := range kinds {
			described, err := temporal.WorkflowService().DescribeTaskQueue(ctx, &workflowservicepb.DescribeTaskQueueRequest{
				Namespace: s.Temporal.Temporal.Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: s.Temporal.TaskQueue},
				TaskQueueType: k.kind, ReportStats: true,
			})
			if err != nil {
				return nil, fmt.Errorf("reading the backlog of the task queue: %w", err)
			}
			stats := described.GetStats()
			backlogs = append(backlogs, metrics.Backlog{
				Type: k.name, Tasks: stats.GetApproximateBacklogCount(), Age: stats.GetApproximateBacklogAge().AsDuration(),
			})
		}
		return backlogs, nil
	}
}
