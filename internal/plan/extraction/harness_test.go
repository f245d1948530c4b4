package extraction_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/extraction"
)

var start = time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)

// world simulates the environment of an extraction: a ledger, kept values, a clock, and tools that answer when it is their turn. It handles
// moves as the engine does: it stores each one completely or not at all.
type world struct {
	sources map[string]extraction.Source
	plan    *extraction.Plan
	tools   func(*row) (jig.ToolResult, bool)
	at      plan.Situation
	// order picks which of the open calls ends next; if nil, the first does.
	order *rand.Rand
	// crash discards moves and computes them again; never if nil.
	crash *rand.Rand
	// cancelAfter cancels the extraction once that many calls have ended; 0 means never.
	cancelAfter int
	// watch is called with each move that was stored.
	watch func(*testing.T, *world, plan.Move)

	state  json.RawMessage
	rows   map[string]*row
	values map[string]json.RawMessage
	// asked lists the paths of the calls, in the order in which they were requested.
	asked  []string
	log    []jig.Event
	result jig.ToolResult
	moves  int
	ended  int
	// biggest is the size of the largest state.
	biggest int
}

// row is a call in the ledger.
type row struct {
	path, tool string
	// retryOf is the path of the attempt that failed before this one.
	retryOf  string
	input    json.RawMessage
	status   jig.CallStatus
	result   *jig.ToolResult
	canceled bool
	rendered map[string][]string
}

// lenient returns checks that accept all values except those that the tests mark as bad.
func lenient() extraction.Checks {
	return extraction.Checks{
		Field: func(_ entity.Field, value json.RawMessage) error {
			if bytes.Contains(value, []byte("unfit")) {
				return jig.Errorf(jig.CodeInvalidInput, "this does not fit").WithField("/")
			}
			return nil
		},
		Schema: func(_, value json.RawMessage) error {
			if bytes.Contains(value, []byte("shapeless")) {
				return errors.New("this has not the shape")
			}
			return nil
		},
	}
}

func compile(t testing.TB, kind entity.Type) *extraction.Plan {
	t.Helper()
	plan, err := extraction.Compile(kind, lenient())
	require.NoError(t, err)
	return plan
}

func worldOf(compiled *extraction.Plan, input extraction.Input, tools func(*row) (jig.ToolResult, bool)) *world {
	if input.EntityID == "" {
		input.EntityID = "ent_1"
	}
	raw, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return &world{
		plan: compiled, tools: tools, rows: map[string]*row{}, values: map[string]json.RawMessage{},
		at: plan.Situation{Input: raw, Tenant: "acme", Now: start},
	}
}

// knowing sets the sources that values may be based on and that claims may cite.
func (w *world) knowing(sources map[string]extraction.Source) *world {
	w.sources = sources
	return w
}

// Sources implements plan.ExtractionFacts.
func (w *world) Sources(context.Context) (entity.Sources, error) {
	var all entity.Sources
	for id, s := range w.sources {
		all.Texts = append(all.Texts, entity.SourceText{ID: id, Hash: s.Hash, Body: s.Text})
	}
	return all, nil
}

// Calls implements plan.Facts.
func (w *world) Calls(_ context.Context, paths []string) (map[string]plan.StepCall, error) {
	out := map[string]plan.StepCall{}
	for _, p := range paths {
		if r, ok := w.rows[p]; ok {
			out[p] = plan.StepCall{Status: r.status, Result: r.result, Writes: strings.HasPrefix(r.tool, "write.")}
		}
	}
	return out, nil
}

// Values implements plan.Facts.
func (w *world) Values(_ context.Context, paths []string) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for _, p := range paths {
		if v, ok := w.values[p]; ok {
			out[p] = v
		}
	}
	return out, nil
}

// run takes the extraction to its end and returns its result.
func (w *world) run(t *testing.T) extraction.Result {
	t.Helper()
	for range 100_000 {
		move := w.move(t)
		if move.Done {
			w.result = move.Result
			var out extraction.Result
			if len(move.Result.Data) > 0 {
				var in extraction.Input
				require.NoError(t, json.Unmarshal(w.at.Input, &in))
				if in.Task != "" { // its result is a TaskOutcome
					return out
				}
				require.NoError(t, json.Unmarshal(move.Result.Data, &out))
			}
			return out
		}
		w.happen(t, move)
	}
	require.Fail(t, "the extraction does not end")
	return extraction.Result{}
}

