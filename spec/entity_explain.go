package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
)

// EntityTypeExplanation explains to people what an entity type contains and how its tasks fill it.
type EntityTypeExplanation struct {
	spec entity.Type
	g    *taskGraph
	// fills maps tasks to the names of the fields that they fill.
	fills map[string][]string
	tools map[string]jig.Tool
}

func explainEntityType(doc Document, _ []Document, tools []jig.Tool) (text, diagram string) {
	e := ExplainEntityType(*doc.EntityType(), tools...)
	return e.Text(), e.Mermaid()
}

// ExplainEntityType explains an entity type. Given the tools of a catalog, it also says which calls ask a person according to the contracts
// of the tools.
func ExplainEntityType(t entity.Type, tools ...jig.Tool) EntityTypeExplanation {
	e := EntityTypeExplanation{spec: t, g: newTaskGraph(t.Tasks), fills: map[string][]string{}, tools: toolsByName(tools)}
	e.g.sort() // reading the document has reported cycles; their tasks are shown in one layer
	for i := range t.Fields {
		if f := &t.Fields[i]; f.Task != "" {
			e.fills[f.Task] = append(e.fills[f.Task], f.Name)
		}
	}
	return e
}

// layers groups the tasks by how many tasks must end before them, in the order of the document. Layers are only for display: a task starts
// as soon as the tasks that it depends on have ended.
func (e EntityTypeExplanation) layers() [][]int {
	var layers [][]int
	for i, depth := range e.g.depths() {
		at := max(depth-1, 0)
		for len(layers) <= at {
			layers = append(layers, nil)
		}
		layers[at] = append(layers[at], i)
	}
	return layers
}

// Text returns an indented outline for a terminal. It never contains control characters, even if the document does.
func (e EntityTypeExplanation) Text() string {
	o := &outline{tools: e.tools}
	t := e.spec
	o.line(0, "entity type %s%s", t.Name, versionText(t.Version))
	if t.Description != "" {
		o.line(0, "%s", t.Description)
	}
	o.b.WriteByte('\n')
	o.line(0, "fields:")
	o.fields(1, t.Fields)
	if len(t.Tasks) == 0 {
		return o.b.String()
	}
	o.b.WriteByte('\n')
	o.line(0, "tasks, at most %d at once, each as soon as the tasks it depends on have ended:", max(t.MaxParallel, 1))
	for _, layer := range e.layers() {
		for _, i := range layer {
			o.line(1, "%s: %s", t.Tasks[i].ID, strings.Join(e.remarks(i), "; "))
		}
	}
	return o.b.String()
}

// remarks says what a task does, when, and which fields it fills.
func (e EntityTypeExplanation) remarks(i int) []string {
	t := &e.spec.Tasks[i]
	words := []string{taskAction(t)}
	if asks := asksText(e.tools[t.Use]); asks != "" && t.Kind == entity.TaskTool {
		words = append(words, asks)
	}
	if after := e.after(i); len(after) > 0 {
		words = append(words, "after "+strings.Join(after, ", "))
	}
	if t.Among != "" {
		words = append(words, "which may cite only "+t.Among)
	}
	if t.When != "" {
		words = append(words, "when "+t.When)
	}
	if t.Attempts > 1 {
		words = append(words, fmt.Sprintf("up to %d attempts", t.Attempts))
		if t.Kind == entity.TaskTool && retriesRarely(e.tools[t.Use]) {
			words = append(words, retryText)
		}
	}
	if fills := e.fills[t.ID]; len(fills) > 0 {
		words = append(words, "fills "+strings.Join(fills, ", "))
	}
	return words
}

// after names the tasks that a task depends on, in the order of the document.
func (e EntityTypeExplanation) after(i int) []string {
	var names []string
	for _, need := range slices.Sorted(slices.Values(e.g.needs[i])) {
		names = append(names, e.spec.Tasks[need].ID)
	}
	return names
}

