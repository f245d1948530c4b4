package composition_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/spec"
)

// everything uses each construct once.
const everything = `
kind: composition
name: test.everything
steps:
  - {id: a, tool: x.a, input: {n: "${input.n}"}, retry: {max_attempts: 3}, timeout: 1h, undo: {tool: x.unA}}
  - {id: each, for_each: input.list, max_parallel: 2, tool: x.b, input: {item: "${item}"}, on_error: continue}
  - id: blocks
    for_each: input.list
    steps:
      - {id: inner, tool: x.inner, undo: {tool: x.unInner, input: {at: "${index}"}}}
      - switch:
          - {when: index > 0, steps: [{id: more, tool: x.more}]}
          - {else: true, steps: [{set: {first: "${item}"}}]}
    on_error: {catch: [{id: mend, tool: x.mend}], as: oops}
  - parallel:
      - {id: p, tool: x.p}
      - {id: q, wait_for: {event: go, when: event.data.ok, timeout: 1h}, on_error: continue}
      - {wait: 10s}
  - {emit: {event: note, data: {n: "${vars.first}"}}}
  - {id: last, if: size(steps.blocks) == 2, tool: fail.last}
output: {last: "${steps.last.success}"}
`

// statesOf runs everything and returns the states along the way.
func statesOf(t testing.TB) (*composition.Plan, []string) {
	t.Helper()
	x, err := spec.LoadExecution("test.yaml", []byte(everything))
	require.NoError(t, err)
	compiled, err := composition.Compile(x)
	require.NoError(t, err)
	w := worldOf(compiled, `{"n":1,"list":["x","y"]}`, echo)
	w.coming = []timed{{at: start.Add(time.Second), event: plan.ReceivedEvent{ID: 1, Name: "go", Data: json.RawMessage(`{"ok":true}`)}}}
	var states []string
	for range 1_000 {
		move, err := compiled.Advance(t.Context(), w.state, w, w.at)
		require.NoError(t, err)
		for _, ask := range move.Calls {
			w.rows[ask.Path] = &row{path: ask.Path, tool: ask.Tool, input: ask.Input, status: jig.CallReserved}
		}
		for path, v := range move.Values {
			w.values[path] = v
		}
		w.state = move.State
		states = append(states, string(move.State))
		if move.Done {
			return compiled, states
		}
		for _, r := range w.rows {
			if !r.status.Final() {
				result, _ := echo(r)
				w.finish(r, result)
			}
		}
		if len(move.Calls) == 0 && len(w.coming) > 0 {
			w.at.Events, w.coming = []plan.ReceivedEvent{w.coming[0].event}, nil
		}
		w.at.Now = w.at.Now.Add(time.Second)
	}
	require.Fail(t, "it does not end")
	return nil, nil
}

func TestAdvance_RefusesInvalidStates(t *testing.T) {
	t.Parallel()
	plan, states := statesOf(t)
	good := states[len(states)/2]
	for name, state := range map[string]string{
		"no JSON":             `{`,
		"another format":      strings.Replace(good, `"v":1`, `"v":2`, 1),
		"another version":     strings.Replace(good, `"plan":"`, `"plan":"0`, 1),
		"an unknown member":   strings.Replace(good, `"v":1`, `"v":1,"more":1`, 1),
		"no steps":            strings.Split(good, `,"root"`)[0] + `}`,
		"a step too far":      `{"v":1,"plan":"` + versionOf(everything) + `","root":{"i":100,"s":{}}}`,
		"half a loop":         `{"v":1,"plan":"` + versionOf(everything) + `","root":{"i":1,"s":{}}}`,
		"a strange item":      `{"v":1,"plan":"` + versionOf(everything) + `","root":{"i":1,"s":{"l":{"n":2,"i":1,"o":[{"i":1,"s":{}}]}}}}`,
		"a strange branch":    `{"v":1,"plan":"` + versionOf(everything) + `","root":{"i":3,"s":{"p":[{}]}}}`,
		"catching nothing":    `{"v":1,"plan":"` + versionOf(everything) + `","root":{"s":{"x":{"p":"a"}}}}`,
		"a mark of nothing":   strings.Replace(good, `"done":{`, `"done":{"z":"zzz",`, 1),
		"undoing for nothing": strings.Replace(good, `"v":1`, `"v":1,"phase":"undoing"`, 1),
		"ending for nothing":  strings.Replace(good, `"v":1`, `"v":1,"phase":"ending"`, 1),
		"an unknown phase":    strings.Replace(good, `"v":1`, `"v":1,"phase":"dancing"`, 1),
		"a list":              `[]`,
	} {
		_, err := plan.Advance(t.Context(), json.RawMessage(state), empty{}, composition.Situation{Now: start})
		require.Equal(t, jig.CodeInternal, jig.CodeOf(err), "%s: %v", name, err)
	}
}

