package composition

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/spec"
)

// Limits of a plan. Package spec reports violations with their positions; these checks catch specs that did not go through it.
const (
	maxNesting = 32
	maxSteps   = 1_000
	// defaultParallel is how many items of a loop run at once by default.
	defaultParallel = 10
	defaultBackoff  = time.Second
	defaultMaximum  = time.Minute
)

// Compile makes a plan from a spec that package spec has loaded. Errors are INVALID_INPUT with the path in the document.
func Compile(x spec.Execution) (*Plan, error) {
	if x.Kind.HasBackend() {
		return nil, jig.Errorf(jig.CodeInvalidInput, "%s is a %s, which has no steps", x.Name, x.Kind.Words()).WithField("kind").
			WithHint("call it as a tool: it is not a composition")
	}
	p := &Plan{Document: plan.Document{Name: x.Name, Version: x.Version}, byID: map[string]*node{}}
	c := &compiler{plan: p}
	root := "steps"
	if x.Kind.SingleStep() {
		root = "" // its keys are at the top of the document
	}
	steps, err := c.block(x.Steps, root, within{})
	if err != nil {
		return nil, err
	}
	p.steps = steps
	if len(x.Output) > 0 {
		if p.output, err = c.document(x.Output, "output", within{}); err != nil {
			return nil, err
		}
	}
	p.ids = slices.Sorted(maps.Keys(p.byID))
	c.observe()
	return p, nil
}

// compiler makes nodes. It also collects the reads of the expressions, to find out which results must be kept.
type compiler struct {
	plan  *Plan
	count int
	reads expr.Reads
}

// within describes the place of a step: the enclosing loop, the nesting depth, and the names that catches give to errors.
type within struct {
	loop  *node
	depth int
	names []string
}

