package extraction

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/toolname"
)

// Limits of a plan, and defaults for what the document leaves out.
const (
	maxTasks        = 1_000
	maxDepth        = 100
	defaultParallel = 10
	defaultBackoff  = time.Second
	maxBackoff      = time.Hour
	maxAttempts     = 100
)

// taskID rules out ids that could be confused with the suffixes that paths use, ~2 and #.
var taskID = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,127}$`)

// Plan is an entity type whose tasks are ready to run. It is safe for concurrent use.
type Plan struct {
	plan.Document
	kind entity.Type
	// tasks are in the order of the document.
	tasks []*task
	// filler maps the name of a field to the index of the task that fills it.
	filler   map[string]int
	fields   map[string]bool
	parallel int
	checks   Checks
	// last is the input that was read last. It is the same in all moves of a run.
	last atomic.Pointer[given]
}

// task is a task of the plan.
type task struct {
	entity.Task
	number int
	deps   []int
	// ancestors are the tasks that this one depends on, directly or not.
	ancestors bits
	fields    []entity.Field
	// tool is the tool that the task calls. It is empty if the task is evaluated within the move.
	tool string
	// claims is the index of the task whose claims this task checks.
	claims int

	when, compute, value, sources, among *expr.Program
	input                                *expr.Document
	// reads holds the reads of each part; all combines the reads of the parts that the value depends on.
	reads struct{ when, compute, input, value, sources, among, all reads }
	// resultSources reports whether the sources are unknown before the call has a result.
	resultSources bool
	// definition is the JSON of the task's [definition], for the input hash.
	definition json.RawMessage
}

// local reports whether the task is evaluated within the move, without a call.
func (t *task) local() bool { return t.tool == "" }

// bits is a set of task indexes.
type bits []uint64

func (b bits) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

func (b bits) set(i int) { b[i/64] |= 1 << (i % 64) }

func (b bits) addAll(other bits) {
	for i, word := range other {
		b[i] |= word
	}
}

// Compile makes a plan from an entity type. It checks that the tasks form a graph without cycles, that they read nothing they do not depend
// on, and that their expressions compile. Errors are INVALID_INPUT with the path in the document. Package spec reports the same problems,
// all at once and with line numbers; these checks catch documents that did not go through it.
func Compile(t entity.Type, checks Checks) (*Plan, error) {
	if checks.Field == nil || checks.Schema == nil {
		return nil, jig.Errorf(jig.CodeInternal, "the extraction of %s has nothing to check values with", t.Name)
	}
	p := &Plan{
		Document: plan.Document{Name: t.Name, Version: t.Version}, kind: t, filler: map[string]int{}, fields: map[string]bool{}, parallel: t.MaxParallel, checks: checks,
	}
	if p.parallel <= 0 {
		p.parallel = defaultParallel
	}
	if len(t.Tasks) > maxTasks {
		return nil, p.Fault("tasks", "there are %d tasks, at most %d are allowed", len(t.Tasks), maxTasks)
	}
	env, err := expr.TaskUse().Env()
	if err != nil {
		return nil, err
	}
	c := &compiler{plan: p, env: env, byID: map[string]int{}}
	for i, defined := range t.Tasks {
		if err := c.add(i, defined); err != nil {
			return nil, err
		}
	}
	if err := c.connect(); err != nil {
		return nil, err
	}
	if err := c.fill(t.Fields); err != nil {
		return nil, err
	}
	for _, t := range p.tasks {
		if err := c.compile(t); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// compiler makes the tasks of a plan.
type compiler struct {
	plan *Plan
	env  *expr.Env
	byID map[string]int
}

func (t *task) at(part string) string { return "tasks." + t.ID + "." + part }

func (c *compiler) add(number int, defined entity.Task) error {
	t := &task{Task: defined, number: number}
	if !taskID.MatchString(t.ID) {
		return c.plan.Fault("tasks", "%q is not a task id", jig.Cut(t.ID, 100)).WithHint("letters, digits, _, - and ., a letter first, e.g. risk_class")
	}
	if _, twice := c.byID[t.ID]; twice {
		return c.plan.Fault("tasks."+t.ID, "there is a task %q already", t.ID)
	}
	if t.Attempts < 0 || t.Attempts > maxAttempts || t.Backoff < 0 {
		return c.plan.Fault(t.at("attempts"), "attempts must be 1 to %d, and the backoff must not be negative", maxAttempts)
	}
	t.Attempts = max(t.Attempts, 1)
	if t.Backoff == 0 {
		t.Backoff = defaultBackoff
	}
	if t.Kind != entity.TaskCompute && t.Compute != "" || t.Kind != entity.TaskCitations && t.Claims+t.Among != "" {
		return c.plan.Fault("tasks."+t.ID, "a task of kind %s cannot have compute, claims or among: compute is for kind compute, claims and among are for kind citations", t.Kind)
	}
	needs := t.Use
	switch t.Kind {
	case entity.TaskCompute:
		needs = t.Compute
	case entity.TaskTool:
		if err := jig.CheckToolName(t.Use); err != nil {
			return c.plan.Located(t.at("use"), err)
		}
		t.tool = t.Use
	case entity.TaskComposition:
		t.tool = t.Use
	case entity.TaskAgent:
		t.tool = toolname.AgentRun
	case entity.TaskPrompt:
		if t.tool = t.Use; t.tool == "" {
			t.tool = toolname.PromptDirect
		}
		needs = t.tool
	case entity.TaskCitations:
		needs = t.Claims
	default:
		return c.plan.Fault(t.at("kind"), "%q is not a kind of task", t.Kind).WithHint("use compute, tool, prompt, composition, agent or citations")
	}
	if needs == "" {
		return c.plan.Fault("tasks."+t.ID, "a task of kind %s must say what it uses", t.Kind)
	}
	c.byID[t.ID] = number
	c.plan.tasks = append(c.plan.tasks, t)
	return nil
}

// connect finds what each task depends on, directly or not.
func (c *compiler) connect() error {
	for _, t := range c.plan.tasks {
		needed := t.DependsOn
		if t.Claims != "" && !slices.Contains(needed, t.Claims) {
			needed = append(slices.Clip(needed), t.Claims)
		}
		for _, id := range needed {
			n, ok := c.byID[id]
			if !ok {
				return c.plan.Fault(t.at("depends_on"), "there is no task %q", jig.Cut(id, 100))
			}
			if !slices.Contains(t.deps, n) {
				t.deps = append(t.deps, n)
			}
		}
		t.claims = c.byID[t.Claims]
	}
	depth := make([]int, len(c.plan.tasks))
	for _, t := range c.plan.tasks {
		if err := c.visit(t, depth, nil); err != nil {
			return err
		}
	}
	return nil
}

// visit computes a task's ancestors and its depth. A depth of -1 marks a task whose visit has not ended.
func (c *compiler) visit(t *task, depth []int, path []string) error {
	if depth[t.number] > 0 {
		return nil
	}
	path = append(path, t.ID)
	if depth[t.number] < 0 {
		cycle := path[slices.Index(path, t.ID):]
		if len(cycle) > 20 {
			cycle = append(append(slices.Clone(cycle[:10]), "…"), cycle[len(cycle)-10:]...)
		}
		return c.plan.Fault(t.at("depends_on"), "tasks wait for each other: %s", strings.Join(cycle, " -> "))
	}
	depth[t.number] = -1
	t.ancestors = make(bits, (len(c.plan.tasks)+63)/64)
	deepest := 0
	for _, n := range t.deps {
		d := c.plan.tasks[n]
		if err := c.visit(d, depth, path); err != nil {
			return err
		}
		t.ancestors.set(n)
		t.ancestors.addAll(d.ancestors)
		deepest = max(deepest, depth[n])
	}
	if depth[t.number] = deepest + 1; deepest+1 > maxDepth {
		return c.plan.Fault(t.at("depends_on"), "there is a chain of more than %d tasks that depend on each other", maxDepth)
	}
	return nil
}

// fill assigns the fields to the tasks that fill them.
func (c *compiler) fill(fields []entity.Field) error {
	for _, f := range fields {
		at := "fields." + f.Name
		if f.Name == "" || c.plan.fields[f.Name] {
			return c.plan.Fault("fields", "every field needs a name of its own: %q is empty or used twice", f.Name)
		}
		c.plan.fields[f.Name] = true
		if inner := nested(f); inner != "" {
			return c.plan.Fault(at, "%s names a task, but a task can fill only a whole field of the entity type", inner)
		}
		if f.Task == "" {
			continue
		}
		n, ok := c.byID[f.Task]
		if !ok {
			return c.plan.Fault(at+".task", "there is no task %q", jig.Cut(f.Task, 100))
		}
		c.plan.filler[f.Name] = n
		c.plan.tasks[n].fields = append(c.plan.tasks[n].fields, f)
	}
	return nil
}

// nested returns a description of a part of a field that names a task, or "" if no part does.
func nested(f entity.Field) string {
	parts := f.Fields
	if f.Items != nil {
		parts = append(slices.Clip(parts), *f.Items)
	}
	for _, part := range parts {
		if part.Task != "" {
			return "its part " + part.Name
		}
		if inner := nested(part); inner != "" {
			return inner
		}
	}
	return ""
}

// compile compiles a task's expressions and checks what they read against what the task depends on.
func (c *compiler) compile(t *task) (err error) {
	var all expr.Reads
	for _, p := range []struct {
		part, source string
		want         expr.Type
		program      **expr.Program
		reads        *reads
		// result reports whether the part is evaluated after the call and may read result.
		result bool
	}{
		{"when", t.When, expr.Bool, &t.when, &t.reads.when, false},
		{"compute", t.Compute, expr.Any, &t.compute, &t.reads.compute, false},
		{"value", t.Value, expr.Any, &t.value, &t.reads.value, true},
		{"sources", t.Sources, expr.Any, &t.sources, &t.reads.sources, true},
		{"among", t.Among, expr.Any, &t.among, &t.reads.among, false},
	} {
		if p.source == "" {
			continue
		}
		if *p.program, err = c.env.CompileAs(p.source, p.want); err != nil {
			return c.plan.Located(t.at(p.part), err)
		}
		found := (*p.program).Reads()
		if found.Has("result") && !p.result {
			return c.tooEarly(t, p.part)
		}
		all, *p.reads = all.Merge(found), readsOf(found)
	}
	t.resultSources = t.sources != nil && t.sources.Reads().Has("result")
	if len(t.Input) > 0 {
		doc, problems := c.env.Document(t.Input)
		if len(problems) > 0 {
			return c.plan.Located(strings.TrimSuffix(t.at("input")+"."+problems[0].Path, "."), problems[0].Err)
		}
		found := doc.Reads()
		if found.Has("result") {
			return c.tooEarly(t, "input")
		}
		t.input = doc
		all, t.reads.input = all.Merge(found), readsOf(found)
	}
	t.reads.all = readsOf(all)
	if err := c.depends(t); err != nil {
		return err
	}
	return c.define(t)
}

func (c *compiler) define(t *task) (err error) {
	if t.definition, err = jsontext.Encode(definition{
		Kind: t.Kind, When: t.When, Compute: t.Compute, Use: t.Use, Input: t.Input, Value: t.Value, OutputSchema: t.OutputSchema,
		Sources: t.Sources, Claims: t.Claims, Among: t.Among,
	}); err == nil {
		_, err = digest(t.definition)
	}
	if err != nil {
		return c.plan.Located("tasks."+t.ID, err)
	}
	return nil
}

// definition holds the settings of a task that affect its value. Settings for retries and scheduling do not.
type definition struct {
	Kind         entity.TaskKind `json:"kind"`
	When         string          `json:"when,omitempty"`
	Compute      string          `json:"compute,omitempty"`
	Use          string          `json:"use,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	Value        string          `json:"value,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Sources      string          `json:"sources,omitempty"`
	Claims       string          `json:"claims,omitempty"`
	Among        string          `json:"among,omitempty"`
}

func (c *compiler) tooEarly(t *task, part string) error {
	return c.plan.Fault(t.at(part), "it reads result, and nothing has been called yet").WithHint("read it in value or sources")
}

// depends refuses a task that reads something it does not depend on.
func (c *compiler) depends(t *task) error {
	for _, id := range t.reads.all.tasks.list {
		n, ok := c.byID[id]
		if !ok {
			return c.plan.Fault("tasks."+t.ID, "it reads tasks.%s, but there is no such task", id)
		}
		if !t.ancestors.has(n) {
			return c.plan.Fault(t.at("depends_on"), "it reads tasks.%s and does not depend on it", id).WithHint(jig.Templatef("add %s to depends_on", id))
		}
	}
	for _, name := range t.reads.all.content.list {
		if n, ok := c.plan.filler[name]; ok && !t.ancestors.has(n) {
			return c.plan.Fault(t.at("depends_on"), "it reads entity.content.%s and does not depend on the task that fills it", name).
				WithHint(jig.Templatef("add %s to depends_on", c.plan.tasks[n].ID))
		}
	}
	return nil
}
