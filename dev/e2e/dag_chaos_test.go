package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan/extraction"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/workflows"
)

// dagRun is an extraction of a random graph.
type dagRun struct {
	entityEnv
	dag
	outside *effectServer
	path    string
	entity  entity.Entity
	session string
}

// dags is a tenant in which graphs are extracted.
type dags struct {
	tenantEnv
	db      *store.DB
	outside *effectServer
}

func newDAGs(t *testing.T) dags {
	t.Helper()
	return dagsOf(newTenantEnv(t))
}

func dagsOf(o tenantEnv) dags {
	o.t.Helper()
	db, err := store.Open(o.t.Context(), shared.stack.DatabaseURL(), store.Options{})
	require.NoError(o.t, err)
	o.t.Cleanup(db.Close)
	return dags{tenantEnv: o, db: db, outside: newEffectServer(o.t)}
}

// prepare registers a graph and creates an entity of its type.
func (d dags) prepare(g dag) *dagRun {
	d.t.Helper()
	d.install(g.name+".yaml", g.document(), d.trusting)
	run := &dagRun{entityEnv: entityEnv{tenantEnv: d.tenantEnv, db: d.db, kind: g.name}, dag: g, outside: d.outside, path: "/" + g.name}
	d.outside.mu.Lock()
	d.outside.graphs[run.path] = g
	d.outside.mu.Unlock()
	run.entity = run.entityEnv.entity(map[string]any{"url": d.outside.URL + run.path})
	return run
}

// begin starts the extraction of the entity and does not wait for it.
func (r *dagRun) begin() {
	r.t.Helper()
	in := callInput("entities.extract", map[string]any{"id": r.entity.ID, "input": map[string]any{"seed": dagSeed}})
	in.Tenant, in.Principal.Permissions = r.tenant, []string{"entities.*.read", "entities.*.write"}
	started, err := r.StartCall(r.t.Context(), in, "")
	require.NoError(r.t, err)
	r.session = started.SessionID
}

// end waits for the end of the extraction and compares everything that can be observed with the model. It returns the counts of the tasks.
func (r *dagRun) end() extraction.Counts {
	r.t.Helper()
	out, now := r.filled(r.session, r.entity)
	want := r.model()
	r.requireResult(out, now, want)
	r.requireEffects(want)
	r.requireOrder(want)
	return out.Counts
}

// requireResult checks the statuses, attempts, values and provenance.
func (r *dagRun) requireResult(out extraction.Result, now entity.Entity, want []dagEnd) {
	r.t.Helper()
	counts := extraction.Counts{Total: len(r.tasks)}
	values := map[string]int64{}
	for i, t := range r.tasks {
		got, end := out.Tasks[t.id], want[i]
		require.Equal(r.t, end.status, got.Status, "%s %s: %+v", r.name, t.id, got)
		require.Equal(r.t, end.attempts, got.Attempts, "%s %s", r.name, t.id)
		switch end.status { //nolint:exhaustive // the model uses only these statuses
		case extraction.TaskSkipped:
			counts.Skipped++
			require.Contains(r.t, end.because, got.Because, "%s %s", r.name, t.id)
		case extraction.TaskFailed:
			counts.Failed++
			require.NotNil(r.t, got.Error, "%s %s", r.name, t.id)
		default:
			counts.Completed++
			if t.field {
				values[t.id] = end.value
				r.requireProvenance(now.Provenance[t.id], t, end)
			} else {
				require.JSONEq(r.t, fmt.Sprint(end.value), string(got.Value), "%s %s", r.name, t.id)
			}
		}
	}
	require.Equal(r.t, counts, out.Counts, r.name)
	require.Len(r.t, out.Tasks, len(r.tasks))
	require.Len(r.t, now.Provenance, len(values), "%s: only values have provenance", r.name)
	stored, err := numbers(now.Content)
	require.NoError(r.t, err)
	require.Equal(r.t, values, stored, r.name)
}

func (r *dagRun) requireProvenance(p entity.Provenance, t dagTask, end dagEnd) {
	r.t.Helper()
	require.Equal(r.t, t.id, p.Task, r.name)
	require.Equal(r.t, end.attempts, p.Attempt, "%s %s", r.name, t.id)
	require.Len(r.t, p.InputHash, 64, "%s %s", r.name, t.id)
	call := ""
	if t.calls {
		call = jig.QualifiedCallID(r.session, callOf(t.id, end.attempts))
	}
	require.Equal(r.t, call, p.Call, "%s %s", r.name, t.id)
}

func callOf(task string, attempt int) string {
	if attempt > 1 {
		return fmt.Sprintf("1.1/%s~%d", task, attempt)
	}
	return "1.1/" + task
}

