package wire

import (
	"time"

	"go.temporal.io/sdk/worker"
)

// How a worker is tuned; docs/benchmarks.md has the measurements.
const (
	// stickyTimeout is how long a session waits for the worker that has it in memory before another takes it: what a
	// decision waits at most when its worker was killed. Temporal's default is 5 s.
	stickyTimeout = time.Second
	// eagerActivities is how many calls of a pass begin without a way through the task queue: as many as run in parallel.
	// Temporal's default is 3.
	eagerActivities = 10
	// heartbeatThrottle is the longest time between two heartbeats: how long a running tool takes to hear that it was
	// cancelled. Temporal's default is 60 s.
	heartbeatThrottle = 2 * time.Second
	// The pollers grow and shrink with the load, between these bounds.
	fewestPollers, firstPollers, mostPollers = 2, 5, 50
)

// workerOptions are the options of Temporal's worker. fatal is told of the error that the worker cannot go on after.
func workerOptions(s Settings, fatal func(error)) worker.Options {
	eager := eagerActivities
	pollers := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
		InitialNumberOfPollers: firstPollers, MinimumNumberOfPollers: fewestPollers, MaximumNumberOfPollers: mostPollers,
	})
	return worker.Options{
		StickyScheduleToStartTimeout:                stickyTimeout,
		MaxEagerActivityReservationsPerWorkflowTask: &eager,
		MaxHeartbeatThrottleInterval:                heartbeatThrottle,
		WorkflowTaskPollerBehavior:                  pollers,
		ActivityTaskPollerBehavior:                  pollers,
		WorkerStopTimeout:                           s.StopTimeout,
		DisableRegistrationAliasing:                 true,
		OnFatalError:                                fatal,
	}
}
