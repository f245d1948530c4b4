package spec

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/suggest"
)

// relationName matches the name of a relation: its own, or the dotted name of the field that contains it.
var relationName = regexp.MustCompile(`^[a-z][a-zA-Z0-9_]{0,63}(\.[a-z][a-zA-Z0-9_]{0,63}){0,4}$`)

// Limits of a thin tool's entities and of the total length of its expressions. They are low because a person waits for the answer.
const (
	maxThinEntities        = 20
	maxThinExpressionBytes = 16 << 10
)

// thinResult is the JSON Schema of [ThinResult], the result of a thin tool.
const thinResult = `{"type":"object","properties":{` +
	`"entity_id":{"type":"string","description":"The entity that was created; left out when none was."},` +
	`"url":{"type":"string","description":"Where it can be looked at."},` +
	`"session_id":{"type":"string","description":"The session in which its fields fill; left out when none was started."},` +
	`"created":{"type":"boolean","description":"False when an earlier call with the same key made the entity."}},` +
	`"required":["created"],"additionalProperties":false}`

// thinKind returns what is particular to thin tools. A thin tool shows the entity that it creates, unless its document says otherwise.
func thinKind() executionKind {
	return executionKind{
		backend:  true,
		output:   func(Execution) json.RawMessage { return json.RawMessage(thinResult) },
		previews: func(x Execution) bool { return x.Thin().Creates != nil },
		bundle:   func(x Execution) string { return x.Thin().Bundle },
		check:    (*decoder).checkThin, names: (*checker).checkThin, connect: (*graph).connectThin, outline: (*outline).thin, draw: (*drawing).thin,
	}
}

// Thin returns the definition of a thin tool. It is nil for other kinds.
func (x Execution) Thin() *ThinTool {
	t, _ := x.Definition.(*ThinTool) //nolint:errcheck // nil if it is of another kind
	return t
}

// thinToolHead is a document of kind thin_tool.
type thinToolHead struct {
	toolHead
	ThinTool
}

// thin returns the thin tool, with defaults filled in.
func (h thinToolHead) thin() *ThinTool {
	for _, e := range h.Entities {
		if e.Connected != nil {
			setDefault(&e.Connected.Depth, 1)
		}
	}
	return &h.ThinTool
}

// checkThin checks rules that involve more than one key of a thin tool, and then its expressions.
func (d *decoder) checkThin(x Execution) {
	t := x.Thin()
	if !d.has("entities") && !d.has("requires") && !d.has("creates") {
		d.at("", ProblemBadShape, "add creates, with the type of an entity", "the tool does nothing: it looks up no entities, requires nothing and creates nothing")
	}
	if d.has("url") && !d.has("creates") {
		d.at("url", ProblemBadShape, "add creates, or remove url", "the link leads to the created entity, but the tool creates none")
	}
	d.unique("entities", "name", len(t.Entities), func(i int) string { return t.Entities[i].Name })
	for i, e := range t.Entities {
		d.checkWord(indexPath("entities", i)+".name", e.Name)
		if e.Connected != nil {
			d.distinct(indexPath("entities", i)+".connected.types", e.Connected.Types)
		}
	}
	if t.Creates != nil {
		d.checkInput("creates.fields")
		d.checkRelations("creates.relations")
		d.checkList("creates.workspaces")
	}
	if t.Starts != nil {
		d.checkInput("starts.input")
		d.distinct("starts.fields", t.Starts.Fields)
		if !d.has("creates") {
			d.at("starts", ProblemBadShape, "add creates, or remove starts", "an extraction fills the created entity, but the tool creates none")
		}
	}
	d.checkThinExpressions(x)
}

// distinct reports words that occur twice in a list.
func (d *decoder) distinct(path string, words []string) {
	seen := map[string]bool{}
	for i, word := range words {
		if seen[word] {
			d.at(indexPath(path, i), ProblemDuplicateID, "remove one of them", "%q is listed twice", word)
		}
		seen[word] = true
	}
}

// checkRelations checks that a value is a mapping of names to lists. It accepts templates, whose values are not known.
func (d *decoder) checkRelations(path string) {
	d.checkInput(path)
	n := d.places[path]
	if n == nil || n.kind != kindMap {
		return
	}
	for _, e := range n.entries {
		if !relationName.MatchString(e.key) {
			d.at(keyPath(path, e.key), ProblemBadName, "use letters, digits and '_', starting with a lower-case letter; dots lead into objects", "%q is not allowed here", e.key)
		}
		d.checkList(keyPath(path, e.key))
	}
}

// checkList checks that a value, if it is present, is a list of texts or can become one.
func (d *decoder) checkList(path string) {
	n := d.places[path]
	if n == nil || n.kind == kindString && isTemplate(n.json()) {
		return
	}
	if n.kind != kindList {
		hint := `write a list, e.g. ["${input.id}"]`
		d.at(path, ProblemWrongType, hint, "this must be a list, or one expression (${…}) that evaluates to one, not %s", jig.Known(n.kind))
		return
	}
	for i, item := range n.items {
		d.is(item, indexPath(path, i), kindString)
	}
}

