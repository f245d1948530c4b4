package e2e_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	workflowservicepb "go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/dev/internal/pg"
	"github.com/jig-run/jig/internal/protocol"
)

// newID returns a new client-chosen session id with the tenant's prefix.
func newID(tenant string) string {
	return jig.SessionID(tenant, strings.TrimPrefix(jig.NewSessionID(), jig.SessionPrefix))
}

func countRequest(query string) *workflowservicepb.CountWorkflowExecutionsRequest {
	return &workflowservicepb.CountWorkflowExecutionsRequest{Query: query}
}

// taskFailures lists why workflow tasks of a workflow's current run failed.
func (d *testEnv) taskFailures(id string) []string {
	var causes []string
	for iter := shared.temporal.GetWorkflowHistory(d.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); iter.HasNext(); {
		event, err := iter.Next()
		if err != nil {
			return append(causes, err.Error())
		}
		if failed := event.GetWorkflowTaskFailedEventAttributes(); failed != nil {
			causes = append(causes, failed.GetCause().String()+" "+failed.GetFailure().GetMessage())
		}
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT {
			causes = append(causes, "timed out")
		}
	}
	return causes
}

// stuck says what a workflow waits for and what happened in its current run, for the message of a failure.
func (d *testEnv) stuck(id string) string {
	text := []string{"its stacks:"}
	if answer, err := shared.temporal.QueryWorkflow(d.t.Context(), id, "", sdk.QueryTypeStackTrace); err != nil {
		text = append(text, err.Error())
	} else {
		var stacks string
		text = append(text, fmt.Sprint(answer.Get(&stacks)), stacks)
	}
	text = append(text, "its history:")
	for iter := shared.temporal.GetWorkflowHistory(d.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); iter.HasNext(); {
		event, err := iter.Next()
		if err != nil {
			return strings.Join(append(text, err.Error()), "\n")
		}
		text = append(text, protojson.Format(event))
	}
	return strings.Join(text, "\n")
}

// sweep makes a session look as if it had been idle for two minutes, and runs the sweeper.
func (d *testEnv) sweep(id string) {
	d.t.Helper()
	conn, err := pgx.Connect(d.t.Context(), shared.stack.OwnerURL())
	require.NoError(d.t, err)
	defer func() { _ = conn.Close(d.t.Context()) }()
	_, err = conn.Exec(d.t.Context(), "select set_config('jig.tenant', $1, false)", jig.DefaultTenant)
	require.NoError(d.t, err)
	changed, err := conn.Exec(d.t.Context(), "update sessions set updated_at = now() - interval '2 minutes' where session_id = $1", id)
	require.NoError(d.t, err)
	require.EqualValues(d.t, 1, changed.RowsAffected())
	require.True(d.t, eventually(d.t.Context(), patience, func() bool {
		// The status proves nothing, because reading it closes the session too.
		return d.sweepNow() == nil && len(d.eventsSoFar(id, jig.EventSessionFailed)) == 1
	}), "the session was not swept")
}

// sweepNow runs the sweeper.
func (d *testEnv) sweepNow() error {
	options := sdk.StartActivityOptions{ID: "sweep-" + rand.Text(), TaskQueue: d.queue, StartToCloseTimeout: time.Minute}
	run, err := shared.temporal.ExecuteActivity(d.t.Context(), options, protocol.Sweep)
	if err == nil {
		err = run.Get(d.t.Context(), nil)
	}
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	return nil
}

// page returns what the Web UI asks the workflow itself for: its current details and the descriptions of its signals, updates and queries. An
// empty run means the latest one.
func (d *testEnv) page(id, run string) *sdkpb.WorkflowMetadata {
	d.t.Helper()
	var page sdkpb.WorkflowMetadata
	value, err := shared.temporal.QueryWorkflow(d.t.Context(), id, run, "__temporal_workflow_metadata")
	require.NoError(d.t, err)
	require.NoError(d.t, value.Get(&page))
	return &page
}

// chaos returns the number of repetitions of a chaos test, and its seed. JIG_CHAOS=full repeats it full times, and JIG_CHAOS=sample repeats it
// sample times, which takes some minutes. The default is few.
func chaos(t *testing.T, full, sample, few int) (times int, seed int64) {
	t.Helper()
	seed = time.Now().UnixNano()
	if s := os.Getenv("JIG_CHAOS_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseInt(s, 10, 64)
		require.NoError(t, err, "JIG_CHAOS_SEED")
	}
	t.Logf("seed %d: JIG_CHAOS_SEED=%d repeats this run", seed, seed)
	switch os.Getenv("JIG_CHAOS") {
	case "full":
		return full, seed
	case "sample":
		return sample, seed
	}
	return few, seed
}

// biggest counts the runs of a session and holds the largest number of events and of bytes in one run's history.
type biggest struct {
	runs, events, bytes int64
}

func (d *testEnv) histories(id string) biggest {
	d.t.Helper()
	var b biggest
	for _, run := range d.runs(id) {
		described, err := shared.temporal.DescribeWorkflowExecution(d.t.Context(), id, run)
		require.NoError(d.t, err)
		info := described.GetWorkflowExecutionInfo()
		b.runs++
		b.events = max(b.events, info.GetHistoryLength())
		b.bytes = max(b.bytes, info.GetHistorySizeBytes())
	}
	return b
}

// runs returns the ids of a session's workflow runs, latest first, following the chain of continue-as-new.
func (d *testEnv) runs(id string) []string {
	d.t.Helper()
	var list []string
	run := ""
	for {
		described, err := shared.temporal.DescribeWorkflowExecution(d.t.Context(), id, run)
		require.NoError(d.t, err)
		info := described.GetWorkflowExecutionInfo()
		run = info.GetExecution().GetRunId()
		list = append(list, run)
		iter := shared.temporal.GetWorkflowHistory(context.WithoutCancel(d.t.Context()), id, run, false, 0)
		require.True(d.t, iter.HasNext())
		first, err := iter.Next()
		require.NoError(d.t, err)
		run = first.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
		if run == "" {
			return list
		}
	}
}

// nameOf returns the name that a probe's effect was asked to send.
func nameOf(p jig.Pending) string {
	var in struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(p.Input, &in) //nolint:errcheck // a truncated preview has no name, and no effect with that name arrived
	return in.Name
}

// mark returns the text that identifies a message or a refusal.
func mark(t *testing.T, e jig.Event) string {
	t.Helper()
	var data struct {
		Text string `json:"text"`
		By   string `json:"by"`
	}
	require.NoError(t, json.Unmarshal(e.Data, &data))
	if e.Type == jig.EventMessageAdded {
		return data.Text
	}
	return data.By
}

// removeLater removes the database of a development server's data folder when the test ends. Under root it is in a folder of its own.
func removeLater(t *testing.T, data string) {
	t.Helper()
	t.Cleanup(func() { require.NoError(t, pg.Remove(context.WithoutCancel(t.Context()), filepath.Join(data, "pg"))) })
}