// requireEffects checks that each attempt had its effect exactly once, with the right number, and after the effects it depends on.
func (r *dagRun) requireEffects(want []dagEnd) {
	r.t.Helper()
	effects := r.outside.of(r.path)
	place := map[dagEffect]int{}
	for i, e := range effects {
		place[e] = i
	}
	require.Len(r.t, place, len(effects))
	effect := func(i, attempt int) dagEffect {
		return dagEffect{
			task: fmt.Sprintf("%s %d", r.tasks[i].id, want[i].given),
			key:  jig.IdempotencyKey(installation, r.tenant, r.session, callOf(r.tasks[i].id, 1)),
			call: callOf(r.tasks[i].id, attempt),
		}
	}
	above, total := r.ancestors(), 0
	for i, t := range r.tasks {
		total += want[i].attempts
		for attempt := 1; attempt <= want[i].attempts; attempt++ {
			at, ok := place[effect(i, attempt)]
			require.True(r.t, ok, "%s %s: attempt %d had no effect", r.name, t.id, attempt)
			for k, is := range above[i] {
				if is && want[k].attempts > 0 {
					require.Less(r.t, place[effect(k, want[k].attempts)], at, "%s: the effect of %s came before that of %s", r.name, t.id, r.tasks[k].id)
				}
			}
		}
	}
	require.Len(r.t, effects, total, "%s: there were no other effects", r.name)
}

// log returns all events of the session, as they are stored.
func (r *dagRun) log() []jig.Event {
	r.t.Helper()
	var all []jig.Event
	for after := int64(0); ; after = all[len(all)-1].Seq {
		page, err := r.db.Events(r.t.Context(), r.tenant, r.session, after, 0)
		require.NoError(r.t, err)
		if len(page) == 0 {
			require.NotEmpty(r.t, all)
			return all
		}
		all = append(all, page...)
	}
}

// largeMove is the number of task events from which a move may have left tasks for the next move to start, because a move makes at most 200
// evaluations.
const largeMove = 100

// requireOrder checks the log: each task starts and ends once, and it starts as soon as everything it depends on has a value, unless the
// maximum number of tasks is already running.
func (r *dagRun) requireOrder(want []dagEnd) {
	r.t.Helper()
	number, started, ended, valued := map[string]int{}, map[int]bool{}, map[int]bool{}, map[int]bool{}
	for i, t := range r.tasks {
		number[t.id] = i
	}
	together, cutOff := 0, false
	for _, e := range r.log() {
		if e.Type == jig.EventToolStarted || e.Type == jig.EventToolCompleted {
			// Moves do not write these events. The earlier moves have started every task that could start, unless the last move reached its limit.
			if together > 0 {
				cutOff = together >= largeMove
			}
			if !cutOff {
				r.requireNoneWaits(started, ended)
			}
			together = 0
		}
		if !strings.HasPrefix(string(e.Type), "task.") {
			continue
		}
		together++
		var about extraction.TaskEvent
		require.NoError(r.t, json.Unmarshal(e.Data, &about))
		require.Equal(r.t, r.entity.ID, about.EntityID)
		i := number[about.Task]
		require.False(r.t, ended[i], "%s %s ends twice", r.name, about.Task)
		if e.Type == jig.EventTaskStarted {
			require.False(r.t, started[i], "%s %s starts twice", r.name, about.Task)
			for _, d := range r.tasks[i].deps {
				require.True(r.t, valued[d], "%s %s starts before %s has its value", r.name, about.Task, r.tasks[d].id)
			}
			started[i] = true
			continue
		}
		ended[i], valued[i] = true, e.Type == jig.EventTaskCompleted
		require.Equal(r.t, started[i], e.Type != jig.EventTaskSkipped, "%s %s", r.name, about.Task)
		status := map[jig.EventType]extraction.TaskStatus{
			jig.EventTaskCompleted: extraction.TaskCompleted, jig.EventTaskFailed: extraction.TaskFailed, jig.EventTaskSkipped: extraction.TaskSkipped,
		}[e.Type]
		require.Equal(r.t, want[i].status, status, "%s %s", r.name, about.Task)
	}
	require.Len(r.t, ended, len(r.tasks), r.name)
}

// requireNoneWaits checks that every task that could be running has started.
func (r *dagRun) requireNoneWaits(started, ended map[int]bool) {
	r.t.Helper()
	open := 0
	for i := range started {
		if !ended[i] {
			open++
		}
	}
	require.LessOrEqual(r.t, open, r.parallel, r.name)
	if open == r.parallel || len(started) == 0 {
		return
	}
	for i, t := range r.tasks {
		ready := !started[i] && !ended[i]
		for _, d := range t.deps {
			ready = ready && ended[d]
		}
		require.False(r.t, ready, "%s %s could start but does not", r.name, t.id)
	}
}

