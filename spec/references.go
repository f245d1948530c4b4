package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/suggest"
)

// reads checks that everything that an expression reads is available at its site.
func (s *sites) reads(at site, path string, r expr.Reads) {
	for _, name := range r.Names {
		s.checkName(at, path, name)
	}
	for _, id := range r.Steps {
		s.checkReference(at, path, id)
	}
	for _, name := range r.Vars {
		s.checkVariable(at, path, name)
	}
}

// checkName reports a name that is not defined at the site.
func (s *sites) checkName(at site, path, name string) {
	switch name {
	case "item", "index":
		if !at.inLoop() {
			s.at(path, ProblemOutOfScope, "give the step a for_each, or move it into a loop", "%s is read outside a loop", name)
		}
	case "event":
		if !at.awaited {
			s.at(path, ProblemOutOfScope, "read the step that waits: steps.<id>.data", "event is read outside wait_for.when")
		}
	case "error":
		if !at.handles(name) {
			s.at(path, ProblemOutOfScope, "read it in on_error or retry; of a step that may fail, read steps.<id>.error",
				"error is read where no error exists")
		}
	default:
		if slices.Contains(s.names, name) && !at.handles(name) {
			s.at(path, ProblemOutOfScope, "read it in the on_error that names it", "%s is read outside the on_error that names it", name)
		}
	}
}

// inLoop reports whether item and index are available at the site.
func (at site) inLoop() bool {
	if at.step == nil {
		return false
	}
	for p := at.step; p != nil; p = p.outer {
		if p.ForEach != "" && (p != at.step || at.item) {
			return true
		}
	}
	return false
}

// handles reports whether an error is available under a name: error, or the name that the handler gives it.
func (at site) handles(name string) bool {
	named := func(p *placed) bool { return name == "error" || p.OnError != nil && p.OnError.As == name }
	if at.failed && (name == "error" || at.caught && named(at.step)) {
		return true
	}
	for p := at.step; p != nil; p = p.outer {
		if p.block.key == blockCatch && named(p.outer) {
			return true
		}
	}
	return false
}

// relation is how a step relates to an expression that reads it.
type relation int

const (
	isEarlier relation = iota
	// A step that isLater has no result yet. One that isBeside runs in parallel and may have a result. One that isAround contains the
	// expression and has not ended. isSelf is the expression's own step.
	isLater
	isBeside
	isAround
	isSelf
)

// relate returns how a step relates to an expression, and the outermost loop around the step that does not contain the expression.
func (at site) relate(to *placed) (relation, *placed) {
	if at.step == nil {
		return isEarlier, loopAround(to.chain()[:to.depth-1])
	}
	here, there := at.step.chain(), to.chain()
	common := 0
	for common < len(here) && common < len(there) && here[common] == there[common] {
		common++
	}
	switch {
	case common == len(here) && common == len(there):
		if at.own {
			return isEarlier, nil
		}
		return isSelf, nil
	case common == len(there):
		if here[common].block.key == blockCatch {
			return isEarlier, nil // a catch can read the failed result
		}
		return isAround, nil
	case common == len(here):
		// The step is inside a block of the expression's own step.
		if !at.done || there[common].block.key == blockCatch {
			return isLater, nil
		}
		return isEarlier, loopAround(there[common : len(there)-1])
	}
	a, b := here[common], there[common]
	barrier := loopAround(there[common : len(there)-1])
	switch {
	case a.block != b.block:
		// Only one branch of a switch runs. A catch runs after the steps whose errors it handles.
		if b.block.key == blockCatch {
			return isLater, nil
		}
		return isEarlier, barrier
	case a.block.key == blockParallel:
		return isBeside, nil
	case b.index > a.index:
		return isLater, nil
	}
	return isEarlier, barrier
}

// loopAround returns the outermost loop of a chain, or nil if there is none.
func loopAround(chain []*placed) *placed {
	if i := slices.IndexFunc(chain, func(p *placed) bool { return p.ForEach != "" }); i >= 0 {
		return chain[i]
	}
	return nil
}

// checkReference reports a reference to a step that cannot be read at the site.
func (s *sites) checkReference(at site, path, id string) {
	step, ok := s.ids[id]
	if !ok {
		hint := suggest.OrKnown(id, slices.Collect(maps.Keys(s.ids)))
		if hint == "" {
			hint = "give the intended step this id"
		}
		s.at(path, ProblemUnknownStep, hint, "there is no step %q", id)
		return
	}
	how, loop := at.relate(step)
	switch how {
	case isLater:
		s.at(path, ProblemStepOrder, "move it below that step", "the step %q comes later and has no result yet", id)
	case isBeside:
		s.at(path, ProblemStepOrder, "read it after the parallel block", "the step %q runs at the same time", id)
	case isAround:
		s.at(path, ProblemStepOrder, "read the steps in it", "the step %q has not ended here: this is part of it", id)
	case isSelf:
		s.at(path, ProblemStepOrder, "remove it", "a step cannot read its own result")
	case isEarlier:
		if loop != nil {
			s.at(path, ProblemOutOfScope, loop.readHint(step), "the step %q has a result for each item of the loop %q", id, loop.ID)
		}
	}
}

// readHint says how to read a step inside a loop from outside.
func (p *placed) readHint(inner *placed) string {
	if inner.outer == p && inner.block.key == blockSteps && p.Output == nil {
		return fmt.Sprintf("read steps.%s[i].data.%s", p.ID, inner.ID)
	}
	return fmt.Sprintf("read steps.%s[i]", p.ID)
}

