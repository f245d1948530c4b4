package spec

import (
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig/internal/entity"
)

// maxCycles limits the cycles that are reported. A thousand documents that all call each other have more cycles than anybody can read.
const maxCycles = 20

// graph says what can call what: specs, agents, the tasks of entity types and, if extractions are started, entity types.
type graph struct {
	nodes []graphNode
	// specs, agents and types are the nodes of execution specs, agents and entity types by name.
	specs, agents, types map[string]int
	// seen holds, for each node, the node that last got an edge to it, so that no edge is added twice.
	seen []int
}

type graphNode struct {
	label string
	// doc is nil for nodes that exist only in the catalog.
	doc   *Document
	calls []graphEdge
	// part is the number of the strongly connected component.
	part int
}

// graphEdge is a call. In the document, the called name is the value of key in the mapping within. If key is empty, it is within itself.
type graphEdge struct {
	to     int
	within *place
	key    string
}

func (e graphEdge) at() *place {
	if e.key == "" {
		return e.within
	}
	return e.within.key(e.key)
}

func (g *graph) add(label string, doc *Document) int {
	g.nodes = append(g.nodes, graphNode{label: label, doc: doc})
	g.seen = append(g.seen, -1)
	return len(g.nodes) - 1
}

func (g *graph) connect(from int, edge graphEdge) {
	if g.seen[edge.to] != from {
		g.seen[edge.to] = from
		g.nodes[from].calls = append(g.nodes[from].calls, edge)
	}
}

func (g *graph) addExecution(k *checker, doc *Document) {
	if x := doc.Execution(); k.specs.all[x.Name] == x { // another document with the name counts
		g.specs[x.Name] = g.add(x.Name, doc)
	}
}

func (g *graph) addAgent(k *checker, doc *Document) {
	if agent := doc.Agent(); k.agents.all[agent.Name] == agent {
		g.agents[agent.Name] = g.add("agent "+agent.Name, doc)
	}
}

func (g *graph) addType(k *checker, doc *Document) {
	if k.types.all[doc.Name] == doc.EntityType() {
		g.types[doc.Name] = g.add("entity type "+doc.Name, doc)
	}
}

// checkCycles reports cycles in the calls of the documents. It reports each cycle once, at the first document in it. If cycles share
// calls, it reports the shortest cycle through each call. Removing the reported calls removes all cycles.
func (k *checker) checkCycles() {
	g := k.graph()
	g.parts()
	reported := map[[2]int]bool{}
	found := 0
	for from := range g.nodes {
		doc := g.nodes[from].doc
		if doc == nil {
			continue
		}
		for _, edge := range g.nodes[from].calls {
			if g.nodes[edge.to].part != g.nodes[from].part || reported[[2]int{from, edge.to}] {
				continue
			}
			if found == maxCycles {
				k.report(doc, edge.at(), ProblemCycle, "fix the reported ones first", "there are more than %d cycles", maxCycles)
				return
			}
			found++
			cycle := g.shortest(from, edge.to)
			labels := make([]string, 0, len(cycle)+1)
			for i, node := range cycle {
				labels = append(labels, g.nodes[node].label)
				reported[[2]int{node, cycle[(i+1)%len(cycle)]}] = true
			}
			labels = append(labels, labels[0])
			k.report(doc, edge.at(), ProblemCycle, "remove one of these calls", "%s calls itself: %s", labels[0], strings.Join(labels, " -> "))
		}
	}
}

// graph builds the graph, with the documents first, in their order.
func (k *checker) graph() *graph {
	g := &graph{specs: map[string]int{}, agents: map[string]int{}, types: map[string]int{}}
	for i := range k.docs {
		if node := k.docs[i].row().node; node != nil {
			node(g, k, &k.docs[i])
		}
	}
	specs, agents, types := g.specs, g.agents, g.types
	for _, name := range k.types.sorted {
		if _, ok := types[name]; !ok && k.types.all[name] != nil {
			types[name] = g.add("entity type "+name, nil)
		}
	}
	for _, name := range k.specs.sorted {
		if _, ok := specs[name]; !ok {
			specs[name] = g.add(name, nil)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.catalog.Whitelists)) {
		if _, ok := agents[name]; !ok {
			agents[name] = g.add("agent "+name, nil)
		}
	}
	tasks := k.taskNodes(g, types)
	link := func(from int) func(call) {
		return func(c call) {
			if c.undoes != "" {
				k.undo(&c)
			}
			for _, to := range k.callees(c, specs, agents, tasks) {
				g.connect(from, graphEdge{to, c.within, c.key})
			}
		}
	}
	for name, from := range specs {
		walkCalls(*k.specs.all[name], link(from))
		if x := k.specs.all[name]; x.Kind.execution().connect != nil {
			x.Kind.execution().connect(g, k, from, x)
		}
	}
	for name, from := range types {
		walkTasks(k.types.all[name], link(from))
	}
	for _, nodes := range tasks {
		for _, one := range nodes {
			if c, calls := taskCall(one.task, one.at); calls {
				link(one.node)(c)
			}
		}
	}
	for name, from := range agents {
		whitelist := k.catalog.Whitelists[name]
		if agent := k.agents.all[name]; agent != nil {
			whitelist = agent.Tools
		}
		k.linkAgent(g, from, whitelist, specs)
	}
	return g
}

