package spec

import (
	"encoding/json"
	"strings"

	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/suggest"
)

// maxTaskExpressionBytes limits the total length of an entity type's expressions, which is about 128 bytes for each of MaxTasks tasks.
const maxTaskExpressionBytes = 128 << 10

// TaskShapes returns the JSON Schemas of the values that the expressions of an entity type's tasks can read, by the path of each value.
func TaskShapes(t entity.Type) expr.Shapes {
	const text = `{"type":"string"}`
	content, values := jsonObject{}, jsonObject{}
	shapes := expr.Shapes{}
	filled := map[string]json.RawMessage{}
	for i := range t.Fields {
		schema := writeJSON(fieldSchema(&t.Fields[i], false))
		content = append(content, jsonMember{t.Fields[i].Name, schema})
		if t.Fields[i].Task != "" {
			filled[t.Fields[i].Task] = schema
		}
	}
	for _, task := range t.Tasks {
		values = append(values, jsonMember{task.ID, jsonObject{}})
		switch {
		case len(filled[task.ID]) > 0:
			shapes["tasks."+task.ID] = filled[task.ID]
		case len(task.OutputSchema) > 0:
			shapes["tasks."+task.ID] = task.OutputSchema
		}
	}
	closed := func(properties jsonObject) jsonObject {
		return jsonObject{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}
	}
	shapes["entity"] = writeJSON(closed(jsonObject{
		{"id", json.RawMessage(text)}, {"type", json.RawMessage(text)}, {"title", json.RawMessage(text)}, {"content", closed(content)},
	}))
	shapes["tasks"] = writeJSON(closed(values))
	return shapes
}

// taskSites checks the expressions of an entity type's tasks.
type taskSites struct {
	compiler
	t      entity.Type
	g      *taskGraph
	shapes expr.Shapes
	// filler maps fields to the tasks that fill them, and fills maps tasks to their fields.
	filler map[string]string
	fills  map[string]*entity.Field
	before int
	wrong  int
}

// checkTaskExpressions checks that expressions compile, and that they read only what their task depends on.
func (d *decoder) checkTaskExpressions(t entity.Type, g *taskGraph) {
	if len(t.Tasks) == 0 {
		return
	}
	var all weight
	all.add(d.places["tasks"])
	for i := range t.Tasks {
		for _, key := range []string{"compute", "value", "sources", "among"} {
			if n := d.places[indexPath("tasks", i)+"."+key]; n != nil {
				all.expression(n.text)
			}
		}
	}
	if all.count > maxExpressions || all.bytes > maxTaskExpressionBytes {
		d.at("tasks", ProblemTooMany, "move some of them into compositions",
			"the tasks have more than %d expressions or %d bytes of expressions, or too many loops in one expression", maxExpressions, maxTaskExpressionBytes)
		return
	}
	env, err := expr.TaskUse().Env()
	if err != nil {
		d.at("tasks", ProblemBadCEL, "", "expressions cannot be checked: %v", err)
		return
	}
	s := &taskSites{
		compiler: compiler{decoder: d, env: env}, t: t, g: g, shapes: TaskShapes(t), before: len(d.problems),
		filler: map[string]string{}, fills: map[string]*entity.Field{},
	}
	for i := range t.Fields {
		if f := &t.Fields[i]; f.Task != "" {
			s.filler[f.Name], s.fills[f.Task] = f.Task, f
		}
	}
	for i := range t.Tasks {
		s.task(i)
	}
}

func (s *taskSites) task(i int) {
	t, path := &s.t.Tasks[i], indexPath("tasks", i)
	gives := valueType(s.fills[t.ID])
	s.source(i, path+".when", t.When, expr.Bool, false)
	s.source(i, path+".compute", t.Compute, gives, false)
	if n := s.places[path+".input"]; n != nil {
		s.input(i, path+".input", n)
	}
	s.source(i, path+".value", t.Value, gives, true)
	s.source(i, path+".sources", t.Sources, expr.List, true)
	s.source(i, path+".among", t.Among, expr.List, false)
}