// killAmid waits for a number of further effects, kills the worker a moment later, and starts another. all is the total number of effects
// that will ever happen.
func (d dags) killAmid(effects, all int, later time.Duration) {
	d.t.Helper()
	until := min(d.outside.total()+effects, all)
	require.True(d.t, eventually(d.t.Context(), patience, func() bool { return d.outside.total() >= until }), "no further effects arrive")
	eventually(d.t.Context(), later, func() bool { return false })
	d.kill()
	d.start()
}

// together is how many extractions share a round of kills.
const together = 6

// TestChaos_DAG extracts random graphs, several at once, and kills the worker at random moments. Each task must run once, as soon as all of its
// dependencies have values, and must be skipped only if the model skips it. All values must equal those of the model.
func TestChaos_DAG(t *testing.T) { //nolint:paralleltest // it kills the worker of all its extractions
	runs, seed := chaos(t, 100, 6, 2)
	random := rand.New(rand.NewPCG(uint64(seed), 6))
	d := newDAGs(t)
	var seen extraction.Counts
	effects := 0
	for first := 0; first < runs; first += together {
		var round []*dagRun
		for n := first; n < min(first+together, runs); n++ {
			round = append(round, d.prepare(randomDAG(random, fmt.Sprintf("dag%d", n), 5+random.IntN(116), 60)))
		}
		for _, run := range round {
			run.begin()
			for _, end := range run.model() {
				effects += end.attempts
			}
		}
		for range 2 + random.IntN(3) {
			d.killAmid(1+random.IntN(40), effects, time.Duration(random.IntN(120))*time.Millisecond)
		}
		for _, run := range round {
			counts := run.end()
			run.requireSmall(workflows.FrameWorkflowID(run.session, "1.1"))
			seen.Total, seen.Completed = seen.Total+counts.Total, seen.Completed+counts.Completed
			seen.Failed, seen.Skipped = seen.Failed+counts.Failed, seen.Skipped+counts.Skipped
		}
	}
	repeated := d.outside.again()
	t.Logf("%d graphs: %+v; %d calls had been killed between their effect and its record", runs, seen, repeated)
	require.Positive(t, seen.Completed)
	if runs >= together {
		require.Positive(t, repeated, "no kill happened between an effect and its record")
		require.Positive(t, seen.Failed)
		require.Positive(t, seen.Skipped)
	}
}

// TestDAG_OfAThousandTasks extracts the largest graph that an entity type may have. About a tenth of its tasks make calls.
func TestDAG_OfAThousandTasks(t *testing.T) {
	t.Parallel()
	d := dagsOf(joinTenantEnv(t))
	g := randomDAG(rand.New(rand.NewPCG(1, 7)), "thousand", 1000, 10)
	for i := range g.tasks { // the test is about size, so hardly any task is skipped
		one := &g.tasks[i]
		one.before, one.after, one.broken, one.conflict, one.unless = 0, 0, false, false, 0
		one.refused, one.field = 0, i%3 == 0
	}
	g.parallel = 50
	run := d.prepare(g)
	run.begin()
	require.Equal(t, extraction.Counts{Total: 1000, Completed: 1000}, run.end())
	for _, id := range []string{run.session, workflows.FrameWorkflowID(run.session, "1.1")} {
		b := run.requireSmall(id)
		t.Logf("%s: %d runs, at most %d events and %d KB", id, b.runs, b.events, b.bytes>>10)
	}
}

// TestDAG_TasksDoNotRunInLayers blocks one branch until the other one is finished. An engine that waited for whole layers would wait forever.
func TestDAG_TasksDoNotRunInLayers(t *testing.T) {
	t.Parallel()
	d := dagsOf(joinTenantEnv(t))
	g := dag{name: "branches", parallel: 5}
	for i, deps := range [][]int{{}, {}, {1}, {2}, {3}, {0, 4}} {
		g.tasks = append(g.tasks, dagTask{id: fmt.Sprintf("t%d", i), deps: deps, number: int64(i), calls: i != 3, attempts: 1, field: true})
	}
	let := make(chan struct{})
	d.outside.hold["/branches t0"] = let
	d.outside.arrived = func(_, task string) {
		if task == "t4" {
			close(let)
		}
	}
	run := d.prepare(g)
	run.begin()
	require.Equal(t, extraction.Counts{Total: 6, Completed: 6}, run.end())
	order := []string{}
	for _, e := range run.outside.of(run.path) {
		task, _, _ := strings.Cut(e.task, " ")
		order = append(order, task)
	}
	require.Equal(t, []string{"t1", "t2", "t4", "t0", "t5"}, order)
}
