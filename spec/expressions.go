package spec

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/jig-run/jig/internal/expr"
)

// Limits of a document's expressions. They bound the time that compiling takes.
const (
	maxExpressions     = 4_000
	maxExpressionBytes = 64 << 10
	// maxExpression is the length of the longest possible expression, in bytes.
	maxExpression = 4 << 10
	// After this many problems with expressions, or this many bytes of wrong expressions, the rest is not checked.
	maxExpressionProblems = 100
	maxWrongBytes         = 8 << 10
)

// Shapes returns the JSON Schema of a tool's result. ok is false if it is not known.
type Shapes func(tool string) (output json.RawMessage, ok bool)

// site is the place of an expression, which decides what the expression may read.
type site struct {
	// step is the step that the expression belongs to. It is nil for the composition's output.
	step *placed
	// item is set if the expression may read the step's own item, provided that the step is a loop.
	item bool
	// done is set if the blocks of the step have run. own is set if the step's own result is available.
	done, own bool
	// failed is set if an error is available, caught if it is also available under the handler's name, and awaited if an event is available.
	failed, caught, awaited bool
}

// macros finds the loops in an expression. The cost of checking nested loops grows much faster than their text.
var macros = regexp.MustCompile(`\b(?:all|exists|exists_one|existsOne|map|filter|transform\w*|bind|sortBy|optMap|optFlatMap)\s*\(`)

// macroBytes is the weight of a loop, multiplied by the number of loops in its expression.
const macroBytes = 64

// weight is an upper estimate of the number of expressions in a value and of their total length.
type weight struct{ count, bytes int }

func (w *weight) expression(source string) {
	loops := len(macros.FindAllStringIndex(source, -1))
	w.count++
	w.bytes += min(len(source), maxExpression) + macroBytes*loops*loops
}

func (w *weight) add(n *node) {
	for rest := n.text; ; {
		at := strings.Index(rest, "${")
		if at < 0 {
			break
		}
		rest = rest[at+2:]
		source := rest
		if next := strings.Index(rest, "${"); next >= 0 {
			source = rest[:next]
		}
		w.expression(source[:strings.LastIndexByte(source, '}')+1])
	}
	for _, item := range n.items {
		w.add(item)
	}
	for _, e := range n.entries {
		switch e.key {
		case "if", "when", "for_each", "wait_until", "check":
			w.expression(e.value.text)
		}
		w.add(e.value)
	}
}

// sites checks the expressions of a composition.
type sites struct {
	*walk
	env    *expr.Env
	shapes stepShapes
	before int
	wrong  int
}

// checkExecution checks a spec's structure, and then its expressions.
func (d *decoder) checkExecution(x Execution) {
	d.checkPreview(x)
	if own := x.Kind.execution(); own.backend {
		if own.check != nil {
			own.check(d, x)
		}
		return
	}
	d.checkExpressions(d.walkSteps(x), x, nil)
}

// CheckShapes reports the mistakes in a document's expressions that can be found only if the results of the tools are known. It reports
// nothing for a document that already has errors.
func CheckShapes(doc Document, shapes Shapes) Problems {
	x := doc.Execution()
	if x == nil || x.Kind.HasBackend() || doc.broken {
		return nil
	}
	d := newDecoder(doc.Path)
	d.places = doc.places
	w := d.walkSteps(*x)
	d.problems = nil // Load has reported them
	d.checkExpressions(w, *x, shapes)
	d.problems = d.problems.Errors()
	d.problems.Sort()
	return d.problems
}

func (d *decoder) checkExpressions(w *walk, x Execution, shapes Shapes) {
	if w.full {
		return
	}
	var all weight
	if all.add(d.places[""]); all.count > maxExpressions || all.bytes > maxExpressionBytes {
		d.at("", ProblemTooMany, "move some of it into a separate composition",
			"the document has more than %d expressions or %d bytes of expressions, or too many loops in one expression", maxExpressions, maxExpressionBytes)
		return
	}
	extra := make([]expr.Variable, 0, len(w.names))
	for _, name := range w.names {
		extra = append(extra, expr.Variable{Name: name})
	}
	env, err := expr.StepUse(extra...).Env()
	if err != nil {
		d.at("", ProblemBadCEL, "", "expressions cannot be checked: %v", err)
		return
	}
	s := &sites{walk: w, env: env, before: len(d.problems), shapes: newStepShapes(x.Tool.InputSchema, shapes, w.names)}
	var open []*placed
	for _, p := range w.all {
		open = s.close(open, p)
		s.begin(p)
		open = append(open, p)
	}
	s.close(open, nil)
	if !x.Kind.SingleStep() {
		s.value(site{done: true}, "output")
	}
}

// close ends the open steps that do not contain the next step, innermost first.
func (s *sites) close(open []*placed, next *placed) []*placed {
	for len(open) > 0 {
		last := open[len(open)-1]
		if next != nil && next.within(last) {
			break
		}
		s.end(last)
		open = open[:len(open)-1]
	}
	return open
}

