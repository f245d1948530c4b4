package workflows_test

import (
	"compress/gzip"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/telemetry"
	"github.com/jig-run/jig/workflows"
)

// paths names the scenarios whose histories must replay with the code of the same commit. `make histories` records them from a real server, one
// file per run: testdata/<path>.<run>.json.gz.
var paths = []string{
	"plain", "approval", "denial", "expiry", "edit", "cancel", "message", "duplicate", "passes-200", "shared-run",
	"call", "call-answered", "call-cancel", "unopened", "many-calls", "unknown", "parallel",
	"composition", "composition-approval", "composition-denial", "composition-undo", "composition-cancel", "composition-wait",
	"composition-loop", "composition-nested", "agents", "agents-child",
	"extraction", "extraction-approval",
	"twenty", "question", "grant", "votes", "paused", "paused-pass", "ending-fail", "ending-cancel", "ending-composed", "composition-vote",
}

// The history of twenty calls that were decided in random order, with mixed answers, replays identically a hundred times. This
// shows that nothing in a run depends on map order, randomness or the clock.
func TestTwentyApprovals_ReplayAHundredTimes(t *testing.T) {
	t.Parallel()
	files := recorded(t, "twenty.*")
	require.NotEmpty(t, files)
	for range 100 {
		for _, file := range files {
			replay(t, file)
		}
	}
}

// Every recorded run of every path replays with the current code. This fails if a change alters the order of commands.
func TestRecordedHistories_Replay(t *testing.T) {
	t.Parallel()
	for _, path := range paths {
		files := append(recorded(t, path+".*"), recorded(t, path+"-1.1*")...) // the session's, and those of its compositions
		require.NotEmpty(t, files, "no history of %q is recorded: run `make histories`", path)
		for _, file := range files {
			name, err := filepath.Rel("testdata", strings.TrimSuffix(file, ".json.gz"))
			require.NoError(t, err)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				replay(t, file)
			})
		}
	}
}

// Histories of runs without traces replay on a worker that writes traces.
func TestRecordedHistories_ReplayWithTraces(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	tracer, err := telemetry.Start(t.Context(), telemetry.Settings{On: true}, "jig-worker", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NotEmpty(t, tracer.Propagators())
	for _, path := range paths {
		for _, file := range recorded(t, path+".*") {
			replay(t, file, tracer.Propagators()...)
		}
	}
}

// recorded returns the histories whose names match a pattern.
func recorded(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern+".json.gz"))
	require.NoError(t, err)
	return files
}

func replay(t *testing.T, file string, propagators ...workflow.ContextPropagator) {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	unzipped, err := gzip.NewReader(f)
	require.NoError(t, err)
	history, err := sdk.HistoryFromJSON(unzipped, sdk.HistoryJSONOptions{})
	require.NoError(t, err)
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{ContextPropagators: propagators})
	require.NoError(t, err)
	replayer.RegisterWorkflowWithOptions(workflows.Pass, workflow.RegisterOptions{Name: protocol.PassWorkflow})
	replayer.RegisterWorkflowWithOptions(workflows.Composition, workflow.RegisterOptions{Name: protocol.CompositionWorkflow})
	replayer.RegisterWorkflowWithOptions(workflows.Extraction, workflow.RegisterOptions{Name: protocol.ExtractionWorkflow})
	replayer.RegisterWorkflowWithOptions(workflows.Call, workflow.RegisterOptions{Name: protocol.CallWorkflow})
	started := history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	// The ids of child workflows are derived from the session's id.
	require.NoError(t, replayer.ReplayWorkflowHistoryWithOptions(nil, history, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: started.GetWorkflowId(), RunID: started.GetOriginalExecutionRunId()},
	}))
}
