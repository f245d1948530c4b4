package extraction_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
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

// fate says what happens to a random task. The test chooses it; it is not derived from the document.
type fate int

const (
	fateValue fate = iota
	fateFails
	// fateFlaky fails twice and is tried three times; fateGivesUp is tried only twice.
	fateFlaky
	fateGivesUp
	// fateMended first gives an answer that does not fit and then one that does; fateUnfit never gives one that does.
	fateMended
	fateUnfit
	fateConditionFalse
)

// graph is a random entity type, with the expected fate of each of its tasks.
type graph struct {
	kind  entity.Type
	fates map[string]fate
	deps  map[string][]string
	// order lists the tasks so that each comes after those that it depends on.
	order []string
}

func randomGraph(r *rand.Rand, size int) graph {
	g := graph{fates: map[string]fate{}, deps: map[string][]string{}}
	depth := make([]int, size)
	tasks := make([]entity.Task, size)
	for i := range size {
		id := fmt.Sprintf("t%d", i)
		t := entity.Task{ID: id, Backoff: time.Duration(1+r.IntN(20)) * time.Second}
		for range r.IntN(5) {
			near := max(0, i-1-r.IntN(30))
			if i == 0 || depth[near]+1 >= 100 || slices.Contains(t.DependsOn, tasks[near].ID) {
				continue
			}
			t.DependsOn = append(t.DependsOn, tasks[near].ID)
			depth[i] = max(depth[i], depth[near]+1)
		}
		g.fates[id] = furnish(r, &t)
		tasks[i] = t
		g.deps[id] = t.DependsOn
		g.order = append(g.order, id)
	}
	for _, t := range tasks {
		if r.IntN(3) > 0 || g.fates[t.ID] == fateUnfit || g.fates[t.ID] == fateMended {
			g.kind.Fields = append(g.kind.Fields, field(t.ID))
		}
	}
	r.Shuffle(size, func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	g.kind.Name, g.kind.Version, g.kind.Tasks, g.kind.MaxParallel = "random", "v1", tasks, 1+r.IntN(20)
	return g
}

// furnish gives a task something to do.
func furnish(r *rand.Rand, t *entity.Task) fate {
	reads := make([]string, 0, len(t.DependsOn))
	for _, id := range t.DependsOn {
		reads = append(reads, "string(tasks."+id+")")
	}
	sum := strings.Join(append(reads, `string(input.seed)`), " + ")
	if r.IntN(5) == 0 {
		t.When = "input.yes"
	}
	n := r.IntN(20)
	for n < 9 && (n == 0 || n > 5) && r.IntN(8) > 0 { // give most tasks a value; otherwise hardly any task of a large graph would run
		n = r.IntN(20)
	}
	switch {
	case n == 0:
		t.Kind, t.Compute = entity.TaskCompute, "[1][input.seed + 5]"
		return fateFails
	case n < 6:
		t.Kind, t.Compute = entity.TaskCompute, "size("+sum+") > 0 ? '"+t.ID+"' : ''"
		return fateValue
	case n == 6:
		t.Kind, t.Compute, t.When = entity.TaskCompute, "'never'", "input.seed < 0 || !input.yes"
		return fateConditionFalse
	case n == 7:
		t.Kind, t.Use, t.When = entity.TaskTool, "look.up", "!input.yes"
		return fateConditionFalse
	case n == 8:
		t.Kind, t.Compute = entity.TaskCompute, "'unfit'"
		return fateUnfit
	case n < 12:
		t.Kind, t.Input = entity.TaskPrompt, json.RawMessage(`{"prompt":"${`+sum+`}"}`)
		return []fate{fateValue, fateValue, fateMended, fateMended, fateMended, fateUnfit}[r.IntN(6)]
	}
	t.Kind, t.Use, t.Input, t.Value = entity.TaskTool, "look.up", json.RawMessage(`{"of":"${`+sum+`}"}`), "result.name"
	f := fateValue
	if r.IntN(6) == 0 {
		f = []fate{fateFails, fateFlaky, fateFlaky, fateFlaky, fateGivesUp}[r.IntN(5)]
	}
	switch f {
	case fateFlaky:
		t.Attempts = 3
	case fateGivesUp:
		t.Attempts = 2
	case fateValue, fateFails, fateMended, fateUnfit, fateConditionFalse:
	}
	return f
}

// tools answers calls according to the fates; some calls take long.
func (g graph) tools(r *row) (jig.ToolResult, bool) {
	id, attempt, _ := strings.Cut(r.path, "~")
	good := fmt.Sprintf(`{"name":%q,"text":%q,"model":"m","usage":{"input":2,"output":3}}`, id, id)
	switch f := g.fates[id]; {
	case f == fateFails:
		return failing(jig.CodeNotFound), true
	case f == fateGivesUp, f == fateFlaky && attempt != "3":
		return failing(jig.CodeUnavailable), true
	case f == fateUnfit, f == fateMended && attempt == "":
		return succeed(`{"text":"unfit"}`), true
	}
	return succeed(good), true
}

// expected computes how the tasks end, one after another.
func (g graph) expected() map[string]extraction.TaskStatus {
	out := map[string]extraction.TaskStatus{}
	for _, id := range g.order {
		out[id] = extraction.TaskCompleted
		switch g.fates[id] {
		case fateFails, fateGivesUp, fateUnfit:
			out[id] = extraction.TaskFailed
		case fateConditionFalse:
			out[id] = extraction.TaskSkipped
		case fateValue, fateFlaky, fateMended:
		}
		for _, dep := range g.deps[id] {
			if out[dep] != extraction.TaskCompleted {
				out[id] = extraction.TaskSkipped
			}
		}
	}
	return out
}

// calls returns how many calls a task makes if it runs.
func (g graph) calls(kind entity.TaskKind, id string) int {
	if kind == entity.TaskCompute {
		return 0
	}
	switch g.fates[id] {
	case fateFlaky:
		return 3
	case fateGivesUp, fateMended, fateUnfit:
		return 2
	case fateConditionFalse:
		return 0
	case fateValue, fateFails:
	}
	return 1
}

// history summarizes the events so far.
type history struct {
	started, ended, valued map[string]bool
}

// watcher checks each move: no task begins twice or before its dependencies, and no task waits that could begin.
func (g graph) watcher() func(*testing.T, *world, plan.Move) {
	h := history{started: map[string]bool{}, ended: map[string]bool{}, valued: map[string]bool{}}
	return func(t *testing.T, w *world, move plan.Move) {
		t.Helper()
		for _, e := range move.Events {
			h.note(t, g, e)
		}
		if w.at.Canceled || move.Wake.Equal(w.at.Now) {
			return
		}
		open := 0
		for id := range h.started {
			if !h.ended[id] {
				open++
			}
		}
		require.LessOrEqual(t, open, g.kind.MaxParallel)
		for _, id := range g.order {
			ready := !h.ended[id] && !h.started[id]
			for _, dep := range g.deps[id] {
				ready = ready && h.ended[dep]
			}
			require.False(t, ready && open < g.kind.MaxParallel, "%s could begin but does not", id)
		}
	}
}

func (h history) note(t *testing.T, g graph, e jig.Event) {
	t.Helper()
	if e.Type == jig.EventEntityUpdated {
		return
	}
	var about extraction.TaskEvent
	require.NoError(t, json.Unmarshal(e.Data, &about))
	id := about.Task
	require.False(t, h.ended[id], "%s ends twice", id)
	switch e.Type { //nolint:exhaustive // an extraction writes only these types
	case jig.EventTaskStarted:
		require.False(t, h.started[id], "%s starts twice", id)
		for _, dep := range g.deps[id] {
			require.True(t, h.valued[dep], "%s starts before %s has its value", id, dep)
		}
		h.started[id] = true
	case jig.EventTaskCompleted:
		h.ended[id], h.valued[id] = true, true
	case jig.EventTaskFailed, jig.EventTaskSkipped:
		h.ended[id] = true
	default:
		require.Fail(t, "an unknown event", "%s", e.Type)
	}
}

var yes = json.RawMessage(`{"seed":7,"yes":true}`)

// TestAdvance_ConformsForRandomGraphs runs random graphs of up to 1,000 tasks, with lost moves and calls that end in any order.
func TestAdvance_ConformsForRandomGraphs(t *testing.T) {
	t.Parallel()
	seen := map[extraction.TaskStatus]int{}
	for seed := range uint64(41) {
		r := rand.New(rand.NewPCG(seed, 0))
		size := 1 + r.IntN(60)
		if seed%40 == 0 {
			size = 1000
		}
		g := randomGraph(r, size)
		plan := compile(t, g.kind)
		w := worldOf(plan, extraction.Input{Input: yes}, g.tools)
		w.order = rand.New(rand.NewPCG(seed, 1))
		if size < 1000 {
			w.crash = rand.New(rand.NewPCG(seed, 2))
		}
		w.watch = g.watcher()
		result := w.run(t)
		require.True(t, w.result.Success)
		require.Len(t, result.Tasks, size)
		expected := g.expected()
		for _, task := range g.kind.Tasks {
			got, id := result.Tasks[task.ID], task.ID
			require.Equal(t, expected[id], got.Status, "seed %d: %s: %v", seed, id, got.Error)
			seen[got.Status]++
			calls := 0
			if got.Status != extraction.TaskSkipped {
				calls = g.calls(task.Kind, id)
			}
			require.Equal(t, calls, got.Attempts, "seed %d: %s", seed, id)
			require.Equal(t, calls, w.callsOf(id), "seed %d: %s", seed, id)
			require.Equal(t, got.Status == extraction.TaskFailed, got.Error != nil, "seed %d: %s", seed, id)
		}
		checkFields(t, g, result)
		require.Less(t, w.biggest, size+400+g.kind.MaxParallel*3000, "seed %d", seed)
	}
	t.Logf("ends: %v", seen)
	require.Greater(t, seen[extraction.TaskCompleted], 1000)
	require.Greater(t, seen[extraction.TaskFailed], 100)
}

func (w *world) callsOf(id string) int {
	n := 0
	for _, path := range w.asked {
		if before, _, _ := strings.Cut(path, "~"); before == id {
			n++
		}
	}
	return n
}

// checkFields checks that exactly the fields of tasks with a value are filled.
func checkFields(t *testing.T, g graph, result extraction.Result) {
	t.Helper()
	var filled []string
	for _, f := range g.kind.Fields {
		if status := result.Tasks[f.Task].Status; status == extraction.TaskCompleted || status == extraction.TaskKept {
			filled = append(filled, f.Name)
			require.JSONEq(t, fmt.Sprintf("%q", f.Task), string(result.Values[f.Name]))
			require.Equal(t, f.Task, result.Provenance[f.Name].Task)
			require.Len(t, result.Provenance[f.Name].InputHash, 64)
		}
	}
	require.ElementsMatch(t, filled, slices.Collect(maps.Keys(result.Values)))
}

// A normal run and one with lost moves end the same way, whether or not they are canceled.
func TestLostMoves_ChangeNothing(t *testing.T) {
	t.Parallel()
	canceled := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 4))
		g := randomGraph(r, 1+r.IntN(50))
		straight := worldOf(compile(t, g.kind), extraction.Input{Input: yes}, g.tools)
		crashed := worldOf(compile(t, g.kind), extraction.Input{Input: yes}, g.tools)
		crashed.crash = rand.New(rand.NewPCG(seed, 5))
		for _, w := range []*world{straight, crashed} {
			w.order = rand.New(rand.NewPCG(seed, 6))
			w.cancelAfter = int(seed%3) * (1 + int(seed%10))
		}
		result, again := straight.run(t), crashed.run(t)
		require.Equal(t, result, again, "seed %d", seed)
		require.Equal(t, straight.result, crashed.result, "seed %d", seed)
		require.Equal(t, straight.asked, crashed.asked, "seed %d", seed)
		require.Equal(t, straight.log, crashed.log, "seed %d", seed)
		require.Equal(t, straight.values, crashed.values, "seed %d", seed)
		if result.Counts.Canceled > 0 {
			canceled++
			require.Equal(t, jig.CodeCanceled, straight.result.Error.Code)
			for _, row := range straight.rows {
				require.True(t, row.status.Final(), "a call is open although the extraction has ended")
			}
		}
	}
	require.Greater(t, canceled, 15)
}

