package server

import (
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

// settings are the dynamic configuration of the server: ours, then those of overrides by Temporal's names.
//
// What jig also needs is on by default in this version, and a test holds it: updates, update-with-start (which has no
// switch any more), standalone activities, worker deployments, eager start.
func settings(overrides map[string]any) dynamicconfig.StaticClient {
	values := dynamicconfig.StaticClient{
		// 20 a second and shard by default, which makes every hop of a workflow wait for 50 ms on its shard.
		dynamicconfig.TransferProcessorMaxPollRPS.Key(): 1000,
		// The same for timers: retries, time-outs, waits.
		dynamicconfig.TimerProcessorMaxPollRPS.Key(): 1000,
		// 1 s by default, a floor under every run that continues as new.
		dynamicconfig.WorkflowIdReuseMinimalInterval.Key(): time.Millisecond,
		dynamicconfig.EnableActivityEagerExecution.Key():   true,
		// A search attribute can be used as soon as it is registered.
		dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,

		// Limits that share a cluster out among its users; here there is one.
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
