package composition_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/spec"
)

// world simulates the environment of a composition: a ledger, kept values, a clock, events, and tools that answer when it is their turn. It
// handles moves as the engine does: it stores each one completely or not at all.
type world struct {
	plan  *composition.Plan
	tools func(row *row) (jig.ToolResult, bool)
	at    plan.Situation
	// order picks which of the open calls ends next; if nil, the first does.
	order *rand.Rand
	// crash discards moves and computes them again; never if nil.
	crash *rand.Rand
	// coming are future events, with the time at which the session receives them.
	coming []timed
	// cancelAfter cancels the run once that many calls have ended; 0 means never.
	cancelAfter int
	// heedless reports whether tools ignore cancellation. person settles a call whose outcome is unknown; if nil, the length of the call's path
	// decides.
	heedless bool
	person   func(*row)

	state  json.RawMessage
	rows   map[string]*row
	values map[string]json.RawMessage
	// asked lists the paths of the calls, in the order in which they were requested. log holds the events.
	asked    []string
	log      []jig.Event
	consumed []int64
	moves    int
	ended    int
	biggest  int
	// read counts the paths that were looked up, and queries the number of lookups.
	read, queries int
	result        jig.ToolResult
}

type timed struct {
	at    time.Time
	event plan.ReceivedEvent
}

// row is a call in the ledger.
type row struct {
	path, tool string
	// retryOf is the path of the attempt that failed before this one.
	retryOf  string
	input    json.RawMessage
	undo     bool
	status   jig.CallStatus
	result   *jig.ToolResult
	canceled bool
	// begun reports whether the tool may have had its effect. doubt counts how often the outcome became unknown.
	begun bool
	doubt int
	// rendered says which texts of the input a template made.
	rendered map[string][]string
}

var start = time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)

func newWorld(t *testing.T, document, input string, tools func(*row) (jig.ToolResult, bool)) *world {
	t.Helper()
	x, err := spec.LoadExecution("test.yaml", []byte(document))
	require.NoError(t, err)
	plan, err := composition.Compile(x)
	require.NoError(t, err)
	return worldOf(plan, input, tools)
}

func worldOf(compiled *composition.Plan, input string, tools func(*row) (jig.ToolResult, bool)) *world {
	return &world{
		plan: compiled, tools: tools, rows: map[string]*row{}, values: map[string]json.RawMessage{},
		at: plan.Situation{
			Input: json.RawMessage(input), Tenant: "acme", Now: start,
			Session:   json.RawMessage(`{"id":"ses_1","agent":"tester","task":"","input":{}}`),
			Principal: json.RawMessage(`{"id":"ana","groups":["editors"],"permissions":[]}`),
		},
	}
}

// Calls implements composition.Facts.
func (w *world) Calls(_ context.Context, paths []string) (map[string]composition.Call, error) {
	w.read += len(paths)
	w.queries++
	out := map[string]composition.Call{}
	for _, p := range paths {
		if r, ok := w.rows[p]; ok {
			out[p] = composition.Call{Status: r.status, Result: r.result, Tool: r.tool, Writes: strings.HasPrefix(r.tool, "write.")}
		}
	}
	return out, nil
}

// Values implements composition.Facts.
func (w *world) Values(_ context.Context, paths []string) (map[string]json.RawMessage, error) {
	w.read += len(paths)
	w.queries++
	out := map[string]json.RawMessage{}
	for _, p := range paths {
		if v, ok := w.values[p]; ok {
			out[p] = v
		}
	}
	return out, nil
}

// run takes the composition to its end and returns its result.
func (w *world) run(t *testing.T) jig.ToolResult {
	t.Helper()
	for range 200_000 {
		move := w.move(t)
		if move.Done {
			w.result = move.Result
			return move.Result
		}
		w.happen(t, move)
	}
	require.Fail(t, "the composition does not end")
	return jig.ToolResult{}
}

// move computes the next move and stores it. With crash set, moves are lost before they are stored, or computed again afterwards.
func (w *world) move(t *testing.T) plan.Move {
	t.Helper()
	move := w.advance(t)
	for w.crash != nil && w.crash.IntN(3) == 0 {
		again := w.advance(t)
		require.Equal(t, move, again, "the same state and facts give a different move")
	}
	w.store(t, move)
	if w.crash != nil && w.crash.IntN(3) == 0 && !move.Done && move.Wake != w.at.Now {
		again := w.advance(t)
		if !w.anyFinal(move.Calls) {
			require.Empty(t, again.Calls)
			require.Empty(t, again.Values)
			require.Empty(t, again.Events)
			require.JSONEq(t, string(move.State), string(again.State), "computing the move again changes the state")
		}
	}
	return move
}