// connectThin connects a thin tool to the type whose extraction it starts, unless a key keeps it from creating new entities endlessly.
func (g *graph) connectThin(_ *checker, from int, x *Execution) {
	t := x.Thin()
	if t == nil || t.Starts == nil || t.Creates == nil || t.Creates.Key != "" {
		return
	}
	if to, ok := g.types[t.Creates.Type]; ok {
		g.connect(from, graphEdge{to: to, within: (*place)(nil).key("creates"), key: "type"})
	}
}

// taskNode is a task of an entity type in the graph, with its place in the document of the type.
type taskNode struct {
	node int
	task *entity.Task
	at   *place
}

// taskNodes adds the tasks of the entity types to the graph, connects them to the tasks that they depend on, and returns them by id. Types
// may have tasks with the same id.
func (k *checker) taskNodes(g *graph, types map[string]int) map[string][]taskNode {
	nodes := map[string][]taskNode{}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		t, own := k.types.all[name], map[string]int{}
		for i := range t.Tasks {
			task := &t.Tasks[i]
			node := g.add("task "+name+"."+task.ID, g.nodes[types[name]].doc)
			own[task.ID] = node
			nodes[task.ID] = append(nodes[task.ID], taskNode{node: node, task: task, at: (*place)(nil).key("tasks").item(i)})
		}
		for i := range t.Tasks {
			for j, need := range t.Tasks[i].DependsOn {
				if to, known := own[need]; known {
					g.connect(own[t.Tasks[i].ID], graphEdge{to: to, within: (*place)(nil).key("tasks").item(i).key("depends_on").item(j)})
				}
			}
		}
	}
	return nodes
}

// callees returns the nodes that a call leads to, as far as they are known. A task's name leads to the tasks of all types that have one.
func (k *checker) callees(c call, specs, agents map[string]int, tasks map[string][]taskNode) []int {
	var to int
	ok := false
	switch c.kind {
	case callTool:
		if to, ok = specs[c.name]; ok {
			ok = callable(k.specs.all[c.name])
		}
	case callComposition:
		to, ok = specs[c.name]
	case callAgent:
		to, ok = agents[c.name]
	case callTask:
		var all []int
		for _, one := range tasks[c.name] {
			all = append(all, one.node)
		}
		return all
	case callSkill:
	}
	if !ok {
		return nil
	}
	return []int{to}
}

// linkAgent connects an agent to the specs that its whitelist lets it call as tools.
func (k *checker) linkAgent(g *graph, from int, whitelist []string, specs map[string]int) {
	for i, entry := range whitelist {
		at := (*place)(nil).key("tools").item(i)
		matches := []string{entry}
		if prefix, wild := strings.CutSuffix(entry, "*"); wild {
			matches = k.specs.covered(prefix)
		}
		for _, name := range matches {
			if x, ok := k.specs.all[name]; ok && callable(x) {
				g.connect(from, graphEdge{to: specs[name], within: at})
			}
		}
	}
}

// shortest returns the shortest cycle that begins with one call: its nodes in order, with the caller first.
func (g *graph) shortest(from, first int) []int {
	back := map[int]int{first: from}
	for queue := []int{first}; len(queue) > 0; queue = queue[1:] {
		node := queue[0]
		if node == from {
			break
		}
		for _, edge := range g.nodes[node].calls {
			if _, seen := back[edge.to]; !seen && g.nodes[edge.to].part == g.nodes[from].part {
				back[edge.to] = node
				queue = append(queue, edge.to)
			}
		}
	}
	cycle := []int{from}
	for at := back[from]; at != from; at = back[at] {
		cycle = append(cycle, at)
	}
	slices.Reverse(cycle[1:])
	return cycle
}

// parts numbers the strongly connected components with Tarjan's algorithm, without recursion because chains may be long.
func (g *graph) parts() {
	const unseen = -1
	index, low := make([]int, len(g.nodes)), make([]int, len(g.nodes))
	onStack := make([]bool, len(g.nodes))
	for i := range index {
		index[i] = unseen
	}
	type visit struct{ node, next int }
	var stack []int
	var path []visit
	count, part := 0, 0
	enter := func(node int) {
		index[node], low[node] = count, count
		count++
		stack = append(stack, node)
		onStack[node] = true
		path = append(path, visit{node: node})
	}
	leave := func(node int) {
		if low[node] != index[node] {
			return
		}
		for top := -1; top != node; {
			top = stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			onStack[top] = false
			g.nodes[top].part = part
		}
		part++
	}
	for start := range g.nodes {
		if index[start] == unseen {
			enter(start)
		}
		for len(path) > 0 {
			at := &path[len(path)-1]
			node := at.node
			if at.next < len(g.nodes[node].calls) {
				to := g.nodes[node].calls[at.next].to
				at.next++
				switch {
				case index[to] == unseen:
					enter(to)
				case onStack[to]:
					low[node] = min(low[node], index[to])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				up := path[len(path)-1].node
				low[up] = min(low[up], low[node])
			}
			leave(node)
		}
	}
}