func taskAction(t *entity.Task) string {
	switch t.Kind {
	case entity.TaskCompute:
		return "compute " + t.Compute
	case entity.TaskTool:
		return "call " + t.Use
	case entity.TaskPrompt:
		return "ask " + t.Use
	case entity.TaskComposition:
		return "run " + t.Use
	case entity.TaskAgent:
		return "start the agent " + t.Use
	case entity.TaskCitations:
		return "check the claims of " + t.Claims
	}
	return "do nothing"
}

func (o *outline) fields(depth int, fields []entity.Field) {
	for i := range fields {
		f := &fields[i]
		o.line(depth, "%s: %s", f.Name, strings.Join(fieldWords(f), ", "))
		o.inner(depth+1, f)
	}
}

// inner writes the fields inside a field, including those of a list's items.
func (o *outline) inner(depth int, f *entity.Field) {
	o.fields(depth, f.Fields)
	if f.Items != nil {
		o.inner(depth, f.Items)
	}
}

// fieldWords describes a field.
func fieldWords(f *entity.Field) []string {
	words := []string{typeWords(f)}
	if f.Required {
		words = append(words, "required")
	}
	if len(f.Default) > 0 {
		words = append(words, "default "+string(f.Default))
	}
	if f.Task != "" {
		words = append(words, "filled by "+f.Task)
	}
	return words
}

func typeWords(f *entity.Field) string {
	switch {
	case f.Type == entity.FieldEnum:
		const shown = 10
		if n := len(f.Options); n > shown {
			return fmt.Sprintf("%s and %d more", strings.Join(f.Options[:shown], " | "), n-shown)
		}
		return strings.Join(f.Options, " | ")
	case f.Type == entity.FieldRelation && f.Many:
		return "relations to " + f.Target
	case f.Type == entity.FieldRelation:
		return "relation to " + f.Target
	case f.Type == entity.FieldArray && f.Items != nil:
		return "list of " + typeWords(f.Items)
	case f.Type == entity.FieldNumber && f.Integer:
		return "whole number"
	case f.Type == entity.FieldDate && f.Time:
		return "date and time"
	}
	return string(f.Type)
}

// Mermaid draws the tasks as a flowchart, top down, with an arrow from each task to the tasks that depend on it and to the field that it
// fills. The frames are the layers, which are only for display.
func (e EntityTypeExplanation) Mermaid() string {
	d := &drawing{tools: e.tools, depth: 1}
	start := d.node(roundEnds, "entity type "+e.spec.Name)
	nodes := make([]string, len(e.spec.Tasks))
	for n, layer := range e.layers() {
		d.frame(fmt.Sprintf("layer %d", n+1), func() {
			for _, i := range layer {
				t := &e.spec.Tasks[i]
				nodes[i] = d.node(taskShape(t.Kind), t.ID, taskAction(t))
			}
		})
	}
	for i := range e.spec.Tasks {
		var from []exit
		for _, need := range e.g.needs[i] {
			from = append(from, exit{from: nodes[need], label: conditionLabel(e.spec.Tasks[i].When)})
		}
		if len(from) == 0 {
			from = []exit{{from: start, label: conditionLabel(e.spec.Tasks[i].When)}}
		}
		d.link(from, nodes[i])
		for _, field := range e.fills[e.spec.Tasks[i].ID] {
			d.link([]exit{{from: nodes[i], dashed: true}}, d.node(slanted, field))
		}
	}
	return "flowchart TD\n" + d.nodes.String() + strings.Join(d.edges, "")
}

func conditionLabel(when string) string {
	if when == "" {
		return ""
	}
	return "when " + when
}

func taskShape(k entity.TaskKind) shape {
	switch k {
	case entity.TaskCompute:
		return roundEnds
	case entity.TaskCitations:
		return hexagon
	case entity.TaskTool, entity.TaskPrompt, entity.TaskComposition, entity.TaskAgent:
	}
	return box
}
