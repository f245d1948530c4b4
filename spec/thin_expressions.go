package spec

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/expr"
)

// ThinShapes returns the JSON Schemas of the values that the expressions of a thin tool can read, by the path of each value. types looks up
// known entity types by name; nil means that no types are known.
func ThinShapes(x Execution, types func(name string) (entity.Type, bool)) expr.Shapes {
	text := jsonObject{{"type", "string"}}
	texts := jsonObject{{"type", "array"}, {"items", text}}
	shapes := expr.Shapes{
		"entities":  thinNames(x.Thin().Entities),
		"principal": writeJSON(closedObject(jsonObject{{"id", text}, {"groups", texts}, {"permissions", texts}})),
		"entity":    writeJSON(closedObject(jsonObject{{"id", text}})),
		"session":   writeJSON(closedObject(jsonObject{{"id", text}})),
	}
	for _, e := range x.Thin().Entities {
		shapes["entities."+e.Name] = writeJSON(thinEntityShape(e, types))
	}
	if len(x.Tool.InputSchema) > 0 {
		shapes["input"] = x.Tool.InputSchema
	}
	return shapes
}

// thinNames returns the shape of `entities`: the names of the entities that can be read. Separate shapes describe the entities themselves.
func thinNames(found []ThinEntity) json.RawMessage {
	names := jsonObject{}
	for _, e := range found {
		names = append(names, jsonMember{e.Name, jsonObject{}})
	}
	return writeJSON(closedObject(names))
}

// thinEntityShape returns the known shape of an entity. The shape includes connected entities only if the document has the key connected.
func thinEntityShape(e ThinEntity, types func(name string) (entity.Type, bool)) jsonObject {
	text := jsonObject{{"type", "string"}}
	content := jsonObject{{"type", "object"}}
	if types != nil {
		if t, known := types(e.Type); known {
			content = contentShape(t.Fields)
		}
	}
	members := jsonObject{{"id", text}, {"type", text}, {"title", text}, {"content", content}}
	if e.Connected != nil {
		one := closedObject(jsonObject{{"id", text}, {"type", text}, {"title", text}})
		members = append(members, jsonMember{"connected", jsonObject{{"type", "array"}, {"items", one}}})
	}
	shape := closedObject(members)
	if e.Optional {
		shape[0].value = []any{"object", "null"}
	}
	return shape
}

// onlyEntities returns the shapes for a place where only some of the entities can be read.
func onlyEntities(whole expr.Shapes, found []ThinEntity) expr.Shapes {
	some := expr.Shapes{"entities": thinNames(found)}
	for path, shape := range whole {
		name, isEntity := strings.CutPrefix(path, "entities.")
		if path != "entities" && (!isEntity || slices.ContainsFunc(found, func(e ThinEntity) bool { return e.Name == name })) {
			some[path] = shape
		}
	}
	return some
}

func closedObject(properties jsonObject) jsonObject {
	return jsonObject{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}
}

func contentShape(fields []entity.Field) jsonObject {
	content := jsonObject{}
	for i := range fields {
		content = append(content, jsonMember{fields[i].Name, fieldSchema(&fields[i], false)})
	}
	return closedObject(content)
}

// thinSites checks the expressions of a thin tool.
type thinSites struct {
	compiler
	shapes expr.Shapes
	before int
	wrong  int
}

// checkThinExpressions checks that expressions compile, read only values that can exist, and give values of the required types.
func (d *decoder) checkThinExpressions(x Execution) {
	if len(x.Thin().Entities) > maxThinEntities {
		return // reported when the document was read; checking them all would take time that is quadratic in their number
	}
	var all weight
	if all.add(d.places[""]); all.count > maxExpressions || all.bytes > maxThinExpressionBytes {
		d.at("", ProblemTooMany, "move some of it into a composition that a task runs",
			"the document has more than %d expressions or %d bytes of expressions, or too many loops in one expression", maxExpressions, maxThinExpressionBytes)
		return
	}
	d.thinExpressions(x, nil)
}

