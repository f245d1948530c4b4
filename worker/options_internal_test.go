package worker

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWorkerOptions_WorkflowTasks(t *testing.T) {
	t.Parallel()
	for tasks, want := range map[int]int{0: max(32, 16*runtime.NumCPU()), 1: 2, 7: 7} {
		require.Equal(t, want, workerOptions(Settings{WorkflowTasks: tasks}, nil).MaxConcurrentWorkflowTaskExecutionSize)
	}
}