// ThinTool is a parsed thin tool without its contract. Templates (${ … }) and CEL expressions read `input`, `entities.<name>` (with
// `id`, `type`, `title`, `content` and `connected`, a list of `{id, type, title}`), `tenant` and `principal`. In URL they also read
// `entity.id` and `session.id`.
type ThinTool struct {
	// Bundle is the bundle that must be installed; empty means none.
	Bundle string `json:"bundle,omitempty" spec:"max=64,form=bundle" jsonschema:"The bundle that must be installed."`
	// Entities are the entities that the tool needs, in the order in which they are looked up.
	Entities []ThinEntity `json:"entities,omitempty" spec:"max=20" jsonschema:"The entities that it reads, in the order in which they are looked up."`
	// Requires are checked in order once all entities have been found. The first one that does not hold rejects the call.
	Requires []ThinRequirement `json:"requires,omitempty" spec:"max=50" jsonschema:"Conditions that must hold once all entities are found, checked in this order."`
	Creates  *ThinCreation     `json:"creates,omitempty" jsonschema:"The entity that it creates; none by default."`
	// Starts is the extraction to start for the created entity; nil for none.
	Starts *ThinStart `json:"starts,omitempty" jsonschema:"The extraction of the created entity; none by default."`
	// URL is a template for the returned link; empty means the worker's default form.
	URL string `json:"url,omitempty" spec:"max=4096" jsonschema:"The link that it returns: a template that also reads entity.id and session.id."`
}

// ThinEntity is an entity that a thin tool needs.
type ThinEntity struct {
	Name string `json:"name" spec:"required,max=64,form=variable" hint:"add e.g. name: engagement" jsonschema:"Its name, unique in the document; read as entities.<name>."`
	// ID is a template for the entity's id. If it yields null or the empty text and Optional is set, the entity is null.
	ID       string `json:"id" spec:"required,min=1,max=4096" hint:"add e.g. id: ${input.engagement_id}" jsonschema:"The entity's id; a template."`
	Type     string `json:"type" spec:"required,max=63,form=slug" hint:"add the entity type that it must have" jsonschema:"The entity type that it must have."`
	Optional bool   `json:"optional,omitempty" jsonschema:"Whether it is optional: it is null if the id is null or empty."`
	// Workspace is a template for the workspace that the entity must be in. If it yields null or the empty text, there is no check.
	Workspace string `json:"workspace,omitempty" spec:"max=4096" jsonschema:"The workspace that it must be in; a template. Not checked if null or empty."`
	// Connected says which connected entities are available as `connected`; nil means none.
	Connected *ThinConnected `json:"connected,omitempty" jsonschema:"Which connected entities are read as connected; none by default."`
}

// ThinConnected selects the entities that are connected with another.
type ThinConnected struct {
	// Types are the entity types that count; empty means all.
	Types []string `json:"types,omitempty" spec:"max=50,form=slug" jsonschema:"The entity types to include; default: all."`
	// Depth is the maximum distance in relations; default 1, at most [entity.MaxConnectedDepth].
	Depth int `json:"depth,omitempty" spec:"min=1,max=10" jsonschema:"How many relations away they may be; default 1."`
	// AtLeast is the number of connected entities required; with fewer, the call is rejected with ReasonInsufficientGraph.
	AtLeast int `json:"at_least,omitempty" spec:"min=0,max=10000" jsonschema:"How many there must be; with fewer, the call is rejected with insufficient_graph."`
}

// ThinRequirement is a condition that must hold for a thin tool to act.
type ThinRequirement struct {
	// Check is a boolean CEL expression.
	Check Expression `json:"check" spec:"required,min=1,max=4096" hint:"add a condition (CEL)" jsonschema:"A condition (CEL) that must hold."`
	// Code is the reason for the rejection, in snake_case: one of the Reason constants of package jig, or one that the author defines.
	Code string `json:"code" spec:"required,max=64,form=reason" hint:"add e.g. code: insufficient_graph" jsonschema:"The reason of the rejection, snake_case."`
	// Message is a template for a message that tells the caller what to do.
	Message string `json:"message,omitempty" spec:"max=4096" jsonschema:"What the caller should do; a template."`
}