// checkVariable reports a variable that no earlier step has set.
func (s *sites) checkVariable(at site, path, name string) {
	setters := s.sets[name]
	if len(setters) == 0 {
		hint := suggest.OrKnown(name, slices.Collect(maps.Keys(s.sets)))
		if hint == "" {
			hint = jig.Templatef("add a step set: {%s: …} before", name)
		}
		s.at(path, ProblemUnknownVar, hint, "no step sets the variable %q", name)
		return
	}
	for _, setter := range setters {
		if how, _ := at.relate(setter); how == isEarlier {
			return
		}
	}
	s.at(path, ProblemUnknownVar, "move it below the set", "no step sets the variable %q before this", name)
}

// stepShapes holds the known shapes of the values that expressions read. It grows step by step in the order of the document.
type stepShapes struct {
	tools Shapes
	// known maps the paths of package expr (input, steps.<id>, vars.<name>) to shapes. items maps loops to the shapes of their items.
	known expr.Shapes
	items map[*placed]json.RawMessage
	// errors lists the names that handlers give to errors.
	errors []string
}

// The error and the event that expressions read. All of their members are always present.
var (
	errorShape = json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"code":{"type":"string"},
		"message":{"type":"string"},"field":{"type":"string"},"hint":{"type":"string"},"reason":{"type":"string"}}}`)
	eventShape = json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"name":{"type":"string"},"data":{}}}`)
)

func newStepShapes(input json.RawMessage, tools Shapes, errors []string) stepShapes {
	known := expr.Shapes{}
	if len(input) > 0 {
		known["input"] = input
	}
	return stepShapes{tools: tools, known: known, items: map[*placed]json.RawMessage{}, errors: errors}
}

// at returns the shapes that are known at a site. The map is valid until the next call.
func (k stepShapes) at(at site) expr.Shapes {
	maps.DeleteFunc(k.known, func(path string, _ json.RawMessage) bool {
		return !strings.Contains(path, ".") && path != "input"
	})
	for _, name := range append([]string{"error"}, k.errors...) {
		if at.handles(name) {
			k.known[name] = errorShape
		}
	}
	if at.awaited {
		k.known["event"] = eventShape
	}
	for p := at.step; p != nil; p = p.outer {
		if p.ForEach != "" && (p != at.step || at.item) {
			if items, ok := k.items[p]; ok {
				k.known["item"] = items
			}
			break
		}
	}
	return k.known
}

// loop records the shape of a loop's items.
func (s *sites) loop(p *placed) {
	described, err := s.env.Describe(string(p.ForEach), s.shapes.at(site{step: p}))
	var list struct {
		Items json.RawMessage `json:"items"`
	}
	if err == nil && json.Unmarshal(described, &list) == nil && list.Items != nil {
		s.shapes.items[p] = list.Items
	}
}

// ended records the shapes of a step's result and of the variables that the step sets.
func (s *sites) ended(p *placed, data json.RawMessage) {
	if n := s.places[expr.JoinPath(p.path, "set")]; p.Set != nil && n != nil {
		for _, e := range n.entries {
			delete(s.shapes.known, "vars."+e.key)
			if len(s.sets[e.key]) == 1 {
				s.shapes.known["vars."+e.key] = s.describe(e.value, site{step: p, item: true})
			}
		}
	}
	if p.ID == "" {
		return
	}
	result := expr.ResultShape(data)
	if p.ForEach != "" {
		result = expr.ListShape(result)
	}
	s.shapes.known["steps."+p.ID] = result
}

// data returns the shape of a step's data or, if the step is a loop, of one item's data. It is empty if nothing is known.
func (s *sites) data(p *placed) json.RawMessage {
	switch {
	case p.Prompt != nil:
		return p.Prompt.shape()
	case p.Task != nil && s.shapes.tools != nil:
		if output, ok := s.shapes.tools(p.Task.Tool()); ok {
			return output
		}
	case p.Tool != "" || p.Composition != "":
		if s.shapes.tools == nil {
			return nil
		}
		if output, ok := s.shapes.tools(p.Tool + p.Composition); ok {
			return output
		}
	case p.Output != nil:
		if n := s.places[expr.JoinPath(p.path, "output")]; n != nil {
			return s.describe(n, site{step: p, item: true, done: true})
		}
	case len(p.Steps) > 0 || len(p.Parallel) > 0:
		return s.results(slices.Concat(p.Steps, p.Parallel))
	}
	return nil
}

// results returns the shape of the data of a block without an output, and of parallel: the results of the steps by id.
func (s *sites) results(steps []Step) json.RawMessage {
	properties := map[string]json.RawMessage{}
	for _, step := range steps {
		if known, ok := s.shapes.known["steps."+step.ID]; ok {
			properties[step.ID] = known
		}
	}
	raw, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "additionalProperties": true})
	if err != nil {
		return nil
	}
	return raw
}

// describe returns the known shape of a value whose texts are templates.
func (s *sites) describe(n *node, at site) json.RawMessage {
	switch n.kind {
	case kindString:
		if described, err := s.env.DescribeTemplate(n.text, s.shapes.at(at)); err == nil {
			return described
		}
	case kindMap:
		properties := make(map[string]json.RawMessage, len(n.entries))
		for _, e := range n.entries {
			properties[e.key] = s.describe(e.value, at)
		}
		if raw, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "additionalProperties": false}); err == nil {
			return raw
		}
	case kindBool:
		return json.RawMessage(`{"type":"boolean"}`)
	case kindInt:
		return json.RawMessage(`{"type":"integer"}`)
	case kindFloat:
		return json.RawMessage(`{"type":"number"}`)
	case kindList:
		return json.RawMessage(`{"type":"array"}`)
	case kindNull, kindBroken:
	}
	return json.RawMessage(`{}`)
}

// within reports whether a step is inside a block of another step.
func (p *placed) within(other *placed) bool {
	return slices.Contains(p.chain()[:p.depth-1], other)
}
