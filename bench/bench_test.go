package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/internal/plan/extraction"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

func TestQuantile_Interpolates(t *testing.T) {
	t.Parallel()
	values := []float64{4, 1, 3, 2}
	for _, one := range []struct{ q, want float64 }{{0, 1}, {0.5, 2.5}, {0.99, 3.97}, {1, 4}} {
		require.InDelta(t, one.want, quantile(values, one.q), 1e-9, "q %g", one.q)
	}
	require.Zero(t, quantile(nil, 0.5))
	require.Equal(t, []float64{4, 1, 3, 2}, values, "the values keep their order")
}

func TestRatios_AreTakenPairByPair(t *testing.T) {
	t.Parallel()
	require.Equal(t, spread{median: 2, low: 0.5, high: 4}, ratios([]float64{2, 4, 1}, []float64{1, 1, 2}))
}

func TestParse_SaysWhereTheResultsGo(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-only", "p1,P10"}, io.Discard)
	require.NoError(t, err)
	require.True(t, o.wants("p1") && o.wants("p10") && !o.wants("p2"))
	require.Empty(t, o.out, "a part of the benchmarks does not replace the document")

	o, err = parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "docs/benchmarks.md", o.out)

	o, err = parse([]string{"-smoke", "-out", "x.md"}, io.Discard)
	require.NoError(t, err)
	require.Empty(t, o.out, "a smoke run writes nothing")

	o, err = parse([]string{"-passes-per-run", "3"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 3, o.passesPerRun)
	require.Empty(t, o.out, "a run with another setting does not replace the document")

	for _, args := range [][]string{{"-only", "p5"}, {"-pairs", "0"}, {"-p3", "1ms"}, {"-passes-per-run", "0"}, {"extra"}} {
		_, err := parse(args, io.Discard)
		require.Error(t, err, "%v", args)
	}
}

func TestDocument_IsReplacedBetweenItsMarkers(t *testing.T) {
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

func TestPlanner_AsksAndThenAnswers(t *testing.T) {
	t.Parallel()
	input, err := planInput(plan{Passes: 1, Calls: 2, Tool: noopTool})
	require.NoError(t, err)
	asked, err := planner{}.Answer(t.Context(), chat.Request{Pass: 1, Input: input}, nil)
	require.NoError(t, err)
	require.Len(t, asked.Calls, 2)
	require.NotEqual(t, asked.Calls[0].Input, asked.Calls[1].Input, "the same call never runs twice")
	require.True(t, json.Valid(asked.Calls[0].Input))
	answered, err := planner{}.Answer(t.Context(), chat.Request{Pass: 2, Input: input}, nil)
	require.NoError(t, err)
	require.Equal(t, chat.StopEnd, answered.Stop)
}

func TestPlace_OrdersTheTable(t *testing.T) {
	t.Parallel()
	ids := []string{"C2", "A1", "P11", "P10", "C1", "P2"}
	slices.SortFunc(ids, func(x, y string) int { return place(x) - place(y) })
	require.Equal(t, []string{"P2", "P10", "P11", "A1", "C1", "C2"}, ids)
}

func TestCompositions_HaveNoProblems(t *testing.T) {
	t.Parallel()
	registry, err := tools.NewRegistry(benchTools(func(entry) {})...)
	require.NoError(t, err)
	known := spec.Catalog{Tools: registry.Tools()}
	for name, document := range map[string]string{
		"chain.yaml": chainDocument(chainActivity, noopTool, 100), "loop.yaml": loopDocument(loopLocal, quickTool),
	} {
		doc, problems := spec.Load(name, []byte(document))
		require.Empty(t, problems, name)
		require.Empty(t, spec.Check([]spec.Document{doc}, known), name)
		_, err := composition.NewEngine().Load(name, []byte(document))
		require.NoError(t, err, name)
	}
}

func TestEntityTypes_HaveNoProblems(t *testing.T) {
	t.Parallel()
	checks := extraction.Checks{Field: spec.CheckField, Schema: func(_, _ json.RawMessage) error { return nil }}
	for name, document := range map[string]string{
		"seven.yaml": sevenTasks, "one.yaml": oneTask, "graph.yaml": graphDocument(fullSize().graphTasks), "small.yaml": graphDocument(smokeSize().graphTasks),
		"thin.yaml": thinDocument,
	} {
		doc, problems := spec.Load(name, []byte(document))
		require.Empty(t, problems, name)
		require.Empty(t, spec.Check([]spec.Document{doc}, spec.Catalog{}), name)
		if name == "thin.yaml" {
			continue
		}
		kind, err := spec.LoadEntityType(name, []byte(document))
		require.NoError(t, err, name)
		_, err = extraction.Compile(kind, checks)
		require.NoError(t, err, name)
	}
	kind, err := spec.LoadEntityType("seven.yaml", []byte(sevenTasks))
	require.NoError(t, err)
	steps := fillSteps()
	require.Len(t, steps, len(kind.Tasks))
	for i, task := range kind.Tasks {
		require.Equal(t, fillStep{id: task.ID, after: task.DependsOn}, steps[i], "the baseline has the same graph")
	}
}

func TestBaselineDigest_IsCanonical(t *testing.T) {
	t.Parallel()
	call := jig.Call{
		Tenant: "t", SessionID: "ses_1", ID: "1.1", Tool: noopTool, Version: "v", PolicyVersion: "p", Input: []byte(`{"n":1}`),
	}
	first, err := stepDigest("i", call)
	require.NoError(t, err)
	require.Len(t, first, 64)
	call.Input = []byte(`{"n":2}`)
	second, err := stepDigest("i", call)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
}

func TestFollow_DeliversEveryEntry(t *testing.T) {
	t.Parallel()
	e := newEntries()
	arrived, stop := e.follow("ses_bench-", 1)
	e.enter(entry{Session: "ses_other"})
	e.enter(entry{Session: "ses_bench-1"})
	e.enter(entry{Session: "ses_bench-2"})
	require.Equal(t, "ses_bench-1", (<-arrived).Session)
	require.Empty(t, arrived, "entries beyond the limit are dropped")
	stop()
	e.enter(entry{Session: "ses_bench-3"})
	require.Empty(t, arrived, "the receiver has stopped following")
}

func TestDueAt_ReadsTheSessionID(t *testing.T) {
	t.Parallel()
	due, err := dueAt("ses_bench-tool-17-2026-11-21T12:00:02Z")
	require.NoError(t, err)
	require.Equal(t, time.Date(2026, 11, 21, 12, 0, 2, 0, time.UTC), due)
	_, err = dueAt("ses_x")
	require.Error(t, err)
}

func TestMachineTime_Grows(t *testing.T) {
	t.Parallel()
	first, err := machineTime()
	require.NoError(t, err)
	require.Positive(t, first)
	second, err := machineTime()
	require.NoError(t, err)
	require.GreaterOrEqual(t, second, first)
}