func (c *compiler) block(steps []spec.Step, at string, in within) ([]*node, error) {
	if in.depth++; in.depth > maxNesting {
		return nil, c.plan.Fault(at, "steps nest deeper than %d levels", maxNesting)
	}
	out := make([]*node, len(steps))
	for i, s := range steps {
		path := at
		if at != "" {
			path = at + "[" + strconv.Itoa(i) + "]"
		}
		n, err := c.step(s, path, in)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}

func (c *compiler) step(s spec.Step, at string, in within) (*node, error) {
	if c.count++; c.count > maxSteps {
		return nil, c.plan.Fault(at, "there are more than %d steps", maxSteps)
	}
	n := &node{id: s.ID, name: s.ID, at: at, loop: in.loop, parallel: s.MaxParallel, timeout: time.Duration(s.Timeout)}
	if n.id == "" {
		n.name = at
	} else {
		if _, twice := c.plan.byID[n.id]; twice {
			return nil, c.plan.Fault(expr.JoinPath(at, "id"), "there is a step %q already", n.id)
		}
		c.plan.byID[n.id] = n
	}
	var err error
	if n.cond, err = c.expression(s.If, expr.JoinPath(at, "if"), expr.Bool, in); err != nil {
		return nil, err
	}
	body := in
	if s.ForEach != "" {
		if n.each, err = c.expression(s.ForEach, expr.JoinPath(at, "for_each"), expr.List, in); err != nil {
			return nil, err
		}
		if n.parallel <= 0 {
			n.parallel = defaultParallel
		}
		body.loop = n
	}
	if err := c.action(n, s, body); err != nil {
		return nil, err
	}
	if n.id == "" && (n.action == actCall || n.action == actWaitFor || n.each != nil) {
		return nil, c.plan.Fault(expr.JoinPath(at, "id"), "the step needs an id")
	}
	return n, c.handling(n, s, body)
}

// action compiles the action of the step.
func (c *compiler) action(n *node, s spec.Step, in within) (err error) {
	given, at := 0, n.at
	has := func(is bool, a action) bool {
		if is {
			given++
			n.action = a
		}
		return is && err == nil
	}
	if has(s.Tool != "", actCall) {
		if err = jig.CheckToolName(s.Tool); err != nil {
			err = c.plan.Located(expr.JoinPath(at, "tool"), err)
		} else {
			n.call, err = c.called(s.Tool, s.Input, at, in)
		}
	}
	if has(s.Composition != "", actCall) {
		n.call, err = c.called(s.Composition, s.Input, at, in)
	}
	if has(s.Prompt != nil, actCall) {
		n.call, err = c.prompt(*s.Prompt, c.inner(at, "prompt"), in)
	}
	if has(s.Task != nil, actCall) {
		n.call, err = c.task(*s.Task, c.inner(at, "task"), in)
	}
	if has(len(s.Steps) > 0, actBlock) {
		n.steps, err = c.block(s.Steps, expr.JoinPath(at, "steps"), in)
	}
	if has(len(s.Parallel) > 0, actParallel) {
		n.branches, err = c.block(s.Parallel, expr.JoinPath(at, "parallel"), in)
	}
	if has(len(s.Switch) > 0, actSwitch) {
		err = c.choice(n, s.Switch, in)
	}
	if has(len(s.Set) > 0, actSet) {
		n.set, err = c.settings(s.Set, expr.JoinPath(at, "set"), in)
	}
	if has(s.Wait != "", actWait) {
		n.wait, err = c.template(s.Wait, expr.JoinPath(at, "wait"), in)
	}
	if has(s.WaitUntil != "", actWaitUntil) {
		n.until, err = c.expression(s.WaitUntil, expr.JoinPath(at, "wait_until"), expr.Any, in)
	}
	if has(s.WaitFor != nil, actWaitFor) {
		n.waitFor = &waitPlan{event: s.WaitFor.Event, timeout: time.Duration(s.WaitFor.Timeout)}
		n.waitFor.when, err = c.expression(s.WaitFor.When, expr.JoinPath(at, "wait_for.when"), expr.Bool, in)
	}
	if has(s.Emit != nil, actEmit) {
		n.emit = &emitPlan{event: s.Emit.Event}
		n.emit.data, err = c.optional(s.Emit.Data, expr.JoinPath(at, "emit.data"), in)
	}
	if has(s.Fail != nil, actFail) {
		n.fail = &failPlan{reason: s.Fail.Reason}
		n.fail.message, err = c.template(s.Fail.Message, expr.JoinPath(at, "fail.message"), in)
	}
	if err == nil && given != 1 {
		err = c.plan.Fault(at, "a step has exactly one action, this one has %d", given)
	}
	if err == nil && n.action == actBlock {
		n.output, err = c.optional(s.Output, expr.JoinPath(at, "output"), in)
	}
	return err
}

// inner returns the path of a part of a step. In a prompt or task document, which is a single step, the path is empty.
func (c *compiler) inner(at, part string) string {
	if at == "" {
		return ""
	}
	return at + "." + part
}

// handling compiles the retry, on_error and undo of a step.
func (c *compiler) handling(n *node, s spec.Step, in within) (err error) {
	if (s.Retry != nil || s.Undo != nil) && n.action != actCall {
		return c.plan.Fault(n.at, "only calls can have retry and undo")
	}
	failing := in
	if s.OnError != nil && s.OnError.As != "" {
		failing.names = append(slices.Clip(in.names), s.OnError.As)
	}
	if s.Retry != nil {
		n.retry = &retryPlan{
			attempts: s.Retry.MaxAttempts, backoff: time.Duration(s.Retry.Backoff), maxBackoff: time.Duration(s.Retry.MaxBackoff),
		}
		if n.retry.backoff <= 0 {
			n.retry.backoff = defaultBackoff
		}
		if n.retry.maxBackoff <= 0 {
			n.retry.maxBackoff = max(defaultMaximum, n.retry.backoff)
		}
		if n.retry.when, err = c.expression(s.Retry.When, expr.JoinPath(n.at, "retry.when"), expr.Bool, in); err != nil {
			return err
		}
	}
	if s.Undo != nil {
		if s.Undo.Tool != "" {
			if err := jig.CheckToolName(s.Undo.Tool); err != nil {
				return c.plan.Located(expr.JoinPath(n.at, "undo.tool"), err)
			}
		} else if s.Tool == "" && s.Composition == "" {
			return c.plan.Fault(expr.JoinPath(n.at, "undo.tool"), "name the tool that undoes the step")
		}
		if n.undo, err = c.called(s.Undo.Tool, s.Undo.Input, expr.JoinPath(n.at, "undo"), in); err != nil {
			return err
		}
	}
	if s.OnError == nil || !s.OnError.Continue && len(s.OnError.Catch) == 0 {
		return nil
	}
	n.onError = &errorPlan{proceed: s.OnError.Continue, as: s.OnError.As}
	if n.onError.when, err = c.expression(s.OnError.When, expr.JoinPath(n.at, "on_error.when"), expr.Bool, failing); err != nil {
		return err
	}
	n.onError.catch, err = c.block(s.OnError.Catch, expr.JoinPath(n.at, "on_error.catch"), failing)
	return err
}

func (c *compiler) choice(n *node, cases []spec.Case, in within) error {
	for i, one := range cases {
		at := expr.JoinPath(n.at, "switch["+strconv.Itoa(i)+"]")
		b := &branch{}
		var err error
		if b.when, err = c.expression(one.When, at+".when", expr.Bool, in); err != nil {
			return err
		}
		if (b.when == nil) != one.Else {
			return c.plan.Fault(at, "a case has either when or else")
		}
		if b.steps, err = c.block(one.Steps, at+".steps", in); err != nil {
			return err
		}
		n.cases = append(n.cases, b)
	}
	return nil
}

func (c *compiler) settings(raw json.RawMessage, at string, in within) (*document, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return nil, c.plan.Fault(at, "set is a mapping of names to values")
	}
	return c.document(raw, at, in)
}

