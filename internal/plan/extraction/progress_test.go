package extraction_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/extraction"
)

// The status of a task comes from the state. For a task that was not requested, it comes from the stored outcome.
func TestStanding_ReportsEachTask(t *testing.T) {
	t.Parallel()
	kind := kindOf(compute("a", "1"), tool("b", `{}`), compute("c", "tasks.b", "b"), compute("d", "[1][3]"))
	w := worldOf(compile(t, kind), extraction.Input{}, func(*row) (jig.ToolResult, bool) { return succeed(`1`), true })
	ended := map[string]json.RawMessage{}
	w.watch = func(_ *testing.T, _ *world, m plan.Move) {
		if m.Entity != nil {
			for id, raw := range m.Entity.Tasks {
				ended[id] = raw
			}
		}
	}
	standing := func() map[string]string {
		t.Helper()
		all, err := extraction.Standing(kind, w.state, ended)
		require.NoError(t, err)
		out := map[string]string{}
		for id, s := range all {
			out[id] = s.Status
			require.Equal(t, s.Status == "failed", s.Error != nil, id)
		}
		return out
	}
	none := map[string]string{"a": "pending", "b": "pending", "c": "pending", "d": "pending"}
	require.Equal(t, none, standing())
	w.move(t)
	require.Equal(t, map[string]string{"a": "completed", "b": "pending", "c": "pending", "d": "failed"}, standing())
	w.run(t)
	whole := map[string]string{"a": "completed", "b": "completed", "c": "completed", "d": "failed"}
	require.Equal(t, whole, standing())
	last := w.state

	w.state = nil
	require.Equal(t, whole, standing(), "before the next extraction begins, nothing changes")
	fresh := worldOf(w.plan, extraction.Input{Fields: []string{"a"}}, echo)
	fresh.run(t)
	w.state = fresh.state
	require.Equal(t, whole, standing(), "tasks that were not requested keep their status")

	for _, state := range []string{`{`, `{"marks":"dd"}`, `{"marks":"dxdd"}`} {
		_, err := extraction.Standing(kind, json.RawMessage(state), ended)
		require.Equal(t, jig.CodeInternal, jig.CodeOf(err))
	}
	_, err := extraction.Standing(kind, last, map[string]json.RawMessage{"a": []byte(`[`)})
	require.Equal(t, jig.CodeInternal, jig.CodeOf(err))
}

func TestStatusOf_FollowsTheCallAndTheTasks(t *testing.T) {
	t.Parallel()
	tasks := func(status string) map[string]jig.TaskState {
		return map[string]jig.TaskState{"a": {Status: "completed"}, "b": {Status: status}}
	}
	for name, row := range map[string]struct {
		call  jig.CallStatus
		tasks map[string]jig.TaskState
		ended bool
		want  string
	}{
		"never":                    {"", tasks("pending"), false, jig.ExtractionNone},
		"earlier":                  {"", tasks("completed"), true, jig.ExtractionCompleted},
		"earlier, one failed":      {"", tasks("failed"), true, jig.ExtractionPartial},
		"to begin":                 {jig.CallReserved, tasks("pending"), false, jig.ExtractionRunning},
		"in doubt":                 {jig.CallUnknown, tasks("failed"), true, jig.ExtractionRunning},
		"failed":                   {jig.CallFailed, tasks("completed"), true, jig.ExtractionFailed},
		"denied":                   {jig.CallDenied, tasks("pending"), false, jig.ExtractionFailed},
		"done":                     {jig.CallSucceeded, tasks("completed"), true, jig.ExtractionCompleted},
		"done, one was not asked":  {jig.CallSucceeded, tasks("pending"), true, jig.ExtractionCompleted},
		"done, one was canceled":   {jig.CallSucceeded, tasks("canceled"), true, jig.ExtractionPartial},
		"done, without any result": {jig.CallSucceeded, nil, false, jig.ExtractionCompleted},
	} {
		require.Equal(t, row.want, extraction.StatusOf(row.call, row.tasks, row.ended), name)
	}
}
