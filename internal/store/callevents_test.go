package store_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

// The events of an attempt show the input, the result and the provider's id of the call, however the attempt begins and ends.
func TestCallEvents_ShowInputAndResult(t *testing.T) {
	t.Parallel()
	read := func(c *jig.Call) { c.Write, c.Idempotent = false, true }
	asks := func(c *jig.Call) { c.Verdict, c.Status = jig.VerdictAsk, jig.CallWaiting }
	succeeds := func(t *testing.T, w world, c jig.Call) {
		t.Helper()
		w.ends(t, c, w.reserve(t, c).Fence, nil)
	}
	for name, row := range map[string]struct {
		change func(*jig.Call)
		run    func(*testing.T, world, jig.Call)
	}{
		"one statement": {nil, succeeds},
		"approved": {asks, func(t *testing.T, w world, c jig.Call) {
			t.Helper()
			w.decide(t, "k", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, By: "ben"})
			succeeds(t, w, c)
		}},
		"answered by a session": {nil, func(t *testing.T, w world, c jig.Call) {
			t.Helper()
			r := w.request(c)
			r.Child = "ses_child"
			begun, err := w.Reserve(t.Context(), r)
			require.NoError(t, err)
			w.ends(t, c, begun.Fence, nil)
		}},
		"large result": {nil, func(t *testing.T, w world, c jig.Call) {
			t.Helper()
			w.ends(t, c, w.reserve(t, c).Fence, func(c *ledger.Completion) { c.Whole = []byte(`{"success":true}`) })
		}},
		"late": {nil, func(t *testing.T, w world, c jig.Call) {
			t.Helper()
			fence := w.reserve(t, c).Fence
			w.ends(t, c, fence, failing(jig.CallUnknown, false))
			require.True(t, w.ends(t, c, fence, nil).Late)
		}},
		"quick read": {read, func(t *testing.T, w world, c jig.Call) {
			t.Helper()
			ended := quick(c)
			ended.Result = jig.ToolResult{Success: true, Summary: "done", Data: json.RawMessage(`{"n":1}`)}
			names, err := w.FinishQuick(t.Context(), w.tenant, w.session, []ledger.QuickCompletion{ended})
			require.NoError(t, err)
			require.Len(t, names, 1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.running(t, func(c *jig.Call) {
				c.Write, c.ProviderID = true, `toolu_"1"`
				c.Input = []byte(`{"path":"a","text":"` + strings.Repeat("x", 4000) + `"}`)
				if row.change != nil {
					row.change(c)
				}
			})
			row.run(t, w, c)
			begun, ended := w.last(t, jig.EventToolStarted), w.last(t, jig.EventToolCompleted)
			require.Contains(t, begun["title"], "path=a, text=xxx")
			shown, err := json.Marshal(begun["input"])
			require.NoError(t, err)
			require.LessOrEqual(t, len(shown), 512)
			input, ok := begun["input"].(map[string]any)
			require.True(t, ok)
			require.Equal(t, "a", input["path"])
			require.Equal(t, true, begun["truncated"])
			require.InDelta(t, 1, begun["attempt"], 0)
			require.Equal(t, "done", ended["summary"])
			require.Equal(t, map[string]any{"n": 1.0}, ended["data"])
			for _, data := range []map[string]any{begun, ended} {
				require.Equal(t, `toolu_"1"`, data["provider_id"])
			}
		})
	}
}

func TestCallEvents_OfAStepHaveNoProviderID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _ := w.frame(t, 1)
	step := w.step(f, "pay")
	w.move(t, w.moving(f, step))
	require.Equal(t, ledger.ReserveRun, w.reserve(t, step).Outcome)
	w.ends(t, step, 1, nil)
	begun := w.last(t, jig.EventToolStarted)
	require.Contains(t, begun, "input")
	require.NotContains(t, begun, "provider_id")
	require.NotContains(t, w.last(t, jig.EventToolCompleted), "provider_id")
}