// move computes the next move and stores it. With crash set, moves are lost before they are stored, or computed again afterwards.
func (w *world) move(t *testing.T) plan.Move {
	t.Helper()
	move := w.advance(t)
	for w.crash != nil && w.crash.IntN(4) == 0 {
		require.Equal(t, move, w.advance(t), "the same state and facts give a different move")
	}
	w.store(t, move)
	if w.crash != nil && w.crash.IntN(4) == 0 && move.Wake != w.at.Now {
		again := w.advance(t)
		require.Empty(t, again.Calls)
		require.Empty(t, again.Values)
		require.Empty(t, again.Events)
		require.JSONEq(t, string(move.State), string(again.State), "computing the move again changes the state")
		require.Equal(t, move.Result, again.Result)
	}
	return move
}

func (w *world) advance(t *testing.T) plan.Move {
	t.Helper()
	move, err := w.plan.Advance(t.Context(), w.state, w, w.at)
	require.NoError(t, err)
	return move
}

func (w *world) store(t *testing.T, move plan.Move) {
	t.Helper()
	w.moves++
	w.state = move.State
	w.biggest = max(w.biggest, len(move.State))
	for _, ask := range move.Calls {
		require.NotContains(t, w.rows, ask.Path, "the call was requested twice")
		if ask.RetryOf != "" {
			require.Empty(t, ask.Input)
			require.NotNil(t, w.rows[ask.RetryOf], "%s retries %s, which was never requested", ask.Path, ask.RetryOf)
			require.True(t, w.rows[ask.RetryOf].status.Final())
			ask.Input = w.rows[ask.RetryOf].input
		}
		require.True(t, json.Valid(ask.Input), "the input of %s is not JSON: %s", ask.Path, ask.Input)
		w.asked = append(w.asked, ask.Path)
		w.rows[ask.Path] = &row{path: ask.Path, tool: ask.Tool, retryOf: ask.RetryOf, input: ask.Input, rendered: ask.Rendered, status: jig.CallReserved}
	}
	for _, path := range move.Cancel {
		require.NotNil(t, w.rows[path], "%s was never requested", path)
		require.False(t, w.rows[path].status.Final(), "%s has ended", path)
		w.rows[path].canceled = true
	}
	for path := range move.Values {
		require.NotContains(t, w.values, path, "a value was kept twice")
	}
	maps.Copy(w.values, move.Values)
	w.log = append(w.log, move.Events...)
	if w.watch != nil {
		w.watch(t, w, move)
	}
}

func (w *world) finish(r *row, result jig.ToolResult) {
	r.result, r.status = &result, jig.CallSucceeded
	if !result.Success {
		r.status = jig.CallFailed
		if result.Error.Code == jig.CodeCanceled {
			r.status = jig.CallCanceled
		}
	}
	w.ended++
}

// happen lets the next thing happen: an open call ends, or time passes until one does.
func (w *world) happen(t *testing.T, move plan.Move) {
	t.Helper()
	if move.Wake.Equal(w.at.Now) {
		return
	}
	open := slices.Clone(move.Open)
	for _, ask := range move.Calls {
		open = append(open, ask.Path)
	}
	if w.order != nil {
		w.order.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
	}
	for _, path := range open {
		r := w.rows[path]
		require.False(t, r.status.Final(), "%s has ended, but the move says that it is open", path)
		result, ends := w.tools(r)
		if r.canceled && len(path)%2 == 0 { // other calls ignore the cancellation
			result, ends = jig.Failure(jig.Errorf(jig.CodeCanceled, "canceled")), true
		}
		if ends {
			w.finish(r, result)
			w.at.Canceled = w.at.Canceled || w.cancelAfter > 0 && w.ended >= w.cancelAfter
			return
		}
	}
	require.False(t, move.Wake.IsZero(), "nothing more can happen; running: %v, state: %s", move.Steps, w.state)
	w.at.Now = move.Wake
}

func succeed(data string) jig.ToolResult {
	return jig.ToolResult{Success: true, Data: json.RawMessage(data)}
}

func failing(code jig.Code) jig.ToolResult { return jig.Failure(jig.Errorf(code, "it did not work")) }

// echo returns its input.
func echo(r *row) (jig.ToolResult, bool) { return succeed(fmt.Sprintf(`{"input":%s}`, r.input)), true }

// answers returns the data listed for each path. A call of any other path fails.
func answers(of map[string]string) func(*row) (jig.ToolResult, bool) {
	return func(r *row) (jig.ToolResult, bool) {
		if data, ok := of[r.path]; ok {
			return succeed(data), true
		}
		return failing(jig.CodeNotFound), true
	}
}

// field returns a text field that the task of the same name fills.
func field(name string) entity.Field {
	return entity.Field{Name: name, Type: entity.FieldText, Task: name}
}

// kindOf returns an entity type with a field for each of its tasks.
func kindOf(tasks ...entity.Task) entity.Type {
	kind := entity.Type{Name: "module", Version: "v1", Tasks: tasks}
	for _, t := range tasks {
		kind.Fields = append(kind.Fields, field(t.ID))
	}
	return kind
}
