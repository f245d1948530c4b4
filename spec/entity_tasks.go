package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/suggest"
)

// taskGraph holds the dependencies between the tasks of an entity type.
type taskGraph struct {
	tasks []entity.Task
	index map[string]int
	// needs are the dependencies that exist, as indexes.
	needs [][]int
	// order lists every task after the tasks that it depends on. It is empty if there is a cycle.
	order []int
	// before holds, for each task, the set of the tasks that it depends on, directly or indirectly. It is empty if there is a cycle.
	before []bits
}

// bits is a set of non-negative integers.
type bits []uint64

func (b bits) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bits) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }
func (b bits) add(other bits) {
	for i := range b {
		b[i] |= other[i]
	}
}

func newTaskGraph(tasks []entity.Task) *taskGraph {
	g := &taskGraph{tasks: tasks, index: make(map[string]int, len(tasks)), needs: make([][]int, len(tasks))}
	for i, t := range tasks {
		if _, again := g.index[t.ID]; !again && t.ID != "" {
			g.index[t.ID] = i
		}
	}
	for i, t := range tasks {
		for _, id := range t.DependsOn {
			if j, known := g.index[id]; known {
				g.needs[i] = append(g.needs[i], j)
			}
		}
	}
	return g
}

func (g *taskGraph) ids() []string {
	ids := make([]string, 0, len(g.tasks))
	for _, t := range g.tasks {
		ids = append(ids, t.ID)
	}
	return ids
}

// sort fills order and before. If there is a cycle, it instead returns the first one found, as indexes with the first repeated at the end.
func (g *taskGraph) sort() []int {
	const fresh, open, done = 0, 1, 2
	state, order, path := make([]int, len(g.tasks)), make([]int, 0, len(g.tasks)), []int{}
	var visit func(i int) []int
	visit = func(i int) []int {
		switch state[i] {
		case done:
			return nil
		case open:
			return append(slices.Clone(path[slices.Index(path, i):]), i)
		}
		state[i], path = open, append(path, i)
		for _, need := range g.needs[i] {
			if cycle := visit(need); cycle != nil {
				return cycle
			}
		}
		state[i], path, order = done, path[:len(path)-1], append(order, i)
		return nil
	}
	for i := range g.tasks {
		if state[i] == fresh {
			if cycle := visit(i); cycle != nil {
				return cycle
			}
		}
	}
	g.order, g.before = order, make([]bits, len(g.tasks))
	for _, i := range order {
		g.before[i] = make(bits, len(g.tasks)/64+1)
		for _, need := range g.needs[i] {
			g.before[i].set(need)
			g.before[i].add(g.before[need])
		}
	}
	return nil
}

// depths returns the length of the longest chain of tasks that ends at each task, including the task itself. It is the task's layer in
// drawings; no task waits for a layer.
func (g *taskGraph) depths() []int {
	depths := make([]int, len(g.tasks))
	for _, i := range g.order {
		for _, need := range g.needs[i] {
			depths[i] = max(depths[i], depths[need])
		}
		depths[i]++
	}
	return depths
}

// checkTasks checks the references of tasks to each other and to fields, and then their expressions.
func (d *decoder) checkTasks(t entity.Type) {
	g := newTaskGraph(t.Tasks)
	fills := d.checkFillers(t, g)
	for i, task := range t.Tasks {
		d.checkDependencies(indexPath("tasks", i), task, g)
	}
	if cycle := g.sort(); cycle != nil {
		at := cycle[0]
		d.at(indexPath("tasks", at)+d.dependencyKey(t.Tasks[at]), ProblemCycle, "remove one of these dependencies", "tasks wait for each other: %s", g.chain(cycle))
	}
	for i, depth := range g.depths() {
		if depth == MaxTaskDepth+1 {
			d.at(indexPath("tasks", i), ProblemTooDeep, "put some of them into one composition", "more than %d tasks depend on one another, up to %s", MaxTaskDepth, t.Tasks[i].ID)
			break
		}
	}
	d.checkUseless(t, g, fills)
	d.checkTaskExpressions(t, g)
}

// dependencyKey returns the key of a task that makes it wait.
func (d *decoder) dependencyKey(t entity.Task) string {
	if t.Kind == entity.TaskCitations && len(t.DependsOn) == 1 {
		return "." + string(entity.TaskCitations)
	}
	return ".depends_on"
}

// chain writes a cycle as a -> b -> a, shortened if it is long.
func (g *taskGraph) chain(cycle []int) string {
	const shown = 12
	names := make([]string, 0, shown+1)
	for i, at := range cycle {
		if len(cycle) > shown && i == shown/2 {
			names = append(names, fmt.Sprintf("(%d more)", len(cycle)-shown))
		}
		if len(cycle) <= shown || i < shown/2 || i >= len(cycle)-shown/2 {
			names = append(names, g.tasks[at].ID)
		}
	}
	return strings.Join(names, " -> ")
}

// checkFillers checks the tasks that fields name, and returns the field that each task fills.
func (d *decoder) checkFillers(t entity.Type, g *taskGraph) map[string]*entity.Field {
	fills := map[string]*entity.Field{}
	for i := range t.Fields {
		f, at := &t.Fields[i], indexPath("fields", i)+".task"
		if f.Task == "" {
			continue
		}
		if _, known := g.index[f.Task]; !known {
			d.at(at, ProblemUnknownTask, suggest.OrKnown(f.Task, g.ids()), "there is no task %q", f.Task)
			continue
		}
		if first := fills[f.Task]; first != nil {
			d.at(at, ProblemBadShape, "fill it with a compute task that depends on "+f.Task+" and takes its part of tasks."+f.Task,
				"the task %s already fills the field %s", f.Task, first.Name)
			continue
		}
		fills[f.Task] = f
	}
	return fills
}

func (d *decoder) checkDependencies(path string, t entity.Task, g *taskGraph) {
	seen := map[string]bool{}
	for i, id := range t.DependsOn {
		at, written := indexPath(path+".depends_on", i), d.has(indexPath(path+".depends_on", i))
		if !written {
			at = path + "." + string(entity.TaskCitations)
		}
		_, known := g.index[id]
		switch {
		case !known && id != "":
			d.at(at, ProblemUnknownTask, suggest.OrKnown(id, g.ids()), "there is no task %q", id)
		case seen[id]:
			d.at(at, ProblemDuplicateID, "remove one of them", "%q is listed twice", id)
		}
		seen[id] = true
	}
}

// checkUseless warns of tasks whose values nothing uses. Citations tasks are useful in themselves.
func (d *decoder) checkUseless(t entity.Type, g *taskGraph, fills map[string]*entity.Field) {
	needed := make([]bool, len(t.Tasks))
	for _, needs := range g.needs {
		for _, i := range needs {
			needed[i] = true
		}
	}
	for i, task := range t.Tasks {
		if needed[i] || fills[task.ID] != nil || task.Kind == entity.TaskCitations || task.ID == "" {
			continue
		}
		p := d.warning(indexPath("tasks", i), "name it in a field's task, or remove it", fmt.Sprintf("the task %s fills no field, and no other task depends on it", task.ID))
		p.Code = ProblemUnreachable
		d.add(p)
	}
}
