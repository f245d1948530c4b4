package spec

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/clip"
)

// Mermaid draws the spec as a flowchart, top down, with diamonds for conditions, frames for loops, blocks and parallel steps, and dashed
// arrows to the steps that catch a failure or undo a step.
func (e Explanation) Mermaid() string {
	d := &drawing{tools: e.tools, depth: 1}
	start := d.node(roundEnds, e.spec.Kind.Words()+" "+e.spec.Name)
	exits := []exit{{from: start}}
	if own := e.spec.Kind.execution(); own.draw != nil {
		exits = own.draw(d, e.spec, exits)
	} else {
		exits = d.block(e.spec.Steps, exits)
	}
	if len(exits) > 0 {
		d.link(exits, d.node(roundEnds, "done"))
	}
	return "flowchart TD\n" + d.nodes.String() + strings.Join(d.edges, "")
}

// drawing collects nodes and edges separately: an edge written inside a frame would pull its ends into the frame.
type drawing struct {
	nodes strings.Builder
	edges []string
	depth int
	count int
	tools map[string]jig.Tool
}

// exit is a point where the flow leaves a step.
type exit struct {
	from, label string
	// dashed marks what happens on a failure.
	dashed bool
}

// shape holds the brackets before and after a node's label, which give the node its shape in Mermaid.
type shape struct{ open, shut string }

var (
	box       = shape{`["`, `"]`}
	diamond   = shape{`{"`, `"}`}
	roundEnds = shape{`(["`, `"])`}
	circle    = shape{`(("`, `"))`}
	slanted   = shape{`[/"`, `"/]`}
	hexagon   = shape{`{{"`, `"}}`}
)

func (d *drawing) write(format string, args ...any) {
	d.nodes.WriteString(strings.Repeat("  ", d.depth))
	fmt.Fprintf(&d.nodes, format+"\n", args...)
}

// node draws a node with lines of text and returns its id.
func (d *drawing) node(s shape, lines ...string) string {
	d.count++
	id := fmt.Sprintf("n%d", d.count)
	d.write("%s%s%s%s", id, s.open, label(lines...), s.shut)
	return id
}

// frame draws a frame around what draw draws and returns the frame's id.
func (d *drawing) frame(title string, draw func()) string {
	d.count++
	id := fmt.Sprintf("g%d", d.count)
	d.write("subgraph %s [\"%s\"]", id, label(title))
	d.depth++
	draw()
	d.depth--
	d.write("end")
	return id
}

func (d *drawing) link(from []exit, to string) {
	for _, e := range from {
		arrow, text := "-->", ""
		if e.dashed {
			arrow = "-.->"
		}
		if e.label != "" {
			text = `|"` + label(e.label) + `"|`
		}
		d.edges = append(d.edges, fmt.Sprintf("  %s %s%s %s\n", e.from, arrow, text, to))
	}
}

// block draws steps one after another.
func (d *drawing) block(steps []Step, in []exit) []exit {
	for i := range steps {
		in = d.step(&steps[i], in)
	}
	return in
}

// step draws a step with its condition, its failure handler and its undo.
func (d *drawing) step(s *Step, in []exit) []exit {
	var skipped []exit
	if s.If != "" {
		condition := d.node(diamond, string(s.If))
		d.link(in, condition)
		in, skipped = []exit{{from: condition, label: "yes"}}, []exit{{from: condition, label: "no"}}
	}
	at, out := d.looped(s, in)
	if s.Undo != nil {
		undo := s.undoneBy(d.tools)
		d.link([]exit{{from: at, label: "undo", dashed: true}}, d.node(box, "call "+cmp.Or(undo, "the undo tool of "+s.Tool+s.Composition), asksText(d.tools[undo])))
	}
	if s.OnError != nil && len(s.OnError.Catch) > 0 {
		d.frame("when it fails", func() {
			caught := d.block(s.OnError.Catch, []exit{{from: at, label: s.OnError.text(), dashed: true}})
			out = append(out, caught...)
		})
	}
	return append(out, skipped...)
}

// looped draws a step's action, in a frame if it is repeated. The arrows for a failure and for the undo start at the returned node.
func (d *drawing) looped(s *Step, in []exit) (at string, out []exit) {
	if s.ForEach == "" {
		return d.action(s, in)
	}
	if len(s.Steps) == 0 {
		at = d.frame(s.loop(), func() { _, out = d.action(s, in) })
		return at, out
	}
	at = d.frame(s.title(s.loop()), func() { out = d.block(s.Steps, in) })
	return at, out
}

func (d *drawing) action(s *Step, in []exit) (at string, out []exit) {
	title := s.title(s.action())
	switch {
	case len(s.Steps) > 0:
		at = d.frame(title, func() { out = d.block(s.Steps, in) })
	case len(s.Parallel) > 0:
		at = d.frame(title, func() {
			fork := d.node(circle, " ")
			d.link(in, fork)
			var ends []exit
			for i := range s.Parallel {
				ends = append(ends, d.step(&s.Parallel[i], []exit{{from: fork}})...)
			}
			if len(ends) > 0 { // without ends, every step fails
				join := d.node(circle, " ")
				d.link(ends, join)
				out = []exit{{from: join}}
			}
		})
	case len(s.Switch) > 0:
		at = d.node(diamond, s.ID, "switch")
		d.link(in, at)
		always := false
		for _, c := range s.Switch {
			out = append(out, d.block(c.Steps, []exit{{from: at, label: c.condition()}})...)
			always = always || c.Else
		}
		if !always {
			out = append(out, exit{from: at, label: "else"})
		}
	default:
		at = d.node(s.shape(), append([]string{s.ID, s.action()}, s.remarks(d.tools)...)...)
		d.link(in, at)
		if s.Fail == nil || s.OnError != nil && s.OnError.Continue {
			out = []exit{{from: at}}
		}
	}
	return at, out
}

// title returns the text above a frame.
func (s *Step) title(what string) string {
	if s.ID != "" {
		what = s.ID + ": " + what
	}
	return strings.Join(append([]string{what}, s.remarks(nil)...), "; ")
}

func (s *Step) shape() shape {
	switch {
	case s.Wait != "" || s.WaitUntil != "" || s.WaitFor != nil:
		return slanted
	case s.Fail != nil:
		return hexagon
	}
	return box
}

// maxLabel is the longest line of a label, in characters.
const maxLabel = 80

// label makes the text of a label from lines. Everything that has a meaning in Mermaid or HTML is written as an entity. Empty lines are
// left out.
func label(lines ...string) string {
	var shown []string
	for _, line := range lines {
		if line = clip.Line(line, maxLabel); line != "" {
			shown = append(shown, listMark.ReplaceAllStringFunc(entities.Replace(line), entityOfLast))
		}
	}
	if len(shown) == 0 {
		return " "
	}
	return strings.Join(shown, "<br/>")
}

// entities escapes characters the way Mermaid requires. A colon is part of class and style statements, a percent sign of directives, two
// dollar signs of formulas, and backticks and asterisks of Markdown.
var entities = strings.NewReplacer(
	`"`, "#quot;", "#", "#35;", "&", "#amp;", "<", "#lt;", ">", "#gt;", "`", "#96;", "%", "#37;", `\`, "#92;", ":", "#58;",
	"$", "#36;", "|", "#124;", "*", "#42;", ";", "#59;",
)

// listMark matches the beginning of a line that Mermaid would take for a list item.
var listMark = regexp.MustCompile(`^(?:[0-9]+[.)]|[-+])`)

func entityOfLast(mark string) string {
	last := len(mark) - 1
	return fmt.Sprintf("%s#%d;", mark[:last], mark[last])
}
