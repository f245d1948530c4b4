package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jig-run/jig/dev/internal/probe"
	"github.com/jig-run/jig/internal/plan/extraction"
)

// dagSeed is the input of every extraction of a random graph.
const dagSeed = 7

// dagTask is a task of a random graph, and what happens to it in the test.
type dagTask struct {
	id   string
	deps []int
	// number is part of the task's value.
	number int64
	// calls is set if the task calls test.task. Otherwise the task computes its value.
	calls bool
	// broken is set if the task's computation fails.
	broken bool
	// unless is a condition: if it is not 0, the task is skipped when it divides the value of the task's first dependency, or the input if
	// there are no dependencies.
	unless int64
	// attempts is the maximum number of attempts, and refused is how often the receiver answers with a failure. If conflict is set, the
	// receiver answers with a conflict, which fails the task.
	attempts, refused int
	conflict          bool
	field             bool
	before, after     int
}

// dag is a random entity type with a graph of tasks.
type dag struct {
	name     string
	parallel int
	tasks    []dagTask
}

// randomDAG returns a random graph in which about calling of a hundred tasks make calls.
func randomDAG(r *rand.Rand, name string, size, calling int) dag {
	g := dag{name: name, parallel: 1 + r.IntN(20)}
	depth := make([]int, size)
	for i := range size {
		t := dagTask{id: fmt.Sprintf("t%d", i), number: int64(r.IntN(1000)), attempts: 1, field: r.IntN(3) > 0}
		for range r.IntN(4) {
			near := max(0, i-1-r.IntN(30))
			if i == 0 || depth[near] >= 90 || slices.Contains(t.deps, near) {
				continue
			}
			t.deps = append(t.deps, near)
			depth[i] = max(depth[i], depth[near]+1)
		}
		if r.IntN(6) == 0 {
			t.unless = int64(2 + r.IntN(20))
		}
		if t.calls = r.IntN(100) < calling; t.calls {
			t.before, t.after = r.IntN(60), r.IntN(60)
			t.fate(r)
		} else {
			t.broken = r.IntN(50) == 0
		}
		g.tasks = append(g.tasks, t)
	}
	return g
}

// fate chooses what happens to a task that makes calls.
func (t *dagTask) fate(r *rand.Rand) {
	switch r.IntN(30) {
	case 0:
		t.conflict = true
	case 1:
		t.attempts, t.refused = 2, 2
	case 2, 3, 4:
		t.attempts, t.refused = 3, 1+r.IntN(2)
	}
}

// document returns the document of the entity type.
func (g dag) document() string {
	var fields, tasks strings.Builder
	fields.WriteString("fields:\n  - {name: url, type: text}\n")
	for i, t := range g.tasks {
		if t.field {
			fmt.Fprintf(&fields, "  - {name: %s, type: number, task: %s}\n", t.id, t.id)
		}
		sum := g.sum(i)
		fmt.Fprintf(&tasks, "  - id: %s\n", t.id)
		if len(t.deps) > 0 {
			names := make([]string, len(t.deps))
			for k, d := range t.deps {
				names[k] = g.tasks[d].id
			}
			fmt.Fprintf(&tasks, "    depends_on: [%s]\n", strings.Join(names, ", "))
		}
		if t.unless != 0 {
			fmt.Fprintf(&tasks, "    when: %s %% %d != 0\n", g.divided(i), t.unless)
		}
		switch {
		case t.calls:
			fmt.Fprintf(&tasks, "    tool: test.task\n    value: result.value\n    attempts: %d\n", t.attempts)
			fmt.Fprintf(&tasks, "    input: {url: \"${entity.content.url}\", task: %s, n: \"${%s}\", before: %d, after: %d}\n", t.id, sum, t.before, t.after)
		case t.broken:
			tasks.WriteString("    compute: \"[1][input.seed]\"\n")
		default:
			fmt.Fprintf(&tasks, "    compute: (%s) * 31 %% 1000003\n", sum)
		}
	}
	return fmt.Sprintf("kind: entity_type\nname: %s\nmax_parallel: %d\n%stasks:\n%s", g.name, g.parallel, fields.String(), tasks.String())
}

// sum returns the expression of the number that a task works on; divided returns the expression of the number that its condition checks.
func (g dag) sum(i int) string {
	sum := fmt.Sprintf("%d + input.seed", g.tasks[i].number)
	for _, d := range g.tasks[i].deps {
		sum += " + tasks." + g.tasks[d].id
	}
	return sum
}

func (g dag) divided(i int) string {
	if deps := g.tasks[i].deps; len(deps) > 0 {
		return "tasks." + g.tasks[deps[0]].id
	}
	return "input.seed"
}