func TestAdvance_StopsWithItsContext(t *testing.T) {
	t.Parallel()
	plan, _ := statesOf(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := plan.Advance(ctx, nil, empty{}, composition.Situation{Now: start})
	require.ErrorIs(t, err, context.Canceled)
}

func TestFactErrors_AreReturned(t *testing.T) {
	t.Parallel()
	plan, states := statesOf(t)
	down := errors.New("the store is down")
	for _, state := range states[:len(states)-1] {
		move, err := plan.Advance(t.Context(), json.RawMessage(state), failing{down}, composition.Situation{Now: start, Input: json.RawMessage(`{"n":1,"list":[]}`)})
		if err == nil { // this state had nothing to look up
			require.Empty(t, move.Open)
			continue
		}
		require.ErrorIs(t, err, down)
	}
}

func TestAdvance_MissingCallIsAnInternalError(t *testing.T) {
	t.Parallel()
	plan, states := statesOf(t)
	_, err := plan.Advance(t.Context(), json.RawMessage(states[0]), empty{}, composition.Situation{Now: start})
	require.Equal(t, jig.CodeInternal, jig.CodeOf(err))
	require.ErrorContains(t, err, "the call a of the composition test.everything is gone")
}

// FuzzState passes arbitrary states to Advance, which must refuse or accept them but never panic.
func FuzzState(f *testing.F) {
	compiled, states := statesOf(f)
	for _, state := range states {
		f.Add(state, true)
	}
	f.Fuzz(func(t *testing.T, state string, final bool) {
		at := composition.Situation{Now: start, Input: json.RawMessage(`{"n":1,"list":["x"]}`), Events: []plan.ReceivedEvent{{ID: 3, Name: "go"}}}
		move, err := compiled.Advance(t.Context(), json.RawMessage(state), always{final}, at)
		if err != nil {
			require.NotEmpty(t, jig.CodeOf(err))
			return
		}
		_, err = compiled.Advance(t.Context(), move.State, always{final}, at)
		require.True(t, err == nil || jig.CodeOf(err) == jig.CodeInternal, "%v", err)
	})
}

type empty struct{}

func (empty) Calls(context.Context, []string) (map[string]composition.Call, error) {
	return map[string]composition.Call{}, nil
}

func (empty) Values(context.Context, []string) (map[string]json.RawMessage, error) {
	return map[string]json.RawMessage{}, nil
}

type failing struct{ err error }

func (f failing) Calls(_ context.Context, paths []string) (map[string]composition.Call, error) {
	return nil, f.err
}

func (f failing) Values(context.Context, []string) (map[string]json.RawMessage, error) {
	return nil, f.err
}

// always finds every call and every value.
type always struct{ final bool }

func (a always) Calls(_ context.Context, paths []string) (map[string]composition.Call, error) {
	out := map[string]composition.Call{}
	for _, p := range paths {
		out[p] = composition.Call{Status: jig.CallExecuting}
		if a.final {
			out[p] = composition.Call{Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true}}
		}
	}
	return out, nil
}

func (a always) Values(_ context.Context, paths []string) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for _, p := range paths {
		out[p] = json.RawMessage(`{"success":true,"summary":"","path":"a","call":"a","tool":"x.a"}`)
	}
	return out, nil
}
