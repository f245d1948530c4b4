package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/jig-run/jig"
)

// What Check finds beside the classes that reading a document has.
const (
	ProblemUnknownTool        ProblemCode = "UNKNOWN_TOOL"
	ProblemUnknownComposition ProblemCode = "UNKNOWN_COMPOSITION"
	ProblemUnknownAgent       ProblemCode = "UNKNOWN_AGENT"
	ProblemUnknownSkill       ProblemCode = "UNKNOWN_SKILL"
	ProblemUnknownTask        ProblemCode = "UNKNOWN_TASK"
	ProblemUnknownType        ProblemCode = "UNKNOWN_ENTITY_TYPE"
	ProblemUnknownField       ProblemCode = "UNKNOWN_FIELD"
	ProblemNameTaken          ProblemCode = "NAME_TAKEN"
	ProblemCycle              ProblemCode = "CYCLE"
	ProblemRetryLimited       ProblemCode = "RETRY_LIMITED"
)

// Catalogue is what there is beside the documents that are checked. Of a list that is nil nothing is known, and no name of
// its kind is called unknown; an empty one says that there are none.
type Catalogue struct {
	// Tools are the contracts of all tools, those of execution specs included.
	Tools []jig.Tool
	// Agents, Skills and Tasks are names.
	Agents, Skills, Tasks []string
	// Specs are the registered compositions, prompts, tasks and thin tools. A document of the same name replaces one.
	Specs []Execution
	// EntityTypes are the registered entity types; of one without fields no more than its name is known. A document of the same name
	// replaces one.
	EntityTypes []jig.EntityType
	// Whitelists are the tools of registered agents, by name, and TaskSteps what registered tasks run; both only so that
	// cycles through them are found.
	Whitelists map[string][]string
	TaskSteps  map[string][]Step
}

// maxHints bounds the unknown names that get the nearest ones as a hint, so that a thousand of them cost no minute.
const maxHints = 64

// Check holds documents against the catalogue and each other: names that nothing has, cycles, inputs, outputs and contents of
// entities that cannot fit, expressions that read what a tool does not give back or an entity does not have. It reports all problems at once, in the order of documents and lines. What reading
// has reported of a document is not said again; documents of other kinds than agents, execution specs and entity types are passed over.
func Check(docs []Document, c Catalogue) Problems {
	k := newChecker(docs, c)
	for i := range docs {
		switch doc := &docs[i]; {
		case doc.Execution != nil:
			k.checkExecution(doc)
		case doc.Agent != nil:
			k.checkWhitelist(doc)
		case doc.EntityType != nil:
			k.checkEntityType(doc)
		}
	}
	k.checkCycles()
	k.problems.Sort()
	return k.problems
}

// checker knows every name that can be called, and collects problems.
type checker struct {
	docs      []Document
	catalogue Catalogue
	tools     names[*contract]
	specs     names[*Execution]
	agents    names[*jig.Agent]
	skills    names[bool]
	tasks     names[bool]
	// types are the entity types; nil for one that is not known whole.
	types names[*jig.EntityType]
	// codeTools are the tools of the catalogue that are code, specTools those that are specs.
	codeTools, specTools map[string]bool
	// taskSpecs are the specs of kind task: a step may name one like a task.
	taskSpecs map[string]bool
	// outputs are the schemas of what tools and specs give back, of those that say.
	outputs map[string]json.RawMessage
	// inputs are the contracts of specs and of agents ("agent <name>"), made once.
	inputs map[string]*contract
	// contracts are the tools of the catalogue by name.
	contracts map[string]*jig.Tool
	hints     map[string]string
	problems  Problems
	// fitSteps and patterns bound what comparing all inputs with their schemas takes.
	fitSteps int
	patterns patternCache
}

// names are what a kind of name may be; open when there may be more of them.
type names[V any] struct {
	all    map[string]V
	sorted []string
	open   bool
}

func newNames[V any](open bool) names[V] { return names[V]{all: map[string]V{}, open: open} }

func (n *names[V]) sort() { n.sorted = slices.Sorted(maps.Keys(n.all)) }

// missing reports whether there is certainly none of that name.
func (n *names[V]) missing(name string) bool {
	_, ok := n.all[name]
	return !ok && !n.open
}

// covered is the range of the sorted names that an entry of a whitelist with a * means.
func (n *names[V]) covered(prefix string) []string {
	from := sort.SearchStrings(n.sorted, prefix)
	to := from + sort.Search(len(n.sorted)-from, func(i int) bool { return !strings.HasPrefix(n.sorted[from+i], prefix) })
	return n.sorted[from:to]
}

