package spec

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
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
		step(diamond, r.Check)
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

func explainBundle(doc Document, beside []Document, _ []jig.Tool) (text, diagram string) {
	folder := path.Dir(filepath.ToSlash(doc.Path)) + "/"
	inside := slices.DeleteFunc(slices.Clone(beside), func(doc Document) bool {
		return folder != "./" && !strings.HasPrefix(filepath.ToSlash(doc.Path), folder)
	})
	return ExplainBundle(*doc.Bundle(), inside), ""
}

// ExplainBundle returns a short text for a terminal: what the bundle is, which bundles it requires, and which documents it contains, by
// kind.
func ExplainBundle(m bundle.Manifest, docs []Document) string {
	o := &outline{}
	o.line(0, "bundle %s%s", m.Name, versionText(m.Version))
	if m.Title != "" {
		o.line(0, "%s", m.Title)
	}
	if m.Description != "" {
		o.line(0, "%s", m.Description)
	}
	if len(m.Requires) > 0 {
		o.line(0, "it needs the bundles %s", strings.Join(m.Requires, ", "))
	}
	byKind := map[Kind][]string{}
	for i := range docs {
		if docs[i].Bundle() == nil {
			byKind[docs[i].Kind] = append(byKind[docs[i].Kind], docs[i].Name)
		}
	}
	if len(byKind) == 0 {
		return o.b.String()
	}
	o.b.WriteByte('\n')
	o.line(0, "it contains:")
	for _, kind := range Kinds() {
		if names := byKind[kind]; len(names) > 0 {
			slices.Sort(names)
			o.line(1, "%s: %s", pluralKind(kind, len(names)), strings.Join(names, ", "))
		}
	}
	return o.b.String()
}

func pluralKind(k Kind, n int) string {
	if n == 1 {
		return "1 " + k.Words()
	}
	return fmt.Sprintf("%d %s", n, cmp.Or(k.row().plural, k.Words()+"s"))
}