// optional compiles a document. It returns nil if the document is missing.
func (c *compiler) optional(raw json.RawMessage, at string, in within) (*document, error) {
	if len(raw) == 0 {
		return nil, nil // nil means that there is no document
	}
	return c.document(raw, at, in)
}

func (c *compiler) env(in within) (*expr.Env, error) {
	extra := make([]expr.Variable, 0, len(in.names))
	for _, name := range in.names {
		if !slices.ContainsFunc(extra, func(v expr.Variable) bool { return v.Name == name }) {
			extra = append(extra, expr.Variable{Name: name})
		}
	}
	return expr.StepUse(extra...).Env()
}

func (c *compiler) expression(source spec.Expression, at string, want expr.Type, in within) (*program, error) {
	if source == "" {
		return nil, nil // nil means that there is no expression
	}
	env, err := c.env(in)
	if err != nil {
		return nil, err
	}
	p, err := env.CompileAs(string(source), want)
	if err != nil {
		return nil, c.plan.Located(at, err)
	}
	c.reads = c.reads.Merge(p.Reads())
	return &program{Program: p, reads: p.Reads(), at: at}, nil
}

func (c *compiler) template(source, at string, in within) (*template, error) {
	env, err := c.env(in)
	if err != nil {
		return nil, err
	}
	t, err := env.Template(source)
	if err != nil {
		return nil, c.plan.Located(at, err)
	}
	c.reads = c.reads.Merge(t.Reads())
	return &template{Template: t, reads: t.Reads(), at: at}, nil
}

func (c *compiler) document(raw json.RawMessage, at string, in within) (*document, error) {
	env, err := c.env(in)
	if err != nil {
		return nil, err
	}
	d, problems := env.Document(raw)
	if len(problems) > 0 {
		return nil, c.plan.Located(expr.JoinPath(at, problems[0].Path), problems[0].Err)
	}
	c.reads = c.reads.Merge(d.Reads())
	return &document{Document: d, reads: d.Reads(), at: at}, nil
}

// observe marks the steps whose results are needed: an expression reads the result, the composition returns it, or it is part of the result of
// a marked block. Other results are not kept.
func (c *compiler) observe() {
	for _, id := range c.reads.Steps {
		if n := c.plan.byID[id]; n != nil {
			n.observe()
		}
	}
	if c.reads.AllSteps {
		for _, n := range c.plan.byID {
			n.observe()
		}
	}
	if c.plan.output == nil {
		for _, n := range c.plan.steps {
			n.observe()
		}
	}
}

func (n *node) observe() {
	if n.observed {
		return
	}
	n.observed = true
	if n.output != nil {
		return
	}
	for _, inner := range n.shown() {
		inner.observe()
	}
}

// shown returns the steps whose results form the result of a block without an output.
func (n *node) shown() []*node {
	switch n.action {
	case actBlock:
		return n.steps
	case actParallel:
		return n.branches
	case actSwitch:
		var all []*node
		for _, b := range n.cases {
			all = append(all, b.steps...)
		}
		return all
	case actCall, actSet, actWait, actWaitUntil, actWaitFor, actEmit, actFail:
	}
	return nil
}
