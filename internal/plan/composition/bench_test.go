package composition_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/spec"
)

// BenchmarkAdvance runs a sequence of 100 steps from start to end; each step reads the one before it. One operation is one call of Advance;
// a run takes 101 of them.
func BenchmarkAdvance(b *testing.B) {
	var document strings.Builder
	document.WriteString("kind: composition\nname: bench.sequence\nsteps:\n  - {id: s0, tool: x.a, input: {n: 0}}\n")
	for i := 1; i < 100; i++ {
		fmt.Fprintf(&document, "  - {id: s%d, tool: x.a, if: steps.s%d.success, input: {n: \"${steps.s%d.data.n + 1}\"}}\n", i, i-1, i-1)
	}
	document.WriteString("output: {n: \"${steps.s99.data.n}\"}\n")
	x, err := spec.LoadExecution("bench.yaml", []byte(document.String()))
	require.NoError(b, err)
	plan, err := composition.Compile(x)
	require.NoError(b, err)
	b.ReportAllocs()
	at := composition.Situation{Now: start, Input: json.RawMessage(`{}`)}
	var state json.RawMessage
	ledger := answered{}
	for b.Loop() {
		move, err := plan.Advance(b.Context(), state, ledger, at)
		if err != nil {
			b.Fatal(err)
		}
		if state = move.State; move.Done {
			require.JSONEq(b, `{"n":99}`, string(move.Result.Data))
			state = nil
			clear(ledger)
		}
		for _, ask := range move.Calls {
			ledger[ask.Path] = composition.Call{Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true, Data: ask.Input}}
		}
	}
}

// answered is a ledger of calls that have all succeeded.
type answered map[string]composition.Call

func (a answered) Calls(_ context.Context, paths []string) (map[string]composition.Call, error) {
	out := make(map[string]composition.Call, len(paths))
	for _, p := range paths {
		if c, ok := a[p]; ok {
			out[p] = c
		}
	}
	return out, nil
}

func (answered) Values(context.Context, []string) (map[string]json.RawMessage, error) {
	return map[string]json.RawMessage{}, nil
}
