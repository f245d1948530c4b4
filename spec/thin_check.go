package spec

import (
	"fmt"
	"slices"

	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/suggest"
)

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
			problem, hint = fmt.Sprintf("no task fills the field %s of %s", name, t.Name), "give its value under creates.fields"
		}
		k.report(doc, at.key("fields").item(i), ProblemUnknownField, hint, "%s", problem)
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