// dagEnd is the expected end of a task.
type dagEnd struct {
	status extraction.TaskStatus
	value  int64
	// given is the number that its calls get, attempts the number of its attempts.
	given    int64
	attempts int
	// because lists the possible reasons for skipping the task; any of them may be seen first.
	because []string
}

// model computes the expected ends, one task after another.
func (g dag) model() []dagEnd {
	ends := make([]dagEnd, len(g.tasks))
	for i, t := range g.tasks {
		end := dagEnd{status: extraction.TaskCompleted, given: t.number + dagSeed}
		divided := int64(dagSeed)
		for k, d := range t.deps {
			if ends[d].status != extraction.TaskCompleted {
				end.because = append(end.because, g.tasks[d].id)
			}
			if end.given += ends[d].value; k == 0 {
				divided = ends[d].value
			}
		}
		if len(end.because) == 0 && t.unless != 0 && divided%t.unless == 0 {
			end.because = []string{"condition"}
		}
		switch {
		case len(end.because) > 0:
			end.status = extraction.TaskSkipped
		case !t.calls && t.broken:
			end.status = extraction.TaskFailed
		case !t.calls:
			end.value = end.given * 31 % 1_000_003
		case t.conflict || t.refused >= t.attempts:
			end.status, end.attempts = extraction.TaskFailed, max(t.refused, 1)
		default:
			end.value, end.attempts = probe.TaskValue(end.given), t.refused+1
		}
		ends[i] = end
	}
	return ends
}

// ancestors returns, for each task, the tasks that it depends on, directly or indirectly.
func (g dag) ancestors() [][]bool {
	all := make([][]bool, len(g.tasks))
	for i, t := range g.tasks {
		all[i] = make([]bool, len(g.tasks))
		for _, d := range t.deps {
			all[i][d] = true
			for k, is := range all[d] {
				all[i][k] = all[i][k] || is
			}
		}
	}
	return all
}

// dagEffect is an effect that reached the outside: the first request of an attempt. All attempts of a task have the same key.
type dagEffect struct{ task, key, call string }

// effectServer is the server that the tasks' calls change. It records the effects in order, by the path of the entity's URL.
type effectServer struct {
	*httptest.Server
	mu      sync.Mutex
	graphs  map[string]dag
	effects map[string][]dagEffect
	// hold delays the requests of a path and task until the channel is closed.
	hold map[string]chan struct{}
	// arrived is called for each effect if it is not nil.
	arrived func(path, task string)
	// repeats counts the requests of attempts that had already arrived.
	repeats int
}

func newEffectServer(t *testing.T) *effectServer {
	t.Helper()
	o := &effectServer{graphs: map[string]dag{}, effects: map[string][]dagEffect{}, hold: map[string]chan struct{}{}}
	o.Server = httptest.NewServer(http.HandlerFunc(o.serve))
	t.Cleanup(o.Close)
	return o
}

func (o *effectServer) serve(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // a killed worker's incomplete request does not count
	}
	id, _, _ := strings.Cut(string(body), " ")
	o.mu.Lock()
	held := o.hold[request.URL.Path+" "+id]
	o.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-request.Context().Done():
			return
		}
	}
	w.WriteHeader(o.take(request.URL.Path, string(body), request.Header.Get("Idempotency-Key"), request.Header.Get("Jig-Call")))
}

// take records the effect of a request, unless the attempt has already arrived, and returns the status that the graph prescribes.
func (o *effectServer) take(path, name, key, call string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	id, _, _ := strings.Cut(name, " ")
	calls := []string{}
	for _, e := range o.effects[path] {
		if earlier, _, _ := strings.Cut(e.task, " "); earlier == id {
			calls = append(calls, e.call)
		}
	}
	nth := slices.Index(calls, call)
	if nth < 0 {
		nth = len(calls)
		o.effects[path] = append(o.effects[path], dagEffect{task: name, key: key, call: call})
		if o.arrived != nil {
			o.arrived(path, id)
		}
	} else {
		o.repeats++
	}
	for _, t := range o.graphs[path].tasks {
		switch {
		case t.id != id:
		case t.conflict:
			return http.StatusConflict
		case nth < t.refused:
			return http.StatusInternalServerError
		}
	}
	return http.StatusCreated
}

// of returns the effects of an entity so far.
func (o *effectServer) of(path string) []dagEffect {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.effects[path])
}

// total returns the number of all effects.
func (o *effectServer) total() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, list := range o.effects {
		n += len(list)
	}
	return n
}

// again returns the number of requests that had no effect because an earlier request of the same call had it.
func (o *effectServer) again() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.repeats
}

// numbers returns the members of an object that are numbers.
func numbers(raw json.RawMessage) (map[string]int64, error) {
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, fmt.Errorf("reading the content: %w", err)
	}
	out := map[string]int64{}
	for name, v := range members {
		if n, ok := v.(float64); ok {
			out[name] = int64(n)
		}
	}
	return out, nil
}
