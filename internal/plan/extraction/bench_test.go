package extraction_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan/extraction"
)

// large returns a steady graph of 1,000 tasks that call tools.
func large() steady {
	s := randomSteady(rand.New(rand.NewPCG(1, 1)), 1000)
	clear(s.dull)
	s.kind.MaxParallel = 10
	return s
}

// through runs an extraction to its end, with one call ending at a time, so that there are as many moves as calls.
func through(t testing.TB, w *world) extraction.Result {
	t.Helper()
	for {
		move, err := w.plan.Advance(t.Context(), w.state, w, w.at)
		require.NoError(t, err)
		w.state = move.State
		for path, v := range move.Values {
			w.values[path] = v
		}
		for _, ask := range move.Calls {
			w.rows[ask.Path] = &row{path: ask.Path, tool: ask.Tool, input: ask.Input, status: jig.CallReserved}
			w.asked = append(w.asked, ask.Path)
		}
		if move.Done {
			var out extraction.Result
			require.NoError(t, json.Unmarshal(move.Result.Data, &out))
			return out
		}
		open := move.Open
		for _, ask := range move.Calls {
			open = append(open, ask.Path)
		}
		if len(open) > 0 {
			r := w.rows[open[0]]
			result, _ := w.tools(r)
			w.finish(r, result)
		}
	}
}

// BenchmarkThousandTasks runs an extraction of 1,000 calls that end one by one: a thousand moves.
func BenchmarkThousandTasks(b *testing.B) {
	s := large()
	plan := compile(b, s.kind)
	for b.Loop() {
		result := through(b, worldOf(plan, extraction.Input{Input: yes}, s.tools).knowing(s.sources()))
		require.Equal(b, 1000, result.Counts.Completed)
	}
}

// BenchmarkRefreshThousandTasks refreshes an extraction after the source of every task has changed.
func BenchmarkRefreshThousandTasks(b *testing.B) {
	s := large()
	plan := compile(b, s.kind)
	first := through(b, worldOf(plan, extraction.Input{Input: yes}, s.tools).knowing(s.sources()))
	for _, id := range s.order {
		s.version[id]++
	}
	for b.Loop() {
		w := worldOf(plan, extraction.Input{Input: yes, Mode: extraction.ModeRefresh, Earlier: first.Earlier()}, s.tools).knowing(s.sources())
		result := through(b, w)
		require.Equal(b, 1000, result.Counts.Completed)
	}
}

// BenchmarkSevenComputed runs the extraction of a small entity whose tasks make no calls: one move.
func BenchmarkSevenComputed(b *testing.B) {
	var tasks []entity.Task
	for i := range 7 {
		t := entity.Task{ID: fmt.Sprintf("t%d", i), Kind: entity.TaskCompute, Compute: "'a'"}
		if i > 0 {
			t.DependsOn, t.Compute = []string{"t0"}, "tasks.t0 + string(entity.content.n)"
		}
		tasks = append(tasks, t)
	}
	plan := compile(b, kindOf(tasks...))
	for b.Loop() {
		result := through(b, worldOf(plan, extraction.Input{Entity: extraction.Target{Content: json.RawMessage(`{"n":1}`)}}, echo))
		require.Equal(b, 7, result.Counts.Completed)
	}
}
