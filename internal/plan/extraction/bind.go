package extraction

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/plan"
)

// reads lists the variables and members that the expressions of a task read.
type reads struct {
	tasks, content names
	// entity and input report whether these variables are read at all.
	entity, input bool
}

// names lists the members of a map that are read by name. all reports whether any member may be read.
type names struct {
	list []string
	all  bool
}

func (n names) any() bool { return n.all || len(n.list) > 0 }

func readsOf(r expr.Reads) reads {
	return reads{
		tasks: names{list: r.Tasks, all: r.AllTasks}, content: names{list: r.Content, all: r.AllContent},
		entity: r.Has("entity"), input: r.Has("input"),
	}
}

// Limits, in bytes, of the values that expressions read and produce.
const (
	maxValue = 1 << 20
	maxTotal = 16 << 20
)

// evaluate binds the variables that a part of a task reads and evaluates it.
func evaluate[T any](
	ctx context.Context, r *run, t *task, part string, rd reads, now time.Time, result *expr.Value,
	eval func(context.Context, map[string]any) (T, error),
) (v T, problem *jig.Error, err error) {
	vars, err := r.bind(ctx, t, rd, now, result)
	if err != nil {
		return v, nil, err
	}
	v, err = eval(ctx, vars)
	problem, err = r.plan.Problem(ctx, t.at(part), err)
	return v, problem, err
}

// bind returns the variables for the expressions of a task.
func (r *run) bind(ctx context.Context, t *task, rd reads, now time.Time, result *expr.Value) (map[string]any, error) {
	vars := map[string]any{"tenant": r.At.Tenant, "now": now}
	if result != nil {
		vars["result"] = *result
	}
	if rd.tasks.any() || rd.content.any() {
		if err := r.loadTasks(ctx, r.tasksOf(t, rd)); err != nil {
			return nil, err
		}
	}
	if rd.tasks.any() {
		tasks := map[string]any{}
		for _, n := range r.tasksNamed(t, rd.tasks) {
			v, err := r.value(n)
			if err != nil {
				return nil, err
			}
			tasks[r.plan.tasks[n].ID] = v
		}
		vars["tasks"] = tasks
	}
	if rd.input {
		vars["input"] = r.given.input
	}
	if rd.entity {
		content, err := r.content(t, rd.content)
		if err != nil {
			return nil, err
		}
		vars["entity"] = map[string]any{"id": r.given.EntityID, "type": r.entityType(), "title": r.given.Entity.Title, "content": content}
	}
	return vars, nil
}

func (r *run) entityType() string {
	if r.given.Entity.Type != "" {
		return r.given.Entity.Type
	}
	return r.plan.Name
}

// content returns the part of the entity's content that a task can read: fields that no task fills, and fields filled by tasks that it
// depends on.
func (r *run) content(t *task, of names) (map[string]any, error) {
	out := map[string]any{}
	for _, name := range r.fieldsNamed(of) {
		n, filled := r.plan.filler[name]
		if !filled {
			if v, ok := r.given.content[name]; ok {
				out[name] = v
			}
			continue
		}
		if t.ancestors.has(n) && r.st.marks[n].hasValue() {
			v, err := r.value(n)
			if err != nil {
				return nil, err
			}
			out[name] = v
		}
	}
	return out, nil
}

func (r *run) fieldsNamed(of names) []string {
	if !of.all {
		return of.list
	}
	return append(append([]string(nil), r.given.order...), slices.Sorted(maps.Keys(r.plan.filler))...)
}

// tasksNamed returns the indexes of the tasks that an expression reads. If it may read any of them, it returns all tasks that t depends on.
func (r *run) tasksNamed(t *task, of names) []int {
	var out []int
	for n, other := range r.plan.tasks {
		if !t.ancestors.has(n) || !r.st.marks[n].hasValue() {
			continue
		}
		if of.all || slices.Contains(of.list, other.ID) {
			out = append(out, n)
		}
	}
	return out
}

// tasksOf returns the tasks whose values are read, either as members of tasks or as fields of the entity.
func (r *run) tasksOf(t *task, rd reads) []int {
	out := r.tasksNamed(t, rd.tasks)
	for _, name := range r.fieldsNamed(rd.content) {
		if n, ok := r.plan.filler[name]; ok && t.ancestors.has(n) && r.st.marks[n].hasValue() {
			out = append(out, n)
		}
	}
	return out
}

// value returns a task's value, decoded for expressions.
func (r *run) value(n int) (expr.Value, error) {
	if v, ok := r.ready[n]; ok {
		return v, nil
	}
	raw, err := r.rawValue(n)
	if err != nil {
		return expr.Value{}, err
	}
	v, err := expr.FromJSON(raw)
	if err != nil {
		return v, jig.Errorf(jig.CodeInternal, "the value of the task %s: %w", r.plan.tasks[n].ID, err)
	}
	r.ready[n] = v
	return v, nil
}

