package composition_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
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

// TestLostMoves_ChangeNothing runs random compositions twice with the same order of events: once normally, and once with moves that are lost
// before they are stored and then computed again. Both runs must end the same way.
func TestLostMoves_ChangeNothing(t *testing.T) {
	t.Parallel()
	ends := map[string]int{}
	for seed := range uint64(150) {
		document := randomComposition(rand.New(rand.NewPCG(seed, 0)))
		x, err := spec.LoadExecution("random.json", document)
		require.NoError(t, err, "seed %d: %s", seed, document)
		plan, err := composition.Compile(x)
		require.NoError(t, err, "seed %d: %s", seed, document)
		straight, crashed := randomWorld(plan, seed), randomWorld(plan, seed)
		crashed.crash = rand.New(rand.NewPCG(seed, 3))
		result, again := straight.run(t), crashed.run(t)
		require.Equal(t, result, again, "seed %d: %s", seed, document)
		require.Equal(t, straight.asked, crashed.asked, "seed %d", seed)
		require.Equal(t, straight.log, crashed.log, "seed %d", seed)
		require.Equal(t, straight.values, crashed.values, "seed %d", seed)
		checkUndone(t, straight, result, seed)
		ends[string(jig.CodeOf(resultError(result)))]++
	}
	t.Logf("ends: %v", ends)
	require.Greater(t, ends[""], 50, "hardly any composition succeeds: %v", ends)
	require.Greater(t, ends["CANCELED"], 3, "%v", ends)
	require.Greater(t, ends["NOT_FOUND"], 3, "%v", ends)
	require.Greater(t, ends["TIMEOUT"], 3, "%v", ends)
}

func resultError(r jig.ToolResult) error {
	if r.Error == nil {
		return nil
	}
	return r.Error
}

// checkUndone checks that a failed run undid all its effects, in reverse order, and that a successful run undid nothing.
func checkUndone(t *testing.T, w *world, result jig.ToolResult, seed uint64) {
	t.Helper()
	var done, doubted, undone []string
	for _, path := range w.asked {
		switch r := w.rows[path]; {
		case r.undo:
			undone = append(undone, strings.TrimSuffix(path, ".undo"))
		case r.tool == "do.it" && r.status == jig.CallSucceeded:
			step, _, _ := strings.Cut(path, "~")
			done = append(done, step)
		case r.tool == "do.it" && (jig.CodeOf(resultError(*r.result)) == jig.CodeOutcomeUnknown || r.status == jig.CallCanceled && r.begun):
			step, _, _ := strings.Cut(path, "~")
			doubted = append(doubted, step)
		}
	}
	if result.Success {
		require.Empty(t, undone, "seed %d", seed)
		return
	}
	require.ElementsMatch(t, done, undone, "seed %d", seed)
	if len(done)+len(doubted) > 0 {
		var report struct {
			Undone    []string `json:"undone"`
			NotUndone []struct {
				Path string `json:"path"`
			} `json:"not_undone"`
		}
		require.NoError(t, json.Unmarshal(result.Data, &report))
		reported := report.Undone
		for _, not := range report.NotUndone {
			reported = append(reported, not.Path)
		}
		require.ElementsMatch(t, append(done, doubted...), reported, "seed %d", seed)
	}
}

func randomWorld(compiled *composition.Plan, seed uint64) *world {
	w := worldOf(compiled, `{"n":3,"list":[1,2,3,4,5],"yes":true}`, byChance(seed))
	w.order = rand.New(rand.NewPCG(seed, 1))
	chance := rand.New(rand.NewPCG(seed, 2))
	if chance.IntN(5) == 0 {
		w.cancelAfter = 1 + chance.IntN(6)
	}
	for i := range 4 {
		at := start.Add(time.Duration(chance.IntN(600)) * time.Second)
		w.coming = append(w.coming, timed{at: at, event: plan.ReceivedEvent{ID: int64(i + 1), Name: "go", Data: json.RawMessage(`{"n":` + fmt.Sprint(i) + `}`)}})
	}
	slices.SortStableFunc(w.coming, func(a, b timed) int { return a.at.Compare(b.at) })
	for i := range w.coming {
		w.coming[i].event.ID = int64(i + 1)
	}
	return w
}

// byChance gives random answers that depend only on the seed and the call.
func byChance(seed uint64) func(*row) (jig.ToolResult, bool) {
	return func(r *row) (jig.ToolResult, bool) {
		h := fnv.New64a()
		fmt.Fprintf(h, "%d %s", seed, r.path)
		switch n := h.Sum64() % 100; {
		case r.tool == "slow.it" && n < 50:
			return jig.ToolResult{}, false
		case n < 8:
			return jig.Failure(jig.Errorf(jig.CodeNotFound, "not there")), true
		case n < 16:
			return jig.Failure(jig.Errorf(jig.CodeUnavailable, "down")), true
		case n < 24 && r.doubt == 0 && !r.undo:
			return inDoubt(), true
		}
		return succeed(fmt.Sprintf(`{"input":%s}`, r.input)), true
	}
}

// author writes random compositions.
type author struct {
	*rand.Rand
	count int
}

type object = map[string]any