// ThinCreation describes the entity that a thin tool creates.
type ThinCreation struct {
	Type string `json:"type" spec:"required,max=63,form=slug" hint:"add the entity type" jsonschema:"The entity type."`
	// Title is a template. Fields is a document of templates that gives the entity's content.
	Title  string          `json:"title,omitempty" spec:"max=4096" jsonschema:"Its title; a template."`
	Fields json.RawMessage `json:"fields,omitempty" spec:"form=mapping" jsonschema:"Its content; texts in it are templates."`
	// Key is a template. A second call with the same key gets the entity and the extraction of the first. If it is empty, each call creates
	// its own entity.
	Key string `json:"key,omitempty" spec:"max=4096" jsonschema:"A template: calls with the same key get the same entity; by default each call creates its own."`
	// Relations and Workspaces are documents of templates: lists of ids by relation name, and a list of workspace names.
	Relations  json.RawMessage `json:"relations,omitempty" spec:"form=mapping" jsonschema:"Lists of entity ids by relation name; texts in them are templates."`
	Workspaces json.RawMessage `json:"workspaces,omitempty" spec:"form=list" jsonschema:"A list of the workspaces that it joins; texts in it are templates."`
}

// ThinStart describes the extraction that a thin tool starts.
type ThinStart struct {
	// Fields are the only fields to fill; empty means all.
	Fields []string `json:"fields,omitempty" spec:"min=1,max=500,form=variable" jsonschema:"The fields to fill; default: all."`
	// Input is a document of templates, available to the tasks as `input`.
	Input json.RawMessage `json:"input,omitempty" spec:"form=mapping" jsonschema:"What the tasks read as input; texts in it are templates."`
}

// ThinResult is the result data of a thin tool that acted.
type ThinResult struct {
	EntityID string `json:"entity_id,omitempty"`
	// URL is a link to the entity.
	URL string `json:"url,omitempty"`
	// SessionID is the session that runs the extraction; empty when none was started.
	SessionID string `json:"session_id,omitempty"`
	// Created is false when an earlier call with the same key made the entity.
	Created bool `json:"created"`
}

// checkThin checks a thin tool against the entity types: the types must exist, the created entity must be able to fit its type, the started
// extraction must fill fields, and expressions must read only fields that exist.
func (k *checker) checkThin(doc *Document) {
	if doc.broken {
		return
	}
	var root *place
	t := doc.Execution().Thin()
	for i, e := range t.Entities {
		at := root.key("entities").item(i)
		k.checkType(doc, at.key("type"), e.Type)
		if e.Connected != nil {
			for j, name := range e.Connected.Types {
				k.checkType(doc, at.key("connected").key("types").item(j), name)
			}
		}
	}
	if t.Creates == nil {
		k.checkThinReads(doc)
		return
	}
	at := root.key("creates")
	if created := k.checkType(doc, at.key("type"), t.Creates.Type); created != nil {
		target := &contract{raw: ContentSchema(createdBy(*created)), of: "an entity of type " + created.Name}
		k.checkInput(doc, target, call{within: at, inputKey: "fields", input: t.Creates.Fields})
		if t.Starts != nil {
			k.checkStarted(doc, *created, t.Starts)
		}
	}
	k.checkThinReads(doc)
}

// createdBy returns a type with the rules for creating an entity: fields that tasks fill or that have a default are not required.
func createdBy(t entity.Type) entity.Type {
	t.Fields = slices.Clone(t.Fields)
	for i := range t.Fields {
		if f := &t.Fields[i]; f.Task != "" || len(f.Default) > 0 {
			f.Required = false
		}
	}
	return t
}

// checkStarted checks that the extraction to start fills something.
func (k *checker) checkStarted(doc *Document, t entity.Type, s *ThinStart) {
	at := (*place)(nil).key("starts")
	var filled []string
	for i := range t.Fields {
		if t.Fields[i].Task != "" {
			filled = append(filled, t.Fields[i].Name)
		}
	}
	if len(t.Tasks) == 0 {
		k.report(doc, at, ProblemBadShape, "remove starts, or give the type tasks", "no task fills an entity of type %s", t.Name)
		return
	}
	for i, name := range s.Fields {
		if slices.Contains(filled, name) {
			continue
		}
		problem := fmt.Sprintf("the type %s has no field %q", t.Name, name)
		hint := suggest.OrKnown(name, filled)
		if slices.ContainsFunc(t.Fields, func(f entity.Field) bool { return f.Name == name }) {
			problem, hint = jig.Templatef("no task fills the field %s of %s", name, t.Name), "give its value under creates.fields"
		}
		k.report(doc, at.key("fields").item(i), ProblemUnknownField, hint, "%s", jig.Words(problem))
	}
}

// checkThinReads checks the expressions of a thin tool against the fields of the entity types. Reading the document has already checked
// them without the entity types.
func (k *checker) checkThinReads(doc *Document) {
	known := false
	types := func(name string) (entity.Type, bool) {
		t := k.types.all[name]
		if t == nil {
			return entity.Type{}, false
		}
		known = true
		return *t, true
	}
	for _, e := range doc.Execution().Thin().Entities {
		types(e.Type)
	}
	if !known {
		return
	}
	d := newDecoder(doc.Path)
	d.places = doc.places
	d.thinExpressions(*doc.Execution(), types)
	k.problems = append(k.problems, d.problems...)
}