// rawValue returns a task's value as JSON. The value must have been loaded, or kept by this move.
func (r *run) rawValue(n int) (json.RawMessage, error) {
	id := r.plan.tasks[n].ID
	if r.st.marks[n] == markKept {
		return plan.OrNull(r.given.Earlier[id].Value), nil
	}
	raw, ok := r.Values[id]
	if !ok {
		return nil, jig.Errorf(jig.CodeInternal, "the value of the task %s is gone", id)
	}
	return raw, nil
}

// loadTasks reads the values of tasks that this move has not read yet.
func (r *run) loadTasks(ctx context.Context, numbers []int) error {
	var paths []string
	for _, n := range numbers {
		if r.st.marks[n] == markDone {
			paths = append(paths, r.plan.tasks[n].ID)
		}
	}
	return r.LoadValues(ctx, paths)
}

// given is the decoded input of an extraction. It is not modified.
type given struct {
	Input
	raw struct {
		// all is the original input. content holds the members of the entity's content.
		all     json.RawMessage
		content map[string]json.RawMessage
	}
	// content and input are decoded for expressions. order has the names of the content's members, sorted.
	content map[string]expr.Value
	order   []string
	input   expr.Value
	// asked says, by index, which tasks the extraction must complete. single is the index of the only task to run, or -1.
	asked  []bool
	single int
}

// given reads the input. The error says what is wrong with it.
func (p *Plan) given(raw json.RawMessage) (*given, *jig.Error) {
	if last := p.last.Load(); last != nil && bytes.Equal(last.raw.all, raw) {
		return last, nil
	}
	g := &given{content: map[string]expr.Value{}, single: -1}
	g.raw.all = bytes.Clone(raw)
	if err := json.Unmarshal(raw, &g.Input); err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the input of the extraction cannot be read: %w", err)
	}
	if _, err := digest(raw); err != nil { // input hashes need a canonical form
		return nil, jig.Errorf(jig.CodeInvalidInput, "the input of the extraction: %w", err)
	}
	switch g.Mode {
	case "":
		g.Mode = ModeRun
	case ModeRun, ModeRetry, ModeRefresh:
	default:
		return nil, jig.Errorf(jig.CodeInvalidInput, "%q is not a mode", jig.Cut(string(g.Mode), 100)).WithField("/mode").WithHint("use run, retry or refresh")
	}
	if err := g.readContent(); err != nil {
		return nil, jig.AsError(err).WithField("/entity/content")
	}
	var err error
	if g.input, err = expr.FromJSON(g.Input.Input); err != nil {
		return nil, jig.AsError(err).WithField("/input")
	}
	var problem *jig.Error
	if g.asked, problem = p.askedFor(g.Fields); problem == nil && g.Task != "" {
		g.Mode = ModeRetry // for the tasks that it depends on
		g.asked, g.single, problem = p.askedForTask(g.Task)
	}
	if problem != nil {
		return nil, problem
	}
	p.last.Store(g)
	return g, nil
}

func (g *given) readContent() error {
	if len(bytes.TrimSpace(g.Entity.Content)) == 0 {
		return nil
	}
	if err := json.Unmarshal(g.Entity.Content, &g.raw.content); err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "this is not an object: %w", err)
	}
	g.order = slices.Sorted(maps.Keys(g.raw.content))
	for name, raw := range g.raw.content {
		v, err := expr.FromJSON(raw)
		if err != nil {
			return err
		}
		g.content[name] = v
	}
	return nil
}

// askedFor returns which tasks the fields need, or all tasks if no field is named.
func (p *Plan) askedFor(fields []string) ([]bool, *jig.Error) {
	asked := make([]bool, len(p.tasks))
	for i := range asked {
		asked[i] = len(fields) == 0
	}
	for _, name := range fields {
		n, ok := p.filler[name]
		if !ok {
			word := "%s has no field %q"
			if p.fields[name] {
				word = "%s: no task fills the field %q"
			}
			return nil, jig.Errorf(jig.CodeInvalidInput, word, p.Name, jig.Cut(name, 100)).WithField("/fields")
		}
		asked[n] = true
		for i := range asked {
			asked[i] = asked[i] || p.tasks[n].ancestors.has(i)
		}
	}
	return asked, nil
}

// askedForTask returns which tasks one task needs, and the index of that task.
func (p *Plan) askedForTask(id string) ([]bool, int, *jig.Error) {
	n := slices.IndexFunc(p.tasks, func(t *task) bool { return t.ID == id })
	if n < 0 {
		return nil, -1, jig.Errorf(jig.CodeInvalidInput, "%s has no task %q", p.Name, jig.Cut(id, 100)).WithField("/task")
	}
	asked := make([]bool, len(p.tasks))
	for i := range asked {
		asked[i] = i == n || p.tasks[n].ancestors.has(i)
	}
	return asked, n, nil
}
