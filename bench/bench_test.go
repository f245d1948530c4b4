package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func TestQuantile(t *testing.T) {
	t.Parallel()
	values := []float64{4, 1, 3, 2}
	for _, one := range []struct{ q, want float64 }{{0, 1}, {0.5, 2.5}, {0.99, 3.97}, {1, 4}} {
		require.InDelta(t, one.want, quantile(values, one.q), 1e-9, "q %g", one.q)
	}
	require.Zero(t, quantile(nil, 0.5))
	require.Equal(t, []float64{4, 1, 3, 2}, values, "the values keep their order")
}

func TestRatiosAreTakenPairByPair(t *testing.T) {
	t.Parallel()
	require.Equal(t, spread{median: 2, low: 0.5, high: 4}, ratios([]float64{2, 4, 1}, []float64{1, 1, 2}))
}

func TestParse(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-only", "p1,P10"}, io.Discard)
	require.NoError(t, err)
	require.True(t, o.wants("p1") && o.wants("p10") && !o.wants("p2"))
	require.Empty(t, o.out, "a part of the figures does not replace the document")

	o, err = parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "docs/benchmarks.md", o.out)

	o, err = parse([]string{"-smoke", "-out", "x.md"}, io.Discard)
	require.NoError(t, err)
	require.Empty(t, o.out, "a smoke run writes nothing")

	for _, args := range [][]string{{"-only", "p3"}, {"-pairs", "0"}, {"extra"}} {
		_, err := parse(args, io.Discard)
		require.Error(t, err, "%v", args)
	}
}

func TestDocumentIsReplacedBetweenItsMarkers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "benchmarks.md")
	require.NoError(t, os.WriteFile(file, []byte("before\n"+beginMarker+"\nold\n"+endMarker+"\nafter\n"), 0o600))
	require.NoError(t, writeDocument(file, table([]row{{id: "P1", figure: "latency", verdict: met}})))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "before\n"+beginMarker+"\n| id | figure | target | jig | baseline | ratio | verdict |\n"+
		"| --- | --- | --- | --- | --- | --- | --- |\n| P1 | latency | – | – | – | – | met |\n"+endMarker+"\nafter\n", string(content))

	require.NoError(t, os.WriteFile(file, []byte("no markers"), 0o600))
	require.Error(t, writeDocument(file, ""))
}

func TestPlannerAsksAndThenAnswers(t *testing.T) {
	t.Parallel()
	input, err := planInput(plan{Passes: 1, Calls: 2, Tool: noopTool})
	require.NoError(t, err)
	asked, err := planner{}.Answer(t.Context(), jig.ModelRequest{Pass: 1, Input: input}, nil)
	require.NoError(t, err)
	require.Len(t, asked.Calls, 2)
	require.NotEqual(t, asked.Calls[0].Input, asked.Calls[1].Input, "the same call never runs twice")
	require.True(t, json.Valid(asked.Calls[0].Input))
	answered, err := planner{}.Answer(t.Context(), jig.ModelRequest{Pass: 2, Input: input}, nil)
	require.NoError(t, err)
	require.Equal(t, jig.StopEnd, answered.Stop)
}