func newChecker(docs []Document, c Catalogue) *checker {
	k := &checker{
		docs: docs, catalogue: c,
		tools: newNames[*contract](c.Tools == nil), specs: newNames[*Execution](c.Specs == nil),
		agents: newNames[*jig.Agent](c.Agents == nil), skills: newNames[bool](c.Skills == nil), tasks: newNames[bool](c.Tasks == nil),
		types:     newNames[*jig.EntityType](c.EntityTypes == nil),
		codeTools: map[string]bool{}, specTools: map[string]bool{}, taskSpecs: map[string]bool{},
		inputs: map[string]*contract{}, outputs: map[string]json.RawMessage{}, hints: map[string]string{},
		contracts: map[string]*jig.Tool{},
	}
	for i := range c.Tools {
		t := &c.Tools[i]
		k.tools.all[t.Name] = &contract{raw: t.InputSchema, of: "the input of " + t.Name}
		k.outputs[t.Name], k.contracts[t.Name] = t.OutputSchema, t
		isSpec := Kind(t.Implementation).IsExecution()
		k.specTools[t.Name], k.codeTools[t.Name] = isSpec, !isSpec
	}
	for i := range c.Specs {
		k.addSpec(&c.Specs[i])
	}
	for _, name := range c.Agents {
		k.agents.all[name] = nil
	}
	for _, name := range c.Skills {
		k.skills.all[name] = true
	}
	for _, name := range c.Tasks {
		k.tasks.all[name] = true
	}
	for i := range c.EntityTypes {
		t := &c.EntityTypes[i]
		if k.types.all[t.Name] = t; len(t.Fields) == 0 {
			k.types.all[t.Name] = nil
		}
	}
	for i := range docs {
		switch doc := &docs[i]; {
		case doc.EntityType != nil:
			k.addType(doc)
		case doc.Execution != nil:
			k.addSpec(doc.Execution)
		case doc.Agent != nil:
			k.agents.all[doc.Agent.Name] = doc.Agent
			k.inputs["agent "+doc.Agent.Name] = &contract{raw: doc.Agent.InputSchema, of: "the input of agent " + doc.Agent.Name}
		case doc.Kind == KindSkill:
			k.skills.all[doc.Name] = true
		}
	}
	k.tools.sort()
	k.specs.sort()
	k.agents.sort()
	k.skills.sort()
	k.tasks.sort()
	k.types.sort()
	return k
}

// addType makes the entity type of a document known.
func (k *checker) addType(doc *Document) {
	if k.types.all[doc.Name] = doc.EntityType; doc.broken {
		k.types.all[doc.Name] = nil
	}
}

// addSpec makes a spec known by its name, and as a tool when its name is a tool's.
func (k *checker) addSpec(x *Execution) {
	k.specs.all[x.Name] = x
	if x.Kind == KindTask {
		k.taskSpecs[x.Name] = true
	}
	k.outputs[x.Name] = x.Tool.OutputSchema
	k.inputs[x.Name] = &contract{raw: x.Tool.InputSchema, of: "the input of " + x.Name}
	if callable(x) {
		k.tools.all[x.Name] = k.inputs[x.Name]
	}
}

// callable reports whether a spec is a tool too.
func callable(x *Execution) bool { return jig.CheckToolName(x.Name) == nil }

// report adds an error at a place of a document, or of its nearest parent that the document has.
func (k *checker) report(doc *Document, at *place, code ProblemCode, hint, format string, args ...any) {
	k.problems = append(k.problems, problemAt(doc, at, code, hint, format, args...))
}

func problemAt(doc *Document, at *place, code ProblemCode, hint, format string, args ...any) Problem {
	p := Problem{
		Document: doc.Path, Path: at.String(), Code: code, Severity: SeverityError,
		Message: fmt.Sprintf(format, args...), Hint: hint,
	}
	for ; ; at = at.up {
		if p.Line, p.Column = doc.Position(at.String()); p.Line > 0 || at == nil {
			return p
		}
	}
}

// suggest is Suggest for a kind of names, worked out once for each name and for the first maxHints of them.
func (k *checker) suggest(kind, name string, known []string) string {
	key := kind + " " + name
	hint, done := k.hints[key]
	if !done && len(k.hints) < maxHints {
		hint = Suggest(name, known)
		k.hints[key] = hint
	}
	return hint
}

// checkWhitelist warns of entries that name no tool or no agent: the agent works, but without what was meant.
func (k *checker) checkWhitelist(doc *Document) {
	for i, name := range doc.Agent.Agents {
		if k.agents.missing(name) {
			hint := k.suggest("agent", name, k.agents.sorted)
			p := problemAt(doc, (*place)(nil).key("agents").item(i), ProblemUnknownAgent, hint, "there is no agent %q", name)
			p.Severity = SeverityWarning
			k.problems = append(k.problems, p)
		}
	}
	if k.tools.open {
		return
	}
	for i, entry := range doc.Agent.Tools {
		prefix, wild := strings.CutSuffix(entry, "*")
		if !k.tools.missing(entry) || entry == "*" || wild && len(k.tools.covered(prefix)) > 0 {
			continue
		}
		p := problemAt(doc, (*place)(nil).key("tools").item(i), ProblemUnknownTool, k.suggest("tool", entry, k.tools.sorted), "there is no tool %q", entry)
		if wild {
			p.Message = fmt.Sprintf("no tool's name begins with %q", prefix)
		}
		p.Severity = SeverityWarning
		k.problems = append(k.problems, p)
	}
}

