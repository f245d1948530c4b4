package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/suggest"
)

// The problems that Check can find in addition to those of reading a document.
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
	ProblemMilderPermission   ProblemCode = "MILDER_PERMISSION"
)

// Catalog lists what exists besides the documents that are checked. A nil list means that nothing is known about its kind, so that no
// name of that kind is reported as unknown. An empty list means that nothing of that kind exists.
type Catalog struct {
	// Tools are the contracts of all tools, including those of execution specs.
	Tools []jig.Tool
	// Agents and Skills are names.
	Agents, Skills []string
	// Specs are the registered compositions, prompts, tasks and thin tools. A document replaces the spec with the same name.
	Specs []Execution
	// EntityTypes are the registered entity types. If a type has no fields, only its name is known, so that it may have any task. A document
	// replaces the type with the same name.
	EntityTypes []entity.Type
	// Whitelists maps registered agents to the tools they may use. It is used only to find cycles.
	Whitelists map[string][]string
}

// Without returns the catalog without some documents. gone gets the kinds under which they are stored.
func (c Catalog) Without(gone func(stored, name string) bool) Catalog {
	names := func(list []string, kind Kind) []string {
		return without(list, func(name string) bool { return gone(kind.Stored(), name) })
	}
	c.Agents, c.Skills = names(c.Agents, KindAgent), names(c.Skills, KindSkill)
	c.Tools = without(c.Tools, func(t jig.Tool) bool {
		kind := Kind(t.Implementation)
		return kind.IsExecution() && gone(kind.Stored(), t.Name)
	})
	c.Specs = without(c.Specs, func(x Execution) bool { return gone(x.Kind.Stored(), x.Name) })
	c.EntityTypes = without(c.EntityTypes, func(t entity.Type) bool { return gone(KindEntityType.Stored(), t.Name) })
	return c
}

// without returns a copy of a list without some of its entries. A list that is nil stays nil: nothing is known about its kind.
func without[T any](list []T, gone func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), gone)
}

// maxHints limits the number of unknown names that get a suggestion, because computing a thousand suggestions would take a minute.
const maxHints = 64

// Check checks agents, execution specs and entity types against the catalog and each other, and ignores other documents. It finds unknown
// names, cycles, values that cannot fit their schema or entity type, and expressions that read members that a tool's result or an entity
// does not have. It reports all problems at once, in the order of documents and lines, except those that were reported when a document was
// read.
func Check(docs []Document, c Catalog) Problems {
	k := newChecker(docs, c)
	for i := range docs {
		if check := docs[i].row().check; check != nil {
			check(k, &docs[i])
		}
	}
	k.checkCycles()
	k.problems.Sort()
	return k.problems
}

// checker knows every name that can be called, and collects problems.
type checker struct {
	docs    []Document
	catalog Catalog
	tools   names[*contract]
	specs   names[*Execution]
	agents  names[*jig.Agent]
	skills  names[bool]
	// types are the entity types. A type that is not fully known is nil. tasks are the ids of the tasks of all types.
	types names[*entity.Type]
	tasks names[bool]
	// codeTools are the tools of the catalog that are written in code. specTools are the tools that are specs.
	codeTools, specTools map[string]bool
	// outputs maps tools and specs to their output schemas. Some have none.
	outputs map[string]json.RawMessage
	// inputs maps specs, by name, and agents, as "agent <name>", to the contracts of their inputs.
	inputs map[string]*contract
	// contracts holds the tools of the catalog by name.
	contracts map[string]*jig.Tool
	hints     map[string]string
	problems  Problems
	// fitSteps counts the steps of comparing inputs with their schemas, and patterns keeps the patterns used for that. Both limit the work.
	fitSteps int
	patterns patternCache
}

// names holds the known names of a kind. If open is set, other names may exist.
type names[V any] struct {
	all    map[string]V
	sorted []string
	open   bool
}

func newNames[V any](open bool) names[V] { return names[V]{all: map[string]V{}, open: open} }

func (n *names[V]) sort() { n.sorted = slices.Sorted(maps.Keys(n.all)) }

