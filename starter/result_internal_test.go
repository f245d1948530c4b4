package starter

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
)

func TestResult_PrintsWhatASessionHasComeTo(t *testing.T) {
	t.Parallel()
	denied := map[jig.CallStatus]int{jig.CallDenied: 1}
	waits := protocol.SessionResult{
		SessionID: "ses_1", Status: jig.StatusInputRequired, Pending: []protocol.WaitingCall{{SessionID: "ses_2", Call: "1.1", Tool: "file.write"}},
	}
	for name, row := range map[string]struct {
		outcome protocol.SessionResult
		code    int
		out     string
		err     string
	}{
		"an answer":  {protocol.SessionResult{Status: jig.StatusCompleted, Answer: "done\x1b[2J", Passes: 2}, exitDone, "done [2J\n", "completed after 2 passes"},
		"an output":  {protocol.SessionResult{Status: jig.StatusCompleted, Output: json.RawMessage(`{"id":7}`)}, exitDone, "{\n  \"id\": 7\n}\n", ""},
		"a failure":  {protocol.SessionResult{Status: jig.StatusFailed, Error: jig.Errorf(jig.CodeTimeout, "too slow")}, exitFailed, "", "too slow"},
		"a denial":   {protocol.SessionResult{Status: jig.StatusCompleted, Calls: denied}, exitDenied, "", ""},
		"it waits":   {waits, exitWaiting, "", "jig approvals show ses_2 1.1"},
		"it is busy": {protocol.SessionResult{Status: jig.StatusWorking}, exitWaiting, "", "jig result ses_1 --wait"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := jigCLI(t, &fake{outcome: row.outcome}, nil, "result", "ses_1")
			require.Equal(t, row.code, got.code, got.stderr)
			require.Equal(t, row.out, got.stdout)
			require.Contains(t, got.stderr, row.err)
		})
	}
}

func TestResult_PrintsACall(t *testing.T) {
	t.Parallel()
	e := &fake{record: protocol.CallRecord{
		SessionID: "ses_1", Call: "1.1/page", Tool: "cms.createPage", Status: jig.CallSucceeded, Input: json.RawMessage(`{"title":"Team"}`),
		Result: &jig.ToolResult{Success: true, Data: json.RawMessage(`{"id":"p1"}`), Summary: "created"},
	}}
	got := jigCLI(t, e, nil, "result", "ses_1", "1.1/page")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.JSONEq(t, `{"id":"p1"}`, got.stdout)
	require.Contains(t, got.stderr, "created")
	got = jigCLI(t, e, nil, "result", "ses_1", "1.1/page", "--output", "json")
	require.Equal(t, exitDone, got.code, got.stderr)
	var record protocol.CallRecord
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &record))
	require.JSONEq(t, `{"title":"Team"}`, string(record.Input))
	require.JSONEq(t, `{"id":"p1"}`, string(record.Result.Data))

	e.record.Status, e.record.Result = jig.CallExecuting, nil
	got = jigCLI(t, e, nil, "result", "ses_1", "1.1/page")
	require.Equal(t, exitWaiting, got.code)
	require.Contains(t, got.stderr, "1.1/page cms.createPage has no result yet: it is executing")
}

func TestResult_WaitsForACall(t *testing.T) {
	t.Parallel()
	e := &fake{
		pages: []client.EventsPage{
			{Status: jig.StatusWorking, Events: []jig.Event{{Type: jig.EventToolCompleted, CallID: "1.1"}}},
			{Status: jig.StatusWorking, Events: []jig.Event{{Type: jig.EventToolCompleted, CallID: "1.2"}}},
		},
		record: protocol.CallRecord{Call: "1.2", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true, Data: json.RawMessage(`2`)}},
	}
	got := jigCLI(t, e, nil, "result", "ses_1", "1.2", "--wait")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, "2\n", got.stdout)
}

func TestResult_SaysWhatTheSessionWaitsFor(t *testing.T) {
	t.Parallel()
	for has, view := range map[string]jig.SessionView{
		"1.1 waits: limit notes allows 2 calls per 1h": {Calls: []jig.CallView{{Call: "1.1", Status: jig.CallReserved, Summary: "waits: limit notes allows 2 calls per 1h"}}},
		"jig event ses_1 paid --data '{}'":             {Waits: []jig.Wait{{Call: "1.1/paid", Event: "paid"}}},
		"paused: tool file.write":                      {Paused: []jig.Pause{{Scope: jig.PauseTool, Target: "file.write"}}},
	} {
		view.SessionID = "ses_1"
		got := jigCLI(t, &fake{outcome: protocol.SessionResult{Status: jig.StatusWorking}, view: view}, nil, "result", "ses_1")
		require.Equal(t, exitWaiting, got.code, got.stderr)
		require.Contains(t, got.stderr, has)
	}
}