// begin checks the expressions of a step that are evaluated before the steps in its blocks, which are checked separately.
func (s *sites) begin(p *placed) {
	inner := func(key string) string { return expr.JoinPath(p.path, key) }
	before, during := site{step: p}, site{step: p, item: true}
	s.expression(before, inner("if"), p.If, expr.Bool)
	s.expression(before, inner("for_each"), p.ForEach, expr.List)
	if p.ForEach != "" {
		s.loop(p)
	}
	s.value(during, inner("input"))
	if p.Prompt != nil {
		s.prompt(during, p)
	}
	if p.Task != nil {
		at := inner("task")
		if p.path == "" {
			at = ""
		}
		s.value(during, joinKey(at, "entity"))
		s.value(during, joinKey(at, "values"))
	}
	for i, c := range p.Switch {
		s.expression(during, keyPath(indexPath(inner("switch"), i), "when"), c.When, expr.Bool)
	}
	s.value(during, inner("set"))
	s.value(during, inner("wait"))
	s.moment(during, inner("wait_until"), p.WaitUntil)
	if p.WaitFor != nil {
		s.expression(site{step: p, item: true, awaited: true}, inner("wait_for.when"), p.WaitFor.When, expr.Bool)
	}
	s.value(during, inner("emit.data"))
	s.value(during, inner("fail.message"))
}

// end checks the expressions of a step that are evaluated after the steps in its blocks.
func (s *sites) end(p *placed) {
	inner := func(key string) string { return expr.JoinPath(p.path, key) }
	s.value(site{step: p, item: true, done: true}, inner("output"))
	if p.Retry != nil {
		s.expression(site{step: p, item: true, failed: true}, inner("retry.when"), p.Retry.When, expr.Bool)
	}
	if p.OnError != nil {
		caught := site{step: p, item: true, done: true, own: true, failed: true, caught: true}
		s.expression(caught, inner("on_error.when"), p.OnError.When, expr.Bool)
	}
	data := s.data(p)
	if p.Undo != nil {
		s.shapes.known["steps."+p.ID] = expr.ResultShape(data) // for a loop, the item's own result
		s.value(site{step: p, item: true, done: true, own: true}, inner("undo.input"))
	}
	s.ended(p, data)
}

func (s *sites) prompt(at site, p *placed) {
	path := ""
	if p.path != "" {
		path = expr.JoinPath(p.path, "prompt")
	}
	for _, key := range []string{"system", "prompt", "agent_input"} {
		s.value(at, joinKey(path, key))
	}
}

// joinKey appends a plain key to a path that may be empty.
func joinKey(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// enough reports whether so many expressions are wrong that the rest is not checked.
func (s *sites) enough() bool {
	return len(s.problems)-s.before >= maxExpressionProblems || s.wrong > maxWrongBytes
}

func (s *sites) expression(at site, path string, source Expression, want expr.Type) {
	if source == "" || s.enough() {
		return
	}
	program, err := s.env.CompileAs(string(source), want)
	if err != nil {
		s.report(path, err)
		s.wrong += min(len(source), maxExpression)
		return
	}
	s.reads(at, path, program.Reads())
	s.report(path, program.Check(s.shapes.at(at)))
}

// moment checks an expression that must give a timestamp, or a text that is one.
func (s *sites) moment(at site, path string, source Expression) {
	s.expression(at, path, source, expr.Any)
	program, err := s.env.Compile(string(source))
	if source == "" || err != nil {
		return
	}
	switch program.Type() {
	case expr.Any, expr.Timestamp, expr.String:
	case expr.Bool, expr.Int, expr.List, expr.Map:
		s.at(path, ProblemBadCEL, "e.g. now + duration('1h')", "this does not evaluate to a point in time")
	}
}

// value checks every text of the value at a path as a template.
func (s *sites) value(at site, path string) {
	if n := s.places[path]; n != nil {
		s.node(at, path, n)
	}
}

func (s *sites) node(at site, path string, n *node) {
	for i, item := range n.items {
		s.node(at, indexPath(path, i), item)
	}
	for _, e := range n.entries {
		s.node(at, keyPath(path, e.key), e.value)
	}
	if n.kind == kindString {
		s.template(at, path, n.text)
	}
}

func (s *sites) template(at site, path, text string) {
	if !strings.Contains(text, "${") || s.enough() {
		return
	}
	template, err := s.env.Template(text)
	if err != nil {
		s.report(path, err)
		s.wrong += min(len(text), maxExpression)
		return
	}
	s.reads(at, path, template.Reads())
	s.report(path, template.Check(s.shapes.at(at)))
}

func (s *sites) report(path string, err error) {
	if err != nil {
		compiler{decoder: s.decoder, env: s.env}.report(path, err)
	}
}
