package server

import (
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

// settings returns the dynamic configuration of the server, with overrides by Temporal's names.
//
// jig also needs features that are enabled by default in this version, which a test checks: updates, update-with-start (which
// can no longer be disabled), standalone activities, worker deployments, and eager start.
func settings(overrides map[string]any) dynamicconfig.StaticClient {
	values := dynamicconfig.StaticClient{
		// The default is 20 per second and shard, which makes every step of a workflow wait for 50 ms on its shard.
		dynamicconfig.TransferProcessorMaxPollRPS.Key(): 1000,
		// The same limit for timers: retries, timeouts, waits.
		dynamicconfig.TimerProcessorMaxPollRPS.Key(): 1000,
		// Each row that is written for searches costs several milliseconds of PostgreSQL. A shard writes them in batches, at most this many
		// a second, instead of 20. Rows of runs that have ended by then are written once. Searches lag behind by 200 ms at most.
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): 5,
		// The default of 1 s would be the minimum duration of every run that continues as new.
		dynamicconfig.WorkflowIdReuseMinimalInterval.Key(): time.Millisecond,
		dynamicconfig.EnableActivityEagerExecution.Key():   true,
		// Task queues with a backlog serve tenants in turn: each start has its tenant as fairness key.
		dynamicconfig.MatchingEnableFairness.Key(): true,
		// The check sends the server's version to Temporal's makers.
		dynamicconfig.EnableServerVersionCheck.Key(): false,

		// These limits divide a cluster among its users. This server has only one user.
		dynamicconfig.FrontendRPS.Key():                                         100_000,
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key():                  100_000,
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key():        1_000,
		dynamicconfig.FrontendMaxConcurrentLongRunningRequestsPerInstance.Key(): 20_000,
		dynamicconfig.HistoryRPS.Key():                                          100_000,
		dynamicconfig.MatchingRPS.Key():                                         100_000,
		dynamicconfig.FrontendPersistenceMaxQPS.Key():                           100_000,
		dynamicconfig.HistoryPersistenceMaxQPS.Key():                            100_000,
		dynamicconfig.MatchingPersistenceMaxQPS.Key():                           100_000,
	}
	for name, value := range overrides {
		values[dynamicconfig.MakeKey(name)] = value
	}
	return values
}