func (w *world) anyFinal(asks []plan.Ask) bool {
	return slices.ContainsFunc(asks, func(a plan.Ask) bool { return w.rows[a.Path].status.Final() })
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
		_, twice := w.rows[ask.Path]
		require.False(t, twice, "the call %s was requested twice", ask.Path)
		w.asked = append(w.asked, ask.Path)
		if ask.RetryOf != "" {
			require.Empty(t, ask.Input)
			require.NotNil(t, w.rows[ask.RetryOf], "%s retries %s, which was never requested", ask.Path, ask.RetryOf)
			require.True(t, w.rows[ask.RetryOf].status.Final())
			ask.Input = w.rows[ask.RetryOf].input
		}
		require.True(t, json.Valid(ask.Input), "the input of %s is not JSON: %s", ask.Path, ask.Input)
		r := &row{path: ask.Path, tool: ask.Tool, retryOf: ask.RetryOf, input: ask.Input, rendered: ask.Rendered, undo: ask.Undoes != "", status: jig.CallReserved}
		if w.order != nil && len(ask.Path)%3 == 0 {
			r.status, r.begun = jig.CallExecuting, true
		}
		w.rows[ask.Path] = r
		if strings.HasPrefix(ask.Tool, "refused.") {
			w.finish(r, jig.Failure(jig.Errorf(jig.CodeNotPermitted, "not for you")))
		}
	}
	for _, path := range move.Cancel {
		r := w.rows[path]
		require.NotNil(t, r, "%s was never requested", path)
		require.False(t, r.status.Final(), "%s has ended", path)
		r.canceled = true
		switch r.status { //nolint:exhaustive // a cancellation does not end an executing call; its worker does
		case jig.CallWaiting:
			w.finish(r, jig.Failure(jig.Errorf(jig.CodeCanceled, "canceled")))
		case jig.CallUnknown:
			w.finish(r, jig.Failure(jig.Errorf(jig.CodeOutcomeUnknown, "nobody knows")))
		}
	}
	for _, path := range move.Stop {
		r := w.rows[path]
		require.NotNil(t, r, "%s was never requested", path)
		require.Equal(t, jig.CallExecuting, r.status, path)
		r.canceled = true
	}
	maps.Copy(w.values, move.Values)
	w.log = append(w.log, move.Events...)
	for _, id := range move.Consumed {
		require.NotContains(t, w.consumed, id, "the event was consumed twice")
		w.consumed = append(w.consumed, id)
	}
	w.at.Events = slices.DeleteFunc(slices.Clone(w.at.Events), func(e plan.ReceivedEvent) bool { return slices.Contains(w.consumed, e.ID) })
}

func (w *world) finish(r *row, result jig.ToolResult) {
	r.result, r.status = &result, jig.CallSucceeded
	if !result.Success {
		result.Error.NotExecuted = result.Error.NotExecuted || !r.begun
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
	if w.anyFinal(move.Calls) || move.Wake.Equal(w.at.Now) {
		return
	}
	open := slices.Clone(move.Open)
	for _, ask := range move.Calls {
		open = append(open, ask.Path)
	}
	for _, path := range open {
		require.False(t, w.rows[path].status.Final(), "%s has ended, but the move says that it is open", path)
	}
	slices.Sort(open)
	if w.order != nil {
		w.order.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
	}
	for _, path := range move.Cancel {
		if r := w.rows[path]; !slices.Contains(open, path) {
			w.finish(r, jig.Failure(jig.Errorf(jig.CodeCanceled, "canceled")))
			return
		}
	}
	for _, path := range open {
		r := w.rows[path]
		if r.status == jig.CallUnknown {
			w.reconcile(r)
			return
		}
		result, ends := w.tools(r)
		if ends && isDoubt(result) && (!r.canceled || r.begun) {
			r.status, r.begun = jig.CallUnknown, true
			r.doubt++
			return
		}
		allTheSame := ends && (w.heedless || w.order != nil && len(path)%2 == 0) // some ignore the cancellation
		if r.canceled && !allTheSame {
			result, ends = jig.Failure(jig.Errorf(jig.CodeCanceled, "canceled")), true
		}
		r.begun = r.begun || allTheSame || ends && !r.canceled
		if ends {
			w.finish(r, result)
			w.at.Canceled = w.at.Canceled || w.cancelAfter > 0 && w.ended >= w.cancelAfter
			return
		}
	}
	next := move.Wake
	if len(w.coming) > 0 && (next.IsZero() || w.coming[0].at.Before(next)) {
		next = w.coming[0].at
		w.at.Events = append(slices.Clone(w.at.Events), w.coming[0].event)
		w.coming = w.coming[1:]
	}
	require.False(t, next.IsZero(), "nothing more can happen; running: %v, state: %s", move.Steps, w.state)
	if next.After(w.at.Now) {
		w.at.Now = next
	}
}

// inDoubt returns the answer of a tool whose outcome becomes unknown.
func inDoubt() jig.ToolResult {
	return jig.Failure(jig.Errorf(jig.CodeOutcomeUnknown, "nobody knows").WithReason("doubt"))
}

func isDoubt(r jig.ToolResult) bool { return r.Error != nil && r.Error.Reason == "doubt" }

// reconcile lets a person settle a call with an unknown outcome. Without w.person, the length of the call's path decides: it happened, it did
// not happen, or it remains unknown.
func (w *world) reconcile(r *row) {
	if w.person != nil {
		w.person(r)
		return
	}
	switch len(r.path) % 3 {
	case 0:
		w.finish(r, succeed(`{"input":"a person's word"}`))
	case 1:
		r.status, r.begun = jig.CallReserved, false
	case 2:
		w.finish(r, jig.Failure(jig.Errorf(jig.CodeOutcomeUnknown, "nobody knows")))
	}
}

// succeed returns a successful result with data.
func succeed(data string) jig.ToolResult {
	return jig.ToolResult{Success: true, Data: json.RawMessage(data)}
}

// echo returns the path and the input of the call, except that fail.* tools fail and never.* tools do not end.
func echo(r *row) (jig.ToolResult, bool) {
	switch {
	case strings.HasPrefix(r.tool, "fail."):
		return jig.Failure(jig.Errorf(jig.CodeNotFound, "there is no such thing")), true
	case strings.HasPrefix(r.tool, "never."):
		return jig.ToolResult{}, false
	}
	return succeed(fmt.Sprintf(`{"path":%q,"input":%s}`, r.path, r.input)), true
}
