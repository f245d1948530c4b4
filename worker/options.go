package worker

import (
	"runtime"
	"time"

	"go.temporal.io/sdk/interceptor"
	sdkworker "go.temporal.io/sdk/worker"
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
