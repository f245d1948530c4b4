package extraction_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan/extraction"
)

// pages is a type with two tasks that make calls, one that computes a field from the first, and one that runs on a condition.
func pages(t *testing.T) *extraction.Plan {
	t.Helper()
	return compile(t, entity.Type{
		Name: "page", Version: "v1", Fields: []entity.Field{{Name: "size", Type: entity.FieldNumber, Task: "size"}},
		Tasks: []entity.Task{
			{ID: "text", Kind: entity.TaskTool, Use: "a.text", Value: "result.text"},
			{ID: "size", Kind: entity.TaskCompute, Compute: "size(tasks.text) + (has(input.more) ? input.more : 0)", DependsOn: []string{"text"}},
			{ID: "other", Kind: entity.TaskTool, Use: "a.other"},
			{ID: "draft", Kind: entity.TaskCompute, Compute: "1", When: "entity.title == 'draft'"},
			{ID: "after", Kind: entity.TaskCompute, Compute: "tasks.draft", DependsOn: []string{"draft"}},
		},
	})
}

func outcomeOf(t *testing.T, w *world) extraction.TaskOutcome {
	t.Helper()
	require.True(t, w.result.Success, "%+v", w.result.Error)
	var out extraction.TaskOutcome
	require.NoError(t, json.Unmarshal(w.result.Data, &out))
	return out
}

func texts(text string) func(*row) (jig.ToolResult, bool) {
	return func(*row) (jig.ToolResult, bool) {
		return jig.ToolResult{Success: true, Data: json.RawMessage(`{"text":"` + text + `"}`)}, true
	}
}

func TestSingleTask_RunsWithWhatItDependsOn(t *testing.T) {
	t.Parallel()
	w := worldOf(pages(t), extraction.Input{Task: "size", Input: json.RawMessage(`{"more":10}`)}, texts("four"))
	w.run(t)
	require.Equal(t, []string{"text"}, w.asked, "no task runs that it does not need")
	out := outcomeOf(t, w)
	require.Equal(t, []any{"ent_1", "size", extraction.TaskCompleted, "14"}, []any{out.EntityID, out.Task, out.Status, string(out.Value)})
	require.Equal(t, []string{"size"}, out.Fields)
	require.Equal(t, "size", out.Provenance.Task)
	require.Equal(t, "task size: completed", w.result.Summary)
}

// The task itself runs again. Those that it depends on keep their values.
func TestSingleTask_KeepsEarlierValues(t *testing.T) {
	t.Parallel()
	earlier := func(value string) extraction.Earlier {
		return extraction.Earlier{
			Status: extraction.TaskCompleted, Value: json.RawMessage(value), Record: extraction.Record{Provenance: &entity.Provenance{}},
		}
	}
	before := map[string]extraction.Earlier{"text": earlier(`"seven.."`), "size": earlier("99")}
	w := worldOf(pages(t), extraction.Input{Task: "size", Earlier: before}, texts("four"))
	w.run(t)
	require.Empty(t, w.asked)
	require.Equal(t, "7", string(outcomeOf(t, w).Value))

	w = worldOf(pages(t), extraction.Input{Task: "text", Earlier: before}, texts("four"))
	w.run(t)
	require.Equal(t, []string{"text"}, w.asked, "a task that is named runs although it has a value")
	require.JSONEq(t, `"four"`, string(outcomeOf(t, w).Value))
}

func TestSingleTask_FailsWithTheErrorOfTheTask(t *testing.T) {
	t.Parallel()
	for task, message := range map[string]string{
		"text": "task text failed: the page is gone", "size": "task size needs task text, which failed: the page is gone",
	} {
		w := worldOf(pages(t), extraction.Input{Task: task}, func(*row) (jig.ToolResult, bool) {
			return jig.Failure(jig.Errorf(jig.CodeNotFound, "the page is gone").WithHint("look elsewhere")), true
		})
		w.run(t)
		require.False(t, w.result.Success)
		require.Equal(t, []any{jig.CodeNotFound, message, "look elsewhere"}, []any{w.result.Error.Code, w.result.Error.Message, w.result.Error.Hint})
	}
}

func TestSingleTask_SkippedByAConditionIsNoFailure(t *testing.T) {
	t.Parallel()
	for task, because := range map[string]string{"draft": "condition", "after": "draft"} {
		w := worldOf(pages(t), extraction.Input{Task: task}, texts("x"))
		w.run(t)
		out := outcomeOf(t, w)
		require.Equal(t, []any{extraction.TaskSkipped, because, "null"}, []any{out.Status, out.Because, string(out.Value)})
	}
}

func TestSingleTask_Unknown(t *testing.T) {
	t.Parallel()
	w := worldOf(pages(t), extraction.Input{Task: "siz"}, texts("x"))
	w.run(t)
	require.Equal(t, []any{jig.CodeInvalidInput, "/task"}, []any{w.result.Error.Code, w.result.Error.Field})
}

func TestSingleTask_Canceled(t *testing.T) {
	t.Parallel()
	w := worldOf(pages(t), extraction.Input{Task: "size"}, texts("x"))
	w.at.Canceled = true
	w.run(t)
	require.Equal(t, jig.CodeCanceled, w.result.Error.Code)
	require.False(t, slices.Contains(w.asked, "text"))
}
