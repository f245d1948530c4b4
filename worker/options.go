package worker

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"time"

	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/workflows"
)

// Worker tuning; docs/benchmarks.md has the measurements.
const (
	// stickyTimeout is how long a session waits for the worker that has it in memory before another worker takes over. If that worker was
	// killed, a decision waits at most this long. Temporal's default is 5 s.
	stickyTimeout = time.Second
	// eagerActivities is how many calls of a pass may start without going through the task queue: as many as run in parallel. Temporal's
	// default is 3.
	eagerActivities = 10
	// heartbeatThrottle is the longest time between two heartbeats. A running tool learns within this time that it was canceled.
	// Temporal's default is 60 s.
	heartbeatThrottle = 2 * time.Second
	// deadlockTimeout is how long a workflow may take to yield before its task fails as deadlocked. Temporal's default of 1 s fails tasks
	// on a machine that is merely overloaded, and tasks that fail repeatedly are retried minutes apart.
	deadlockTimeout = 8 * time.Second
	// The number of pollers follows the load, between these bounds.
	fewestPollers, firstPollers, mostPollers = 2, 5, 50
)

// A worker executes tasksPerCPU workflow tasks for each CPU at the same time, and at least fewestTasks. Further tasks wait in Temporal's queues, which
// hand out those of all tenants in turn. With Temporal's default of 1,000, the tasks of a tenant with many sessions compete on the worker with each
// other and with those of all other tenants, which makes all of them slower.
const tasksPerCPU, fewestTasks = 16, 32

// workflowTasks returns how many workflow tasks a worker executes at the same time. Temporal's SDK needs at least two.
func workflowTasks(s Settings) int {
	if s.WorkflowTasks > 0 {
		return max(2, s.WorkflowTasks)
	}
	return max(fewestTasks, tasksPerCPU*runtime.NumCPU())
}

// workerOptions returns the options of Temporal's worker. It calls fatal with the error that ends the worker.
func workerOptions(s Settings, fatal func(error), interceptors ...interceptor.WorkerInterceptor) sdkworker.Options {
	eager := eagerActivities
	pollers := sdkworker.NewPollerBehaviorAutoscaling(sdkworker.PollerBehaviorAutoscalingOptions{
		InitialNumberOfPollers: firstPollers, MinimumNumberOfPollers: fewestPollers, MaximumNumberOfPollers: mostPollers,
	})
	return sdkworker.Options{
		StickyScheduleToStartTimeout:                stickyTimeout,
		MaxEagerActivityReservationsPerWorkflowTask: &eager,
		MaxHeartbeatThrottleInterval:                heartbeatThrottle,
		MaxConcurrentWorkflowTaskExecutionSize:      workflowTasks(s),
		WorkflowTaskPollerBehavior:                  pollers,
		ActivityTaskPollerBehavior:                  pollers,
		WorkerStopTimeout:                           s.StopTimeout,
		DeadlockDetectionTimeout:                    deadlockTimeout,
		DisableRegistrationAliasing:                 true,
		OnFatalError:                                fatal,
		Interceptors:                                interceptors,
		DeploymentOptions:                           deploymentOptions(s),
	}
}

// deploymentForm matches the name of a deployment and the id of a build. Temporal reserves '.' and ':' in names.
var deploymentForm = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_-]{0,99}):([A-Za-z0-9][A-Za-z0-9._+-]{0,99})$`)

// deployment reads the version of the workers. It is empty if it is not set.
func (r *reader) deployment(name string) sdkworker.WorkerDeploymentVersion {
	v := r.Text(name, "")
	if v == "" {
		return sdkworker.WorkerDeploymentVersion{}
	}
	parts := deploymentForm.FindStringSubmatch(v)
	if parts == nil {
		r.Refuse(name, "NAME:BUILD, e.g. jig:2026-11-22 (letters, digits, '_' and '-'; in BUILD also '.' and '+')")
		return sdkworker.WorkerDeploymentVersion{}
	}
	return sdkworker.WorkerDeploymentVersion{DeploymentName: parts[1], BuildID: parts[2]}
}

// versioned reports whether the workers have a version, so that they get no work until it is current.
func (s Settings) versioned() bool { return s.Deployment != sdkworker.WorkerDeploymentVersion{} }

// deploymentOptions returns the options of a versioned worker.
func deploymentOptions(s Settings) sdkworker.DeploymentOptions {
	if !s.versioned() {
		return sdkworker.DeploymentOptions{}
	}
	return sdkworker.DeploymentOptions{
		UseVersioning: true, Version: s.Deployment, DefaultVersioningBehavior: workflows.Moves,
	}
}

// madeCurrentWithin bounds how long MakeCurrent waits for Temporal to learn of the worker, and madeCurrentPause is the time between attempts.
const (
	madeCurrentWithin = time.Minute
	madeCurrentPause  = 100 * time.Millisecond
)

// MakeCurrent makes the worker's version the current one of its deployment: the sessions of the task queue move to it. It waits until
// Temporal knows of the worker, up to a minute. It does nothing for a worker without a version.
func (w *Worker) MakeCurrent(ctx context.Context) error {
	if w.version == (sdkworker.WorkerDeploymentVersion{}) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, madeCurrentWithin)
	defer cancel()
	deployment := w.temporal.WorkerDeploymentClient().GetHandle(w.version.DeploymentName)
	for {
		_, err := deployment.SetCurrentVersion(ctx, sdk.WorkerDeploymentSetCurrentVersionOptions{BuildID: w.version.BuildID})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return jig.Errorf(jig.CodeUnavailable, "the version %s:%s cannot be made current: %w", w.version.DeploymentName, w.version.BuildID, err).
				WithHint(makeCurrent(w.version))
		case <-time.After(madeCurrentPause):
		}
	}
}

// makeCurrent returns the command that makes a version current.
func makeCurrent(v sdkworker.WorkerDeploymentVersion) string {
	return fmt.Sprintf("temporal worker deployment set-current-version --deployment-name %s --build-id %s --yes", v.DeploymentName, v.BuildID)
}

// sayCurrent logs the command that makes the worker's version current, unless it is current already.
func (w *Worker) sayCurrent(ctx context.Context) {
	if w.version == (sdkworker.WorkerDeploymentVersion{}) {
		return
	}
	described, err := w.temporal.WorkerDeploymentClient().GetHandle(w.version.DeploymentName).Describe(ctx, sdk.WorkerDeploymentDescribeOptions{})
	if current := described.Info.RoutingConfig.CurrentVersion; err == nil && current != nil && *current == w.version {
		return
	}
	w.logger.WarnContext(ctx, "this worker gets no work until its version is current",
		slog.String("version", w.version.DeploymentName+":"+w.version.BuildID), slog.String("command", makeCurrent(w.version)))
}