// steady is a graph in which each task's value contains the version of its source, so that the effect of a refresh can be predicted.
type steady struct {
	graph
	// version is the version of each task's source. The value of a dull task does not depend on its source.
	version map[string]int
	dull    map[string]bool
}

func (s steady) tools(r *row) (jig.ToolResult, bool) {
	if s.dull[r.path] {
		return succeed(`{"value":"always the same"}`), true
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d %s", r.path, s.version[r.path], r.input)
	return succeed(fmt.Sprintf(`{"value":"%x"}`, h.Sum64())), true
}

func randomSteady(r *rand.Rand, size int) steady {
	s := steady{graph: randomGraph(r, size), version: map[string]int{}, dull: map[string]bool{}}
	s.kind.Fields = nil
	for i := range s.kind.Tasks {
		t := &s.kind.Tasks[i]
		var reads []string
		for _, dep := range t.DependsOn {
			reads = append(reads, `"${tasks.`+dep+`}"`)
		}
		*t = entity.Task{
			ID: t.ID, Kind: entity.TaskTool, Use: "look.up", DependsOn: t.DependsOn, Input: json.RawMessage(`{"of":[` + strings.Join(reads, ",") + `]}`),
			Value: "result.value", Sources: "'doc_" + t.ID + "'",
		}
		if r.IntN(2) == 0 {
			t.Sources = "result.value == '' ? [] : ['doc_" + t.ID + "']"
		}
		s.dull[t.ID] = r.IntN(4) == 0
		if r.IntN(2) == 0 {
			s.kind.Fields = append(s.kind.Fields, field(t.ID))
		}
	}
	return s
}

func (s steady) sources() map[string]extraction.Source {
	out := map[string]extraction.Source{}
	for _, id := range s.order {
		out["doc_"+id] = extraction.Source{Hash: fmt.Sprint(s.version[id])}
	}
	return out
}

// TestRefresh_RunsWhatChanged changes some sources and predicts which tasks must run: those whose source has changed, and those that read a
// changed value.
func TestRefresh_RunsWhatChanged(t *testing.T) {
	t.Parallel()
	stopped := 0
	for seed := range uint64(18) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := randomSteady(r, 1+r.IntN(80))
		plan := compile(t, s.kind)
		first := worldOf(plan, extraction.Input{Input: yes}, s.tools).knowing(s.sources()).run(t)
		require.Equal(t, len(s.order), first.Counts.Completed)
		for range 2 {
			changed := map[string]bool{}
			for range r.IntN(4) {
				id := s.order[r.IntN(len(s.order))]
				changed[id] = true
				s.version[id]++
			}
			w := worldOf(plan, extraction.Input{Input: yes, Mode: extraction.ModeRefresh, Earlier: first.Earlier()}, s.tools).knowing(s.sources())
			w.crash = rand.New(rand.NewPCG(seed, 8))
			second := w.run(t)
			runs, other := map[string]bool{}, map[string]bool{}
			for _, id := range s.order {
				runs[id] = changed[id]
				for _, dep := range s.deps[id] {
					runs[id] = runs[id] || other[dep]
				}
				other[id] = runs[id] && !s.dull[id]
				if runs[id] && !other[id] {
					stopped++
				}
				status := extraction.TaskKept
				if runs[id] {
					status = extraction.TaskCompleted
				}
				require.Equal(t, status, second.Tasks[id].Status, "seed %d: %s", seed, id)
				require.Equal(t, runs[id], w.callsOf(id) == 1, "seed %d: %s", seed, id)
			}
			fresh := worldOf(plan, extraction.Input{Input: yes}, s.tools).knowing(s.sources()).run(t)
			require.Equal(t, fresh.Values, second.Values, "seed %d: a refresh differs from a fresh run", seed)
			first = second
		}
	}
	require.Greater(t, stopped, 10)
}

