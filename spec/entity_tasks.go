package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/expr"
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

// checkEntityType checks the entity types that relations refer to, and the tasks: the names that they call, the inputs of these calls, and
// which parts of the results they read.
func (k *checker) checkEntityType(doc *Document) {
	if doc.broken {
		return
	}
	k.checkTargets(doc, doc.EntityType().Fields, (*place)(nil).key("fields"))
	tasks, shapes := (*place)(nil).key("tasks"), TaskShapes(*doc.EntityType())
	for i := range doc.EntityType().Tasks {
		t := &doc.EntityType().Tasks[i]
		c, calls := taskCall(t, tasks.item(i))
		if !calls {
			continue
		}
		if !k.checkPromptName(doc, t, c) || !k.checkName(doc, c) {
			continue
		}
		if c.kind == callAgent {
			c = agentInput(c)
		}
		if target := k.target(c); target != nil {
			k.checkInput(doc, target, c)
		}
		k.checkConfirmed(doc, c)
		k.checkRetries(doc, c)
		if result, known := k.shape(t.Use); known && c.kind != callAgent {
			with := maps.Clone(shapes)
			with["result"] = result
			k.checkResult(doc, t, tasks.item(i), with)
		}
	}
}

// agentInput reduces a task's call of an agent to the agent's own input. If the task's input has only members that agent.run accepts (task,
// input, model), it is the input of agent.run, and the agent's own input is its member input. Otherwise, the whole input is the agent's.
func agentInput(c call) call {
	var members map[string]json.RawMessage
	if len(c.input) == 0 || json.Unmarshal(c.input, &members) != nil {
		return c // reading has refused an input that is not a mapping
	}
	for name := range members {
		if name != "task" && name != "input" && name != "model" {
			return c
		}
	}
	c.within, c.input = c.inputAt(), members["input"]
	return c
}

// walkTasks visits every call of an entity type's tasks.
func walkTasks(t *entity.Type, visit func(call)) {
	for i := range t.Tasks {
		if c, calls := taskCall(&t.Tasks[i], (*place)(nil).key("tasks").item(i)); calls {
			visit(c)
		}
	}
}

// taskCall returns the call that a task makes, or false if it makes none.
func taskCall(t *entity.Task, within *place) (call, bool) {
	c := call{name: t.Use, within: within, key: string(t.Kind), inputKey: "input", input: t.Input}
	if t.Attempts > 1 {
		c.retries = "attempts"
	}
	switch t.Kind {
	case entity.TaskTool:
		c.kind = callTool
	case entity.TaskComposition, entity.TaskPrompt:
		c.kind = callComposition
	case entity.TaskAgent:
		c.kind = callAgent
	case entity.TaskCompute, entity.TaskCitations:
		return call{}, false
	}
	return c, true
}

// checkTargets warns of relations to entity types that do not exist, including those in objects and lists. It is only a warning because two
// types may refer to each other, and one of them must be registered first.
func (k *checker) checkTargets(doc *Document, fields []entity.Field, at *place) {
	for i := range fields {
		here := at.item(i)
		for f := &fields[i]; f != nil; f = f.Items {
			if f.Type == entity.FieldRelation && k.types.missing(f.Target) {
				p := k.unknownType(doc, here.key("target"), f.Target)
				p.Severity = SeverityWarning
				k.problems = append(k.problems, p)
			}
			k.checkTargets(doc, f.Fields, here.key("fields"))
			here = here.key("items")
		}
	}
}

// checkType reports an entity type that does not exist. It returns the type, or nil if it is not fully known.
func (k *checker) checkType(doc *Document, at *place, name string) *entity.Type {
	if k.types.missing(name) {
		k.problems = append(k.problems, k.unknownType(doc, at, name))
	}
	return k.types.all[name]
}

func (k *checker) unknownType(doc *Document, at *place, name string) Problem {
	hint := cmp.Or(k.suggest("entity type", name, k.types.sorted), "add a document of kind entity_type with that name")
	return problemAt(doc, at, ProblemUnknownType, hint, "there is no entity type %q", name)
}

// checkPromptName reports a prompt that does not exist, or that is a document of another kind. It returns false if there is nothing more to
// check.
func (k *checker) checkPromptName(doc *Document, t *entity.Task, c call) bool {
	if t.Kind != entity.TaskPrompt {
		return true
	}
	x, known := k.specs.all[t.Use]
	switch {
	case known && x != nil && x.Kind.HasBackend():
		k.report(doc, c.at(), ProblemUnknownComposition, "write tool: "+t.Use, "%s is a %s, not a prompt", t.Use, x.Kind.Words())
	case known && x != nil && string(x.Kind) != string(t.Kind): // both are called prompt
		k.report(doc, c.at(), ProblemUnknownComposition, "write composition: "+t.Use, "%s is a %s, not a prompt", t.Use, x.Kind)
	case !known && k.specs.missing(t.Use) && !k.specTools[t.Use]:
		k.report(doc, c.at(), ProblemUnknownComposition, k.suggest("prompt", t.Use, k.specs.sorted), "there is no prompt %q", t.Use)
	default:
		return true
	}
	return false
}

// checkResult checks the parts of the result that a task reads, given the shape of that result.
func (k *checker) checkResult(doc *Document, t *entity.Task, at *place, shapes expr.Shapes) {
	env, err := expr.TaskUse().Env()
	if err != nil {
		return // reading the document has reported it
	}
	for _, one := range []struct {
		key, source string
		want        expr.Type
	}{{"value", t.Value, expr.Any}, {"sources", t.Sources, expr.List}} {
		if one.source == "" {
			continue
		}
		if err := env.Check(one.source, one.want, shapes); err != nil {
			k.report(doc, at.key(one.key), ProblemBadCEL, jig.AsError(err).Hint, "%s", expressionMessage(err))
		}
	}
}