// missing reports whether a name is certain not to exist.
func (n *names[V]) missing(name string) bool {
	_, ok := n.all[name]
	return !ok && !n.open
}

// covered returns the range of sorted names that a whitelist entry with a * includes.
func (n *names[V]) covered(prefix string) []string {
	from := sort.SearchStrings(n.sorted, prefix)
	to := from + sort.Search(len(n.sorted)-from, func(i int) bool { return !strings.HasPrefix(n.sorted[from+i], prefix) })
	return n.sorted[from:to]
}

func newChecker(docs []Document, c Catalog) *checker {
	k := &checker{
		docs: docs, catalog: c,
		tools: newNames[*contract](c.Tools == nil), specs: newNames[*Execution](c.Specs == nil),
		agents: newNames[*jig.Agent](c.Agents == nil), skills: newNames[bool](c.Skills == nil),
		types: newNames[*entity.Type](c.EntityTypes == nil), tasks: newNames[bool](c.EntityTypes == nil),
		codeTools: map[string]bool{}, specTools: map[string]bool{}, inputs: map[string]*contract{}, outputs: map[string]json.RawMessage{}, hints: map[string]string{},
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
	for i := range c.EntityTypes {
		t := &c.EntityTypes[i]
		if k.types.all[t.Name] = t; len(t.Fields) == 0 {
			k.types.all[t.Name] = nil
		}
	}
	for i := range docs {
		if declare := docs[i].row().declare; declare != nil {
			declare(k, &docs[i])
		}
	}
	k.addTasks()
	k.tools.sort()
	k.specs.sort()
	k.agents.sort()
	k.skills.sort()
	k.tasks.sort()
	k.types.sort()
	return k
}

func (k *checker) addAgent(doc *Document) {
	agent := doc.Agent()
	k.agents.all[agent.Name] = agent
	k.inputs["agent "+agent.Name] = &contract{raw: agent.InputSchema, of: "the input of agent " + agent.Name}
}

func (k *checker) addSkill(doc *Document) { k.skills.all[doc.Name] = true }

func (k *checker) addExecution(doc *Document) { k.addSpec(doc.Execution()) }

// addType adds the entity type of a document to the known types.
func (k *checker) addType(doc *Document) {
	if k.types.all[doc.Name] = doc.EntityType(); doc.broken {
		k.types.all[doc.Name] = nil
	}
}

// addTasks adds the tasks of all entity types to the known tasks. If a type is not fully known, it may have any task.
func (k *checker) addTasks() {
	for _, t := range k.types.all {
		if t == nil {
			k.tasks.open = true
			continue
		}
		for i := range t.Tasks {
			k.tasks.all[t.Tasks[i].ID] = true
		}
	}
}

// addSpec adds a spec to the known specs, and to the tools if its name is that of a tool.
func (k *checker) addSpec(x *Execution) {
	k.specs.all[x.Name] = x
	k.outputs[x.Name] = x.Tool.OutputSchema
	k.inputs[x.Name] = &contract{raw: x.Tool.InputSchema, of: "the input of " + x.Name}
	if callable(x) {
		k.tools.all[x.Name] = k.inputs[x.Name]
	}
}

// callable reports whether a spec is also a tool.
func callable(x *Execution) bool { return jig.CheckToolName(x.Name) == nil }

// report adds an error at a place in a document. If the document lacks that place, the error has the position of the nearest parent.
func (k *checker) report(doc *Document, at *place, code ProblemCode, hint, format string, args ...any) {
	k.problems = append(k.problems, problemAt(doc, at, code, hint, format, args...))
}

func problemAt(doc *Document, at *place, code ProblemCode, hint, format string, args ...any) Problem {
	p := Problem{
		Document: doc.Path, Path: at.String(), Code: code, Severity: SeverityError,
	}.hinting(hint).saying(format, args...)
	for ; ; at = at.up {
		if p.Line, p.Column = doc.Position(at.String()); p.Line > 0 || at == nil {
			return p
		}
	}
}

// suggest returns a hint for an unknown name, as [suggest.OrKnown] does. It computes each hint once, and only for the first maxHints names.
func (k *checker) suggest(kind, name string, known []string) string {
	key := kind + " " + name
	hint, done := k.hints[key]
	if !done && len(k.hints) < maxHints {
		hint = suggest.OrKnown(name, known)
		k.hints[key] = hint
	}
	return hint
}

// checkWhitelist warns of entries that match no tool or agent. The agent still works, but without the tools that the author had in mind.
func (k *checker) checkWhitelist(doc *Document) {
	for i, name := range doc.Agent().Agents {
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
	for i, entry := range doc.Agent().Tools {
		prefix, wild := strings.CutSuffix(entry, "*")
		if !k.tools.missing(entry) || entry == "*" || wild && len(k.tools.covered(prefix)) > 0 {
			continue
		}
		p := problemAt(doc, (*place)(nil).key("tools").item(i), ProblemUnknownTool, k.suggest("tool", entry, k.tools.sorted), "there is no tool %q", entry)
		if wild {
			p.Message = fmt.Sprintf("no tool's name starts with %q", prefix)
		}
		p.Severity = SeverityWarning
		k.problems = append(k.problems, p)
	}
}

// checkExecution checks the names that a spec calls, the inputs of these calls, and its literal output.
func (k *checker) checkExecution(doc *Document) {
	x := doc.Execution()
	var root *place
	if k.codeTools[x.Name] {
		k.report(doc, root.key("name"), ProblemNameTaken, "give it another name", "a tool %s written in code already exists", x.Name)
	}
	if x.Tool.Undo != "" {
		k.checkName(doc, call{kind: callTool, name: x.Tool.Undo, key: "undo"})
	}
	if names := x.Kind.execution().names; names != nil {
		names(k, doc)
	}
	k.checkPreviewRead(doc)
	k.checkPermission(doc)
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
	// Only expressions that read the data of a result can have problems that were not found when the document was read.
	if shaped && (len(doc.Body) == 0 || bytes.Contains(doc.Body, []byte("data"))) {
		k.problems = append(k.problems, CheckShapes(*doc, k.shape)...)
	}
	if len(x.Output) > 0 && len(x.Tool.OutputSchema) > 0 && !x.Kind.SingleStep() {
		output := &contract{raw: x.Tool.OutputSchema, of: "the output_schema"}
		k.checkInput(doc, output, call{input: x.Output, inputKey: "output"})
	}
}

// checkUndo sets the call's tool to the undo tool that the contract of the undone tool names. It returns false if that contract is not
// known. It also returns false if the contract names no undo tool, and reports that.
func (k *checker) checkUndo(doc *Document, c *call) bool {
	known := k.undo(c)
	if known && c.name == "" {
		k.report(doc, c.at(), ProblemMissingKey, "add tool: …", "%s has no undo tool", c.undoes)
	}
	return c.name != ""
}

// undo sets the call's tool to the undo tool that the contract of the undone tool names, and reports whether that contract is known.
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

// shape returns the schema of the result of a tool or spec, if it is known.
func (k *checker) shape(name string) (json.RawMessage, bool) {
	schema := k.outputs[name]
	return schema, len(schema) > 0
}

// checkName reports a call of something that does not exist. It returns false if there is nothing more to check about the call.
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
		case known && x.Kind.HasBackend():
			k.report(doc, c.at(), ProblemUnknownComposition, "write tool: "+c.name, "%s is a %s, not a composition", c.name, x.Kind.Words())
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
		if k.tasks.missing(c.name) {
			hint := cmp.Or(k.suggest("task", c.name, k.tasks.sorted), "add the document of the entity type that has this task")
			k.report(doc, c.at(), ProblemUnknownTask, hint, "no entity type has a task %q", c.name)
		}
		return false
	}
	return true
}

// target returns the contract that a call's input must satisfy, or nil if it is not known.
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
		if len(c.input) > 0 { // an agent without input may not need any, or may ask for it
			return k.inputs["agent "+c.name]
		}
	case callSkill, callTask:
	}
	return nil
}
