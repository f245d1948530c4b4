package spec

import (
	"fmt"
	"strings"

	"github.com/jig-run/jig"
)

// thin writes what a thin tool does, step by step.
func (o *outline) thin(x Execution) {
	t := x.Thin()
	if t.Bundle != "" {
		o.line(0, "it needs the bundle %s", t.Bundle)
	}
	if len(t.Entities) > 0 {
		o.line(0, "it looks up:")
	}
	for i := range t.Entities {
		e := &t.Entities[i]
		o.line(1, "%s: %s", e.Name, lookupText(e))
		for _, remark := range lookupRemarks(e) {
			o.line(2, "%s", remark)
		}
	}
	if len(t.Requires) > 0 {
		o.line(0, "it rejects the call unless:")
	}
	for _, r := range t.Requires {
		o.line(1, "%s (else %s)", r.Check, r.Code)
		if r.Message != "" {
			o.line(2, "%s", r.Message)
		}
	}
	if c := t.Creates; c != nil {
		o.line(0, "it creates %s", creationText(c))
		for _, part := range []struct {
			name string
			raw  []byte
		}{{"fields", c.Fields}, {"relations", c.Relations}, {"workspaces", c.Workspaces}} {
			if len(part.raw) > 0 {
				o.line(1, "%s %s", part.name, part.raw)
			}
		}
	}
	if t.Starts != nil {
		o.line(0, "it starts the extraction of it: %s", startText(t.Starts))
		if len(t.Starts.Input) > 0 {
			o.line(1, "input %s", t.Starts.Input)
		}
	}
	if t.Creates == nil {
		o.line(0, "it creates nothing")
		return
	}
	o.line(0, "it returns the entity's id at once, with a link%s", linkText(t.URL))
}

func lookupText(e *ThinEntity) string {
	text := "the " + e.Type + " " + e.ID
	if e.Optional {
		text += ", when there is one"
	}
	return text
}

// lookupRemarks says what else must hold for an entity.
func lookupRemarks(e *ThinEntity) []string {
	var remarks []string
	if e.Workspace != "" {
		remarks = append(remarks, "it must be in the workspace "+e.Workspace)
	}
	if c := e.Connected; c != nil {
		how := "directly"
		if c.Depth > 1 {
			how = fmt.Sprintf("over at most %d relations", c.Depth)
		}
		remark := "and the entities connected to it " + how
		if len(c.Types) > 0 {
			remark += ", of type " + strings.Join(c.Types, " or ")
		}
		if c.AtLeast > 0 {
			remark += fmt.Sprintf(": at least %d (else %s)", c.AtLeast, jig.ReasonInsufficientGraph)
		}
		remarks = append(remarks, remark)
	}
	return remarks
}

func creationText(c *ThinCreation) string {
	text := "an entity of type " + c.Type
	if c.Title != "" {
		text += ": " + c.Title
	}
	if c.Key != "" {
		text += "; once for each key " + c.Key
	}
	return text
}

func startText(s *ThinStart) string {
	if len(s.Fields) == 0 {
		return "all of its fields"
	}
	return strings.Join(s.Fields, ", ") + " alone"
}

func linkText(url string) string {
	if url == "" {
		return ""
	}
	return ": " + url
}

// thin draws a thin tool: lookups, a diamond for each requirement with the rejection beside it, and what is created and started.
func (d *drawing) thin(x Execution, in []exit) []exit {
	t := x.Thin()
	step := func(s shape, lines ...string) {
		to := d.node(s, lines...)
		d.link(in, to)
		in = []exit{{from: to}}
	}
	for i := range t.Entities {
		step(box, "look up "+lookupText(&t.Entities[i]), strings.Join(lookupRemarks(&t.Entities[i]), "; "))
	}
	for _, r := range t.Requires {
		step(diamond, string(r.Check))
		d.link([]exit{{from: in[0].from, label: "no"}}, d.node(roundEnds, "rejected: "+r.Code))
		in[0].label = "yes"
	}
	if t.Creates != nil {
		step(box, "create "+creationText(t.Creates))
	}
	if t.Starts != nil {
		d.link([]exit{{from: in[0].from, label: "in the background", dashed: true}}, d.node(hexagon, "extraction: "+startText(t.Starts)))
	}
	return in
}
