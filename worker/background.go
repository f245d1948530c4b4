package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowservicepb "go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig/internal/metrics"
	"github.com/jig-run/jig/internal/notify"
	"github.com/jig-run/jig/internal/outbound"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/tenancy"
)

// Times of the sweeper. docs/timeouts.md has the same values in a table, and a test compares the two.
const (
	// sweepEvery is how often the sweeper closes sessions whose workflow was ended externally.
	sweepEvery = time.Minute
	// sweepTimeout limits one sweep, and sweepHeartbeat how long it takes to notice that its worker has died.
	sweepTimeout   = 10 * time.Minute
	sweepHeartbeat = 10 * time.Second
	sweepAttempts  = 3
)

// recheckEvery is how often a worker looks for tenants in which the people who may decide have changed.
const recheckEvery = 2 * time.Second

// rechecker checks the open approvals of such tenants. Each worker does, because the store hands out a tenant to one of them.
type rechecker struct {
	recheck func(ctx context.Context) error
	logger  *slog.Logger
}

// run checks until ctx ends.
func (r rechecker) run(ctx context.Context) {
	next := time.NewTicker(recheckEvery)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		if err := r.recheck(ctx); err != nil && ctx.Err() == nil {
			r.logger.WarnContext(ctx, "open approvals were not checked after people changed; they are in a minute", slog.String("error", err.Error()))
		}
	}
}

// sweeper starts the activity that closes sessions whose workflow was ended externally. It uses no workflow, so that lists of workflows show
// sessions alone.
type sweeper struct {
	temporal sdk.Client
	queue    string
	logger   *slog.Logger
}

// run sweeps at once and then every minute, until ctx ends.
func (s sweeper) run(ctx context.Context) {
	for {
		now := time.Now()
		if err := s.sweep(ctx, now); err != nil && ctx.Err() == nil {
			s.logger.WarnContext(ctx, "the sweep failed: sessions that were ended externally stay open", slog.String("error", err.Error()))
		}
		next := time.NewTimer(time.Until(now.Truncate(sweepEvery).Add(sweepEvery)))
		select {
		case <-ctx.Done():
			next.Stop()
			return
		case <-next.C:
		}
	}
}

// sweep starts the sweep of a minute, or joins the one that another worker of the task queue has started, and waits until it has ended.
func (s sweeper) sweep(ctx context.Context, at time.Time) error {
	id := sweepID(s.queue, at)
	begun, err := s.temporal.ExecuteActivity(ctx, sdk.StartActivityOptions{
		ID: id, TaskQueue: s.queue, StartToCloseTimeout: sweepTimeout, HeartbeatTimeout: sweepHeartbeat,
		ActivityIDConflictPolicy: enumspb.ACTIVITY_ID_CONFLICT_POLICY_FAIL,
		ActivityIDReusePolicy:    enumspb.ACTIVITY_ID_REUSE_POLICY_REJECT_DUPLICATE,
		RetryPolicy:              &temporal.RetryPolicy{InitialInterval: time.Second, MaximumAttempts: sweepAttempts},
		Summary:                  "closes sessions whose workflow was ended externally",
	}, protocol.Sweep)
	var there *serviceerror.ActivityExecutionAlreadyStarted
	if errors.As(err, &there) {
		begun, err = s.temporal.GetActivityHandle(sdk.GetActivityHandleOptions{ActivityID: id}), nil
	}
	if err == nil {
		err = begun.Get(ctx, nil)
	}
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	return nil
}

// sweepID returns the id of the sweep of a minute. All workers of a task queue use the same, so that only one of them sweeps.
func sweepID(queue string, at time.Time) string {
	return fmt.Sprintf("jig-sweep-%s-%s", queue, at.UTC().Truncate(sweepEvery).Format("20060102T1504"))
}

// newDispatcher returns the dispatcher that sends stored notices to the webhooks in the tenants' settings.
func newDispatcher(
	db *store.DB, settings func(ctx context.Context, tenant string) (tenancy.Settings, error), s Settings,
	m *metrics.Metrics, logger *slog.Logger,
) *notify.Dispatcher {
	mailer, err := s.mailer()
	if err != nil { // the settings were checked
		logger.Error("mail cannot be sent", slog.Any("error", err))
	}
	sender := notify.NewWebhooks(notify.WebhookOptions{Transport: webhookTransport(s.AllowLoopback), PublicURL: s.PublicURL})
	return &notify.Dispatcher{
		Outbox:    db,
		Settings:  settings,
		Sender:    sender,
		Messenger: &notify.Messenger{Chats: sender, Mailer: mailer, PublicURL: s.PublicURL},
		Counted:   m.Delivered,
		Logger:    logger,
	}
}

// Limits of a webhook connection.
const (
	webhookIdleTimeout = 30 * time.Second
	webhookHeaderBytes = 16 << 10
)

// webhookTransport returns a guarded transport, because people who may write a tenant's document must not reach the worker's own network.
func webhookTransport(allowLoopback bool) *http.Transport {
	t := outbound.Transport(outbound.Options{AllowLoopback: allowLoopback})
	t.ForceAttemptHTTP2 = true
	t.IdleConnTimeout = webhookIdleTimeout
	t.MaxResponseHeaderBytes = webhookHeaderBytes
	return t
}

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
