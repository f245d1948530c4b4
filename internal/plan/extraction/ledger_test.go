package extraction_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/extraction"
)

// When a call ended without a result, its status decides the error.
func TestAdvance_DerivesOutcomesOfCallsWithoutResult(t *testing.T) {
	t.Parallel()
	for status, code := range map[jig.CallStatus]jig.Code{
		jig.CallSucceeded: "", jig.CallFailed: jig.CodeInternal, jig.CallDenied: jig.CodeDenied, jig.CallExpired: jig.CodeExpired,
		jig.CallCanceled: jig.CodeCanceled, jig.CallDuplicate: jig.CodeDuplicate,
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			w := worldOf(compile(t, kindOf(tool("x", `{}`))), extraction.Input{}, echo)
			w.move(t)
			w.rows["x"].status = status
			got := w.run(t)
			if code == "" {
				require.JSONEq(t, `null`, string(got.Values["x"]))
				return
			}
			require.Equal(t, extraction.TaskFailed, got.Tasks["x"].Status)
			require.Equal(t, code, got.Tasks["x"].Error.Code)
		})
	}
	w := worldOf(compile(t, kindOf(tool("x", `{}`))), extraction.Input{}, func(*row) (jig.ToolResult, bool) { return jig.ToolResult{}, false })
	w.move(t)
	w.rows["x"].status, w.rows["x"].result = jig.CallFailed, &jig.ToolResult{}
	require.Equal(t, jig.CodeInternal, w.run(t).Tasks["x"].Error.Code)
}

// broken returns errors instead of calls or values.
type broken struct {
	*world
	calls, values error
}

func (b broken) Calls(ctx context.Context, paths []string) (map[string]plan.StepCall, error) {
	if b.calls != nil {
		return nil, b.calls
	}
	return b.world.Calls(ctx, paths)
}

func (b broken) Sources(ctx context.Context) (entity.Sources, error) { return b.world.Sources(ctx) }

func (b broken) Values(ctx context.Context, paths []string) (map[string]json.RawMessage, error) {
	if b.values != nil {
		return nil, b.values
	}
	return b.world.Values(ctx, paths)
}

// If reading the facts fails or the context ends, only the move fails, not the extraction.
func TestFactErrors_FailOnlyTheMove(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	claims := entity.Task{ID: "check", Kind: entity.TaskCitations, Claims: "a", DependsOn: []string{"b"}}
	for name, next := range map[string]entity.Task{
		"compute": compute("x", "tasks.a", "a", "b"), "input": tool("x", `{"a":"${tasks.a}"}`, "a", "b"), "citations": claims,
		"when": {ID: "x", Kind: entity.TaskCompute, Compute: "1", When: "tasks.a == 1", DependsOn: []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worldOf(compile(t, kindOf(compute("a", "[]"), tool("b", `{}`), next)), extraction.Input{}, echo)
			w.move(t)
			_, err := w.plan.Advance(t.Context(), w.state, broken{world: w, calls: down}, w.at)
			require.ErrorIs(t, err, down)
			w.finish(w.rows["b"], succeed(`1`))
			_, err = w.plan.Advance(t.Context(), w.state, broken{world: w, values: down}, w.at)
			require.ErrorIs(t, err, down)
			gone, end := context.WithCancel(t.Context())
			end()
			_, err = w.plan.Advance(gone, w.state, w, w.at)
			require.ErrorIs(t, err, context.Canceled)
			kept := w.values["a"]
			delete(w.values, "a")
			_, err = w.plan.Advance(t.Context(), w.state, w, w.at)
			require.ErrorContains(t, err, "the value of the task a is gone")
			w.values["a"] = kept
			w.run(t)
			require.True(t, w.result.Success)
		})
	}
}

// The total size of all values is limited.
func TestValues_TotalSizeIsLimited(t *testing.T) {
	t.Parallel()
	var tasks []entity.Task
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r"} {
		tasks = append(tasks, tool(id, `{}`))
	}
	large := make([]byte, 1<<20-10)
	for i := range large {
		large[i] = 'x'
	}
	w := worldOf(compile(t, kindOf(tasks...)), extraction.Input{}, func(*row) (jig.ToolResult, bool) { return succeed(`"` + string(large) + `"`), true })
	got := w.run(t)
	require.Equal(t, 15, got.Counts.Completed)
	require.Contains(t, got.Tasks["r"].Error.Message, "more than 16 MiB")
}

// The store selects entities by the status at the beginning of an outcome.
func TestEarlier_BeginsWithItsStatus(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(extraction.Earlier{
		Status: extraction.TaskCanceled, Value: json.RawMessage(`1`), Record: extraction.Record{Attempts: 1, InputHash: "h", Error: &jig.Error{}},
	})
	require.NoError(t, err)
	require.Regexp(t, `^[{]"status":"canceled"`, string(b))
}