// TestRetry_RunsTheRest retries an extraction with tools that now work: tasks with values keep them, and all other tasks run.
func TestRetry_RunsTheRest(t *testing.T) {
	t.Parallel()
	mended := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 9))
		g := randomGraph(r, 1+r.IntN(60))
		plan := compile(t, g.kind)
		before := worldOf(plan, extraction.Input{Input: yes}, g.tools).run(t)
		had := g.expected()
		for _, task := range g.kind.Tasks {
			if task.Kind != entity.TaskCompute && g.fates[task.ID] != fateConditionFalse {
				g.fates[task.ID] = fateValue
			}
		}
		w := worldOf(plan, extraction.Input{Input: yes, Mode: extraction.ModeRetry, Earlier: before.Earlier()}, g.tools)
		w.crash = rand.New(rand.NewPCG(seed, 10))
		after, expected := w.run(t), g.expected()
		for _, task := range g.kind.Tasks {
			want := expected[task.ID]
			if had[task.ID] == extraction.TaskCompleted {
				want = extraction.TaskKept
				require.Zero(t, w.callsOf(task.ID), "seed %d: %s runs again", seed, task.ID)
			} else if want == extraction.TaskCompleted {
				mended++
			}
			require.Equal(t, want, after.Tasks[task.ID].Status, "seed %d: %s", seed, task.ID)
		}
		checkFields(t, g, after)
	}
	require.Greater(t, mended, 20)
}