// valueType returns the type that an expression must give for a field. It is Any if several CEL types are possible.
func valueType(f *entity.Field) expr.Type {
	if f == nil {
		return expr.Any
	}
	switch f.Type {
	case entity.FieldBoolean:
		return expr.Bool
	case entity.FieldText, entity.FieldEnum, entity.FieldURL, entity.FieldEmail, entity.FieldPhone, entity.FieldMedia:
		return expr.String
	case entity.FieldObject:
		return expr.Map
	case entity.FieldArray:
		return expr.List
	case entity.FieldRelation:
		if f.Many {
			return expr.List
		}
		return expr.String
	case entity.FieldNumber, entity.FieldDate: // an int or a double; a text or a timestamp
	}
	return expr.Any
}

func (s *taskSites) enough() bool {
	return len(s.problems)-s.before >= maxExpressionProblems || s.wrong > maxWrongBytes
}

// source checks an expression. If result is true, the expression may read the result of the call.
func (s *taskSites) source(i int, path, source string, want expr.Type, result bool) {
	if source == "" || s.enough() {
		return
	}
	program, err := s.env.CompileAs(source, want)
	if err != nil {
		s.refuse(path, source, err)
		return
	}
	if s.reads(i, path, program.Reads(), result) {
		if err := program.Check(s.shapes); err != nil {
			s.refuse(path, source, err)
		}
	}
}

// input checks every text of an input as a template.
func (s *taskSites) input(i int, path string, n *node) {
	for at, item := range n.items {
		s.input(i, indexPath(path, at), item)
	}
	for _, e := range n.entries {
		s.input(i, keyPath(path, e.key), e.value)
	}
	if n.kind != kindString || !strings.Contains(n.text, "${") || s.enough() {
		return
	}
	template, err := s.env.Template(n.text)
	if err != nil {
		s.refuse(path, n.text, err)
		return
	}
	if s.reads(i, path, template.Reads(), false) {
		if err := template.Check(s.shapes); err != nil {
			s.refuse(path, n.text, err)
		}
	}
}

func (s *taskSites) refuse(path, source string, err error) {
	s.wrong += min(len(source), maxExpression)
	s.report(path, err)
}

// reads reports everything that an expression reads but that its task is not allowed to read. It returns whether all reads are allowed.
func (s *taskSites) reads(i int, path string, r expr.Reads, result bool) bool {
	before := len(s.problems)
	if r.Has("result") && !result {
		s.at(path, ProblemOutOfScope, "read it in value or sources", "result is the result of the call, which has not been made at this point")
	}
	if r.AllTasks {
		s.at(path, ProblemBadCEL, "write tasks.<id>", "the tasks that an expression reads must be named literally")
	}
	for _, id := range r.Tasks {
		if _, known := s.g.index[id]; !known {
			s.at(path, ProblemUnknownTask, suggest.OrKnown(id, s.g.ids()), "there is no task %q", id)
			continue
		}
		s.depends(i, path, id, "tasks."+id)
	}
	for _, name := range r.Content {
		if id := s.filler[name]; id != "" {
			s.depends(i, path, id, "entity.content."+name+", which "+id+" fills,")
		}
	}
	return len(s.problems) == before
}

// depends checks that a task depends on another task whose value it reads.
func (s *taskSites) depends(i int, path, id, what string) {
	other, known := s.g.index[id]
	if !known || len(s.g.before) == 0 {
		return // reported already
	}
	switch own := s.t.Tasks[i].ID; {
	case other == i:
		s.at(path, ProblemStepOrder, "read another field", "this reads %s itself, before it has a value", strings.TrimSuffix(what, ", which "+id+" fills,"))
	case !s.g.before[i].has(other):
		s.at(path, ProblemStepOrder, "add "+id+" to the depends_on of "+own, "this reads %s, but %s does not depend on it", what, own)
	}
}