// thinExpressions checks the expressions of a thin tool. types is as for [ThinShapes].
func (d *decoder) thinExpressions(x Execution, types func(name string) (entity.Type, bool)) {
	env, err := expr.ThinUse().Env()
	if err != nil {
		d.at("", ProblemBadCEL, "", "expressions cannot be checked: %v", err)
		return
	}
	linkEnv, err := expr.ThinURLUse().Env()
	if err != nil {
		d.at("", ProblemBadCEL, "", "expressions cannot be checked: %v", err)
		return
	}
	s := &thinSites{compiler: compiler{decoder: d, env: env}, before: len(d.problems)}
	whole := ThinShapes(x, types)
	for i := range x.Thin().Entities {
		path := indexPath("entities", i)
		s.shapes = onlyEntities(whole, x.Thin().Entities[:i]) // the entities before it have been found
		s.text(path+".id", true)
		s.text(path+".workspace", true)
	}
	s.shapes = whole
	for i, r := range x.Thin().Requires {
		path := indexPath("requires", i)
		s.source(path+".check", string(r.Check), expr.Bool)
		s.text(path+".message", false)
	}
	if c := x.Thin().Creates; c != nil {
		s.text("creates.title", true)
		s.document("creates.fields", "object")
		s.text("creates.key", true)
		s.relations("creates.relations")
		s.list("creates.workspaces")
	}
	s.document("starts.input", "object")
	s.env = linkEnv
	s.text("url", false)
}

func (s *thinSites) enough() bool {
	return len(s.problems)-s.before >= maxExpressionProblems || s.wrong > maxWrongBytes
}

func (s *thinSites) refuse(path, source string, err error) {
	s.wrong += min(len(source), maxExpression)
	s.report(path, err)
}

func (s *thinSites) source(path, source string, want expr.Type) {
	if source == "" || s.enough() {
		return
	}
	if err := s.env.Check(source, want, s.shapes); err != nil {
		s.refuse(path, source, err)
	}
}

// text checks a template that gives a text. If nullable, it may also give null.
func (s *thinSites) text(path string, nullable bool) {
	n := s.places[path]
	if n == nil || n.kind != kindString {
		return
	}
	want := []string{"string"}
	if nullable {
		want = append(want, "null")
	}
	s.template(path, n.text, want...)
}

// template checks a template whose value must have one of these JSON Schema types, or any type if none are given.
func (s *thinSites) template(path, source string, want ...string) {
	if !strings.Contains(source, "${") || s.enough() {
		return
	}
	described, err := s.env.DescribeTemplate(source, s.shapes)
	if err != nil {
		s.refuse(path, source, err)
		return
	}
	if have, never := neverOf(described, want); never {
		s.wrong += min(len(source), maxExpression)
		s.at(path, ProblemBadCEL, typeHint(want[0]), "this gives %s where %s is needed", jig.Known(have), jig.Known(typeWord(want[0])))
	}
}

// typeHint shows how to write a value of a JSON Schema type.
func typeHint(name string) string {
	switch name {
	case "array":
		return `write a list, e.g. ["${…}"]`
	case "object":
		return `write a mapping, e.g. {name: "${…}"}`
	}
	return "convert it, e.g. ${string(…)}, or read something else"
}

// typeWord names a JSON Schema type in a sentence.
func typeWord(name string) string {
	switch name {
	case "string":
		return "a text"
	case "array":
		return "a list"
	case "object":
		return "a mapping"
	case "boolean":
		return "true or false"
	case "null":
		return "null"
	}
	return "a number"
}

// neverOf reports whether a value with the given schema cannot have any of the wanted types, and returns the type that it has instead.
func neverOf(described json.RawMessage, want []string) (have string, never bool) {
	var schema struct {
		Type any `json:"type"`
	}
	if len(want) == 0 || json.Unmarshal(described, &schema) != nil || schema.Type == nil {
		return "", false
	}
	types := list(schema.Type)
	if one, ok := schema.Type.(string); ok {
		types = []any{one}
	}
	var words []string
	for _, t := range types {
		name, ok := t.(string)
		if !ok {
			return "", false
		}
		for _, wanted := range want {
			if name == wanted {
				return "", false
			}
		}
		words = append(words, typeWord(name))
	}
	return strings.Join(words, " or "), len(words) > 0
}

// document checks every text of a value as a template. If the value is itself a template, it must evaluate to one of the types in want.
func (s *thinSites) document(path string, want ...string) {
	if n := s.places[path]; n != nil {
		s.node(path, n, want...)
	}
}

func (s *thinSites) node(path string, n *node, want ...string) {
	for i, item := range n.items {
		s.node(indexPath(path, i), item)
	}
	for _, e := range n.entries {
		s.node(keyPath(path, e.key), e.value)
	}
	if n.kind == kindString {
		s.template(path, n.text, want...)
	}
}

// list checks a list whose items are texts.
func (s *thinSites) list(path string) {
	n := s.places[path]
	if n == nil {
		return
	}
	if n.kind == kindString {
		s.template(path, n.text, "array")
	}
	for i := range n.items {
		s.text(indexPath(path, i), false)
	}
}

func (s *thinSites) relations(path string) {
	n := s.places[path]
	if n == nil {
		return
	}
	if n.kind == kindString {
		s.template(path, n.text, "object")
	}
	for _, e := range n.entries {
		s.list(keyPath(path, e.key))
	}
}
