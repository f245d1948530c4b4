package spec

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig/internal/expr"
)

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