func randomComposition(r *rand.Rand) []byte {
	a := &author{Rand: r}
	var seen []string
	steps := a.block(3, &seen, false)
	document := object{"kind": "composition", "name": "test.random", "steps": steps}
	if len(seen) > 0 && a.IntN(4) > 0 {
		output := object{}
		for _, read := range seen {
			output[fmt.Sprintf("o%d", len(output))] = "${" + read + "}"
		}
		document["output"] = output
	}
	raw, err := json.Marshal(document)
	if err != nil {
		panic(err)
	}
	return raw
}

// block writes steps. seen are expressions over the steps that can be read; block adds its own.
func (a *author) block(depth int, seen *[]string, loop bool) []any {
	var steps []any
	for range 1 + a.IntN(4) {
		steps = append(steps, a.step(depth, seen, loop))
	}
	return steps
}

func (a *author) step(depth int, seen *[]string, loop bool) object {
	a.count++
	id := fmt.Sprintf("s%d", a.count)
	s := object{"id": id}
	if a.IntN(6) == 0 {
		s["if"] = a.pick([]string{"input.yes", "input.n > 5", "size(input.list) == 5"})
	}
	kind := a.IntN(12)
	if depth == 0 {
		kind = a.IntN(8)
	}
	read := "steps." + id + ".?success.orValue(false)"
	before := slices.Clone(*seen)
	switch {
	case kind < 4:
		a.call(s, before, loop)
		if a.IntN(3) == 0 {
			a.loop(s)
			read = "size(steps." + id + ")"
		}
	case kind == 4:
		s["set"] = object{"v" + fmt.Sprint(a.IntN(3)): a.reading(before, loop)}
	case kind == 5:
		s["wait"] = fmt.Sprintf("%ds", 1+a.IntN(100))
	case kind == 6:
		s["wait_for"] = object{"event": "go", "when": a.pick([]string{"true", "event.data.n > 1"}), "timeout": "5m"}
	case kind == 7:
		s["emit"] = object{"event": "note", "data": a.reading(before, loop)}
	case kind == 8:
		s["parallel"] = a.branches(depth-1, seen, loop)
	case kind == 9:
		inner, other := slices.Clone(before), slices.Clone(before)
		s["switch"] = []any{
			object{"when": a.pick([]string{"input.n > 2", "input.n > 5"}), "steps": a.block(depth-1, &inner, loop)},
			object{"else": true, "steps": a.block(depth-1, &other, loop)},
		}
		*seen = append(append(*seen, inner[len(before):]...), other[len(before):]...)
	case kind == 10:
		inner := slices.Clone(before)
		s["steps"] = a.block(depth-1, &inner, loop)
		*seen = append(*seen, inner[len(before):]...)
	default:
		inner := slices.Clone(before)
		s["steps"] = a.block(depth-1, &inner, true)
		if a.IntN(2) == 0 {
			s["output"] = object{"index": "${index}", "read": a.reading(inner, true)}
		}
		a.loop(s)
		read = "size(steps." + id + ")"
	}
	a.handling(s, depth, before, loop || s["for_each"] != nil)
	*seen = append(*seen, read)
	return s
}

func (a *author) branches(depth int, seen *[]string, loop bool) []any {
	before := slices.Clone(*seen)
	var out []any
	for range 1 + a.IntN(3) {
		inner := slices.Clone(before)
		out = append(out, a.step(max(depth, 0), &inner, loop))
		*seen = append(*seen, inner[len(before):]...)
	}
	return out
}

func (a *author) call(s object, seen []string, loop bool) {
	s["tool"] = a.pick([]string{"do.it", "do.it", "see.it"})
	s["input"] = object{"a": a.reading(seen, loop), "b": a.reading(seen, loop)}
	if a.IntN(8) == 0 {
		s["tool"], s["timeout"] = "slow.it", "30s"
	}
	if s["tool"] == "do.it" {
		s["undo"] = object{"tool": "undo.it", "input": object{"a": a.reading(seen, loop)}}
	}
	if a.IntN(3) == 0 {
		s["retry"] = object{"max_attempts": 1 + a.IntN(3), "backoff": "10s"}
	}
}

func (a *author) loop(s object) {
	s["for_each"] = a.pick([]string{"input.list", "[]", "lists.range(40)", "input.list.map(i, {'n': i})"})
	s["max_parallel"] = 1 + a.IntN(4)
}

func (a *author) handling(s object, depth int, seen []string, loop bool) {
	switch a.IntN(4) {
	case 0:
		s["on_error"] = "continue"
	case 1:
		if depth > 0 {
			inner := slices.Clone(seen)
			s["on_error"] = object{"as": "oops", "catch": append(a.block(depth-1, &inner, loop), object{"set": object{"why": "${oops.code}"}})}
		}
	}
	if s["timeout"] == nil && a.IntN(8) == 0 && s["wait"] == nil && s["wait_for"] == nil && s["set"] == nil && s["emit"] == nil {
		s["timeout"] = fmt.Sprintf("%ds", 1+a.IntN(200))
	}
}

// reading returns a template that reads one of the available values.
func (a *author) reading(seen []string, loop bool) string {
	choices := []string{"${input.n}", "text", "${size(vars)}"}
	if loop {
		choices = append(choices, "${index}", "${item}")
	}
	if len(seen) > 0 {
		choices = append(choices, "${"+seen[a.IntN(len(seen))]+"}", "${"+seen[a.IntN(len(seen))]+"}")
	}
	return a.pick(choices)
}

func (a *author) pick(from []string) string { return from[a.IntN(len(from))] }