// checkExecution checks the names that a spec calls, what it gives them, and its literal output.
func (k *checker) checkExecution(doc *Document) {
	x := doc.Execution
	var root *place
	if k.codeTools[x.Name] {
		k.report(doc, root.key("name"), ProblemNameTaken, "give it another name", "there is a tool %s already, in code", x.Name)
	}
	if x.Tool.Undo != "" {
		k.checkName(doc, call{kind: callTool, name: x.Tool.Undo, key: "undo"})
	}
	if x.Thin != nil {
		k.checkThin(doc)
	}
	shaped := false
	walkCalls(*x, func(c call) {
		_, known := k.shape(c.name)
		shaped = shaped || known
		if c.undoes != "" && !k.checkUndo(doc, &c) {
			return
		}
		if !k.checkName(doc, c) {
			return
		}
		if target := k.target(c); target != nil {
			k.checkInput(doc, target, c)
		}
		k.checkConfirmed(doc, c)
		k.checkRetries(doc, c)
	})
	// Where no result's data is read, reading the document has found all that there is.
	if shaped && (len(doc.Body) == 0 || bytes.Contains(doc.Body, []byte("data"))) {
		k.problems = append(k.problems, CheckShapes(*doc, k.shape)...)
	}
	if len(x.Output) > 0 && len(x.Tool.OutputSchema) > 0 && x.Kind == KindComposition {
		output := &contract{raw: x.Tool.OutputSchema, of: "the output_schema"}
		k.checkInput(doc, output, call{input: x.Output, inputKey: "output"})
	}
}

// checkUndo sets the name of the tool that undoes another one, as the contract of that one says; false when it is not known, or when
// there is none, which is reported.
func (k *checker) checkUndo(doc *Document, c *call) bool {
	known := k.undo(c)
	if known && c.name == "" {
		k.report(doc, c.at(), ProblemMissingKey, "add tool: …", "%s names no tool that undoes it", c.undoes)
	}
	return c.name != ""
}

// undo sets the name of the tool that undoes another one, and reports whether the contract of that one is known.
func (k *checker) undo(c *call) (known bool) {
	if x := k.specs.all[c.undoes]; x != nil && x.Tool.Name != "" {
		c.name = x.Tool.Undo
		return true
	}
	tool, known := k.contracts[c.undoes]
	if known {
		c.name = tool.Undo
	}
	return known
}

// shape is what a tool or spec gives back.
func (k *checker) shape(name string) (json.RawMessage, bool) {
	schema := k.outputs[name]
	return schema, len(schema) > 0
}

// checkName reports a call of something that is not there; false when there is nothing more to say about the call.
func (k *checker) checkName(doc *Document, c call) bool {
	switch c.kind {
	case callTool:
		if k.tools.missing(c.name) {
			if jig.CheckToolName(c.name) != nil {
				return false // reading has refused its form
			}
			k.report(doc, c.at(), ProblemUnknownTool, k.suggest("tool", c.name, k.tools.sorted), "there is no tool %q", c.name)
			return false
		}
	case callComposition:
		x, known := k.specs.all[c.name]
		switch {
		case known && x.Kind == KindThinTool:
			k.report(doc, c.at(), ProblemUnknownComposition, "write tool: "+c.name, "%s is a thin tool, not a composition", c.name)
			return false
		case k.codeTools[c.name] && !known:
			k.report(doc, c.at(), ProblemUnknownComposition, "write tool: "+c.name, "%s is a tool, not a composition", c.name)
			return false
		case k.specs.missing(c.name) && !k.specTools[c.name]:
			k.report(doc, c.at(), ProblemUnknownComposition, k.suggest("composition", c.name, k.specs.sorted), "there is no composition %q", c.name)
			return false
		}
	case callAgent:
		if k.agents.missing(c.name) {
			k.report(doc, c.at(), ProblemUnknownAgent, k.suggest("agent", c.name, k.agents.sorted), "there is no agent %q", c.name)
			return false
		}
	case callSkill:
		if k.skills.missing(c.name) {
			k.report(doc, c.at(), ProblemUnknownSkill, k.suggest("skill", c.name, k.skills.sorted), "there is no skill %q", c.name)
		}
		return false
	case callTask:
		if own := doc.Execution.Kind == KindTask && doc.Execution.Name == c.name; k.tasks.missing(c.name) && (own || !k.taskSpecs[c.name]) {
			k.report(doc, c.at(), ProblemUnknownTask, k.suggest("task", c.name, k.tasks.sorted), "there is no task %q", c.name)
		}
		return false
	}
	return true
}

// target is the contract that a call's input must satisfy; nil when it is not known.
func (k *checker) target(c call) *contract {
	switch c.kind {
	case callTool:
		return k.tools.all[c.name]
	case callComposition:
		if target := k.inputs[c.name]; target != nil {
			return target
		}
		return k.tools.all[c.name]
	case callAgent:
		if len(c.input) > 0 { // an agent without input may do without, or ask for it
			return k.inputs["agent "+c.name]
		}
	case callSkill, callTask:
	}
	return nil
}
