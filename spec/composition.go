package spec

import (
	"encoding/json"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/toolname"
)

// Execution is a parsed execution spec. A composition has steps. A prompt or a task is represented as a composition with one step, `answer`,
// whose data is the output. A thin tool has Thin and no steps.
type Execution struct {
	Kind        Kind
	Name        string
	Description string
	// Version is the document's version.
	Version string
	// Tool is the contract under which the spec is called like any other tool. Its version is that of the document.
	Tool jig.Tool
	// Steps run one after another.
	Steps []Step
	// Output is a JSON value whose texts are templates. If it is empty, the output is the data of the last step.
	Output json.RawMessage
	// Definition is what the backend of a kind with a backend runs, e.g. a *[ThinTool]. It is nil for a spec that runs step by step.
	Definition any
	// Preview describes what a call will change; nil if the document does not say.
	Preview *toolPreview
}

// toolHead has the keys that all documents callable as tools share.
type toolHead struct {
	Kind string `json:"kind" spec:"required" jsonschema:"composition, prompt, task or thin_tool."`
	// Name must have the form category.actionTarget if the document is to be called as a tool.
	Name         string          `json:"name" spec:"required,max=64,form=spec_name" hint:"add e.g. name: cms.createPageWithContent" jsonschema:"The document's name; category.actionTarget makes it callable as a tool."`
	Description  string          `json:"description,omitempty" spec:"max=4096" jsonschema:"When to use it and what it returns."`
	InputSchema  json.RawMessage `json:"input_schema,omitempty" spec:"form=schema" jsonschema:"JSON Schema 2020-12 of the input; the top level is an object."`
	OutputSchema json.RawMessage `json:"output_schema,omitempty" spec:"form=schema" jsonschema:"JSON Schema 2020-12 of the output; the top level is an object."`
	// Permission applies to the call itself. What its steps do is checked step by step.
	Permission         string   `json:"permission,omitempty" spec:"form=permission" jsonschema:"read, draft (the default), write or destructive. It applies to the call itself; each step is checked separately."`
	Risk               string   `json:"risk,omitempty" spec:"form=risk" jsonschema:"safe, moderate (the default) or high."`
	Approval           string   `json:"approval,omitempty" spec:"form=approval" jsonschema:"auto (the default) or always_ask."`
	RequiredPermission string   `json:"required_permission,omitempty" spec:"max=128" jsonschema:"A permission that the principal must have."`
	Tags               []string `json:"tags,omitempty" spec:"max=32" jsonschema:"Keywords for searching."`
	Icon               string   `json:"icon,omitempty" spec:"max=64" jsonschema:"An icon's name."`
	Undo               string   `json:"undo,omitempty" spec:"max=64,form=tool_name" jsonschema:"The tool that undoes the effect."`
	// UndoInput is evaluated when a session is undone.
	UndoInput Expression `json:"undo_input,omitempty" spec:"max=4096" jsonschema:"CEL over input and result, the output: the input of the undo tool when a session is undone; by default the input."`
	// ConcurrencyKey is evaluated when a call is admitted.
	ConcurrencyKey Expression   `json:"concurrency_key,omitempty" spec:"max=4096" jsonschema:"CEL over input: calls of a pass with the same key run one after another, in the order in which they were requested."`
	Labels         *labels      `json:"labels,omitempty" jsonschema:"Which kinds of data the tool reads, and whether it sends data away. Without labels, its result is not trusted."`
	Preview        *toolPreview `json:"preview,omitempty" jsonschema:"What people see of a call before they approve it; none by default."`
}

// toolDocument is a document that can be called like a tool.
type toolDocument interface{ tool() toolHead }

// tool returns the keys that all documents callable as tools share.
func (h toolHead) tool() toolHead { return h }

// labels are the labels of a contract as documents write them.
type labels struct {
	Reads []string `json:"reads,omitempty" spec:"max=2,form=reads" jsonschema:"What the result may contain: private, untrusted, or both."`
	Sends bool     `json:"sends,omitempty" jsonschema:"Whether a call can carry data out of the tenant."`
}

// contract returns the labels as a contract has them.
func (l *labels) contract() *jig.Labels {
	if l == nil {
		return nil
	}
	return &jig.Labels{Reads: l.Reads, Sends: l.Sends}
}

// compositionHead is a document of kind composition.
type compositionHead struct {
	toolHead
	Steps  []Step          `json:"steps" spec:"required,min=1,max=1000" hint:"add at least one step" jsonschema:"The steps, one after another."`
	Output json.RawMessage `json:"output,omitempty" jsonschema:"The result of the composition; texts in it are templates. Default: the data of the last step."`
}

// promptBody is an alias of Prompt whose name does not hide Prompt's field of the same name.
type promptBody = Prompt

// promptHead is a document of kind prompt.
type promptHead struct {
	toolHead
	promptBody
}

// taskHead is a document of kind task.
type taskHead struct {
	toolHead
	TaskCall
}

// Step is one step of a composition. It has exactly one action: Tool, Prompt, Task, Composition, Steps, Parallel, Switch, Set, Wait,
// WaitUntil, WaitFor, Emit or Fail.
type Step struct {
	// ID names the result, which is read as steps.<id>. It is unique in the document.
	ID string `json:"id,omitempty" spec:"max=64,form=variable" jsonschema:"Names the step's result, read as steps.<id>."`
	// If skips the step when it is false. For a loop, it skips the whole loop.
	If Expression `json:"if,omitempty" spec:"max=4096" jsonschema:"A condition (CEL); the step is skipped when it is false."`
	// ForEach gives a list. The action runs for each item, as item and index; results keep the order of the list.
	ForEach     Expression `json:"for_each,omitempty" spec:"max=4096" jsonschema:"A list (CEL); the action runs once per element, which it reads as item and index."`
	MaxParallel int        `json:"max_parallel,omitempty" spec:"min=1,max=100" jsonschema:"How many elements of a for_each run at the same time; default 10."`

	// Tool is called with Input, a JSON value whose texts are templates.
	Tool  string          `json:"tool,omitempty" spec:"max=64,form=tool_name" jsonschema:"The tool to call."`
	Input json.RawMessage `json:"input,omitempty" spec:"form=mapping" jsonschema:"The input of the tool or composition; texts in it are templates."`
	// Prompt asks a model, a skill or an agent.
	Prompt *Prompt   `json:"prompt,omitempty" jsonschema:"A question to a model, a skill or an agent."`
	Task   *TaskCall `json:"task,omitempty" jsonschema:"A task of an entity to run."`
	// Composition runs another execution spec, by name.
	Composition string `json:"composition,omitempty" spec:"max=64,form=spec_name" jsonschema:"The composition, prompt or task to run, by name."`
	// Steps is a block of steps that run one after another, such as the body of a loop or a branch of parallel.
	Steps    []Step `json:"steps,omitempty" spec:"min=1,max=1000" jsonschema:"A block of steps, one after another."`
	Parallel []Step `json:"parallel,omitempty" spec:"min=1,max=100" jsonschema:"Steps that run at the same time."`
	Switch   []Case `json:"switch,omitempty" spec:"min=1,max=100" jsonschema:"The first case whose condition holds runs."`
	// Set assigns values to vars. Its texts are templates.
	Set json.RawMessage `json:"set,omitempty" spec:"form=settings" jsonschema:"Values to keep, read as vars.<name>; texts in them are templates."`
	// Wait is a length of time, or a template that gives one.
	Wait      string     `json:"wait,omitempty" spec:"max=4096" jsonschema:"How long to wait, e.g. 24h or 3d."`
	WaitUntil Expression `json:"wait_until,omitempty" spec:"max=4096" jsonschema:"The time to wait for: CEL that evaluates to a timestamp."`
	WaitFor   *WaitFor   `json:"wait_for,omitempty" jsonschema:"An event to wait for."`
	Emit      *Emit      `json:"emit,omitempty" jsonschema:"An event to write into the session's log."`
	Fail      *Fail      `json:"fail,omitempty" jsonschema:"Fails the composition."`

	// Output is the data of a block: a JSON value whose texts are templates. Without it the data is an object with the result of each step
	// of the block by id.
	Output json.RawMessage `json:"output,omitempty" jsonschema:"For a block: its result; texts in it are templates."`

	// Timeout limits the step, including all its attempts and the time it waits for people. When it has passed, the step's call is
	// canceled.
	Timeout Duration `json:"timeout,omitempty" spec:"min=1s,max=365d" jsonschema:"Timeout of the step, e.g. 30s or 2d."`
	Retry   *Retry   `json:"retry,omitempty" jsonschema:"Retries after a failure."`
	OnError *OnError `json:"on_error,omitempty" jsonschema:"What happens after a failure: fail (the default), continue, or catch."`
	// Undo undoes the step's effect when a later step fails or the run is canceled.
	Undo *Undo `json:"undo,omitempty" jsonschema:"Undoes the step's effect if a later step fails or the run is canceled."`
}

// Prompt asks a model (mode direct), a model with the instructions of a skill (mode skill), or an agent in a separate session (mode agent).
type Prompt struct {
	Mode string `json:"mode,omitempty" spec:"form=prompt_mode" jsonschema:"direct (the default), skill or agent."`
	// Model is required for direct and skill. For an agent it replaces the agent's own model.
	Model string `json:"model,omitempty" spec:"max=256,form=model" jsonschema:"provider/model; for an agent it replaces the agent's own model."`
	// System and Prompt are templates. For an agent, Prompt is the task.
	System string `json:"system,omitempty" spec:"max=65536" jsonschema:"Instructions for the model; a template."`
	Prompt string `json:"prompt,omitempty" spec:"max=65536" jsonschema:"The question, or the agent's task; a template."`
	Skill  string `json:"skill,omitempty" spec:"max=128,form=name" jsonschema:"The skill's name."`
	Agent  string `json:"agent,omitempty" spec:"max=128,form=name" jsonschema:"The agent's name."`
	// Input is the agent's input. Its texts are templates.
	Input json.RawMessage `json:"agent_input,omitempty" spec:"form=mapping" jsonschema:"The agent's input; texts in it are templates."`
	// Schema asks for a structured answer: JSON that fits the schema, with one attempt to repair it.
	Schema    json.RawMessage `json:"schema,omitempty" spec:"form=schema" jsonschema:"JSON Schema of a structured answer."`
	MaxTokens int             `json:"max_tokens,omitempty" spec:"min=1,max=1000000" jsonschema:"Limit of the answer in tokens; default 4096."`
}

// TaskCall runs one task of an entity, after those that it depends on and that have no value yet.
type TaskCall struct {
	// Task is the id of a task of the entity's type.
	Task string `json:"task" spec:"required,max=64,form=variable" hint:"add the id of a task of the entity's type, e.g. task: risk" jsonschema:"The id of a task of the entity's type."`
	// Entity is a template that gives the entity's id.
	Entity string          `json:"entity" spec:"required,min=1,max=4096" hint:"add e.g. entity: ${input.id}" jsonschema:"The entity's id; a template."`
	Values json.RawMessage `json:"values,omitempty" spec:"form=mapping" jsonschema:"What the tasks read as input; texts in it are templates."`
	// Wait says whether the step waits for the task, whose result is then the step's. The default is true. Otherwise, the task runs in a
	// separate session, and the result names that session.
	Wait *bool `json:"wait,omitempty" jsonschema:"Whether the step waits for the task's result; default true. If not, the result names the session that runs the task."`
}

// Tool returns the name of the tool that the step calls.
func (t TaskCall) Tool() string {
	if t.Wait != nil && !*t.Wait {
		return toolname.TasksStart
	}
	return toolname.TasksRun
}

// Case is a branch of a switch. It has a When or, if it is the last, Else.
type Case struct {
	When  Expression `json:"when,omitempty" spec:"max=4096" jsonschema:"A condition (CEL)."`
	Else  bool       `json:"else,omitempty" jsonschema:"Marks the last branch, which runs if no condition holds."`
	Steps []Step     `json:"steps" spec:"required,min=1,max=1000" jsonschema:"The steps of the branch."`
}

// WaitFor waits for an `event` signal to the session. An event that was received earlier, but since the composition began, also ends the
// wait. Each event ends only one wait.
type WaitFor struct {
	Event string `json:"event" spec:"required,max=128,form=name" jsonschema:"The event's name."`
	// When is a condition on the `event`, which is {name, data}.
	When Expression `json:"when,omitempty" spec:"max=4096" jsonschema:"A condition over event ({name, data})."`
	// Timeout is the time after which the step fails with TIMEOUT. By default there is no limit.
	Timeout Duration `json:"timeout,omitempty" spec:"min=1s,max=3650d" jsonschema:"How long to wait before the step fails with TIMEOUT."`
}

// Emit writes the event custom.<name>.
type Emit struct {
	Event string          `json:"event" spec:"required,max=128,form=name" jsonschema:"The event's name; it is written as custom.<name>."`
	Data  json.RawMessage `json:"data,omitempty" jsonschema:"The event's data; texts in it are templates."`
}

// Fail ends the composition as failed.
type Fail struct {
	Message string `json:"message" spec:"required,max=4096" jsonschema:"What is wrong; a template."`
	// Reason is a more specific code that the author chooses.
	Reason string `json:"reason,omitempty" spec:"max=64" jsonschema:"A more specific code of your own."`
}

// Retry repeats a failed action, each time under a new call id. Denied, expired, canceled and unknown outcomes are never retried.
type Retry struct {
	// MaxAttempts includes the first attempt.
	MaxAttempts int `json:"max_attempts" spec:"required,min=1,max=100" jsonschema:"Attempts in total."`
	// Backoff is the wait before the second attempt. It doubles with each further attempt, up to MaxBackoff. The defaults are 1s and 1m.
	Backoff    Duration `json:"backoff,omitempty" spec:"min=1s,max=30d" jsonschema:"The wait before the second attempt; it doubles. Default 1s."`
	MaxBackoff Duration `json:"max_backoff,omitempty" spec:"min=1s,max=30d" jsonschema:"The longest wait; default 1m."`
	// When selects the errors that are retried. If it is empty, all retryable errors are.
	When Expression `json:"when,omitempty" spec:"max=4096" jsonschema:"Which errors are retried: CEL over error ({code, message, field})."`
}

// OnError says what happens when a step fails: the composition fails (the default), continues, or catches the error. In a document it is
// `fail`, `continue` or a mapping.
type OnError struct {
	Continue bool `json:"-"`
	// Catch runs instead of failing. As names the error in its expressions (default error). When selects the errors.
	Catch []Step     `json:"catch" spec:"required,min=1,max=1000" jsonschema:"The steps that handle the failure."`
	As    string     `json:"as,omitempty" spec:"max=64,form=variable" jsonschema:"The name under which they read the error; default error."`
	When  Expression `json:"when,omitempty" spec:"max=4096" jsonschema:"Which errors are caught: CEL that reads the error by its name."`
}

// Undo undoes a step's effect. Input is rendered when the step has succeeded. If Tool is empty, the undo tool is the one that the contract
// of the step's tool names.
type Undo struct {
	Tool  string          `json:"tool,omitempty" spec:"max=64,form=tool_name" jsonschema:"The tool that undoes the effect; default: the undo tool of the step's tool."`
	Input json.RawMessage `json:"input,omitempty" spec:"form=mapping" jsonschema:"Its input; texts in it are templates."`
}

// maxPreviewChanges bounds the list of changes in a document.
const maxPreviewChanges = 100

// toolPreview describes, in the document of a tool, what a call will change. Its texts are templates over input, tenant, principal and, if Read is
// set, the output of that call as read.data.
type toolPreview struct {
	// Read is a call that is made before the texts are rendered; nil for none.
	Read  *previewRead `json:"read,omitempty" jsonschema:"A call of a tool that only reads; the texts use its output as read.data."`
	Title string       `json:"title" spec:"required,min=1,max=4096" hint:"add e.g. title: Publishes ${input.id}" jsonschema:"What will happen, in one line; a template."`
	// Changes is a list of templates, or one template that gives a list of texts.
	Changes  json.RawMessage `json:"changes,omitempty" spec:"form=list" jsonschema:"What will change: a list of templates, or one expression that evaluates to a list of texts."`
	Markdown string          `json:"markdown,omitempty" spec:"max=4096" jsonschema:"More about it, in Markdown; a template."`
}

// previewRead is the call whose output a preview uses.
type previewRead struct {
	Tool  string          `json:"tool" spec:"required,max=64,form=tool_name" hint:"add e.g. tool: entities.get" jsonschema:"A tool that only reads and sends nothing away."`
	Input json.RawMessage `json:"input,omitempty" spec:"form=mapping" jsonschema:"Its input; texts in it are templates."`
}

// checkPreview checks the preview of a document: its shape and its expressions.
func (d *decoder) checkPreview(x Execution) {
	if x.Preview == nil {
		return
	}
	if n := d.places["preview.changes"]; n != nil && len(n.items) > maxPreviewChanges {
		d.at("preview.changes", ProblemTooMany, "use one expression that gives a list", "there are %d changes, at most %d are allowed", len(n.items), maxPreviewChanges)
		return
	}
	d.checkList("preview.changes")
	if x.Preview.Read != nil {
		d.checkInput("preview.read.input")
	}
	d.previewExpressions(x, nil)
}

// previewExpressions checks the expressions of a preview. output is the schema of the data that it reads; nil if it is not known.
func (d *decoder) previewExpressions(x Execution, output json.RawMessage) {
	env, err := expr.PreviewUse().Env()
	if err != nil {
		d.at("preview", ProblemBadCEL, "", "expressions cannot be checked: %v", err)
		return
	}
	text := jsonObject{{"type", "string"}}
	texts := jsonObject{{"type", "array"}, {"items", text}}
	shapes := func(read jsonObject) expr.Shapes {
		all := expr.Shapes{
			"principal": writeJSON(closedObject(jsonObject{{"id", text}, {"groups", texts}, {"permissions", texts}})),
			"read":      writeJSON(closedObject(read)),
		}
		if len(x.Tool.InputSchema) > 0 {
			all["input"] = x.Tool.InputSchema
		}
		return all
	}
	s := &thinSites{compiler: compiler{decoder: d, env: env}, before: len(d.problems), shapes: shapes(jsonObject{})}
	s.document("preview.read.input", "object")
	if x.Preview.Read != nil {
		s.shapes = shapes(jsonObject{{"data", jsonObject{}}})
		if len(output) > 0 {
			s.shapes["read.data"] = output
		}
	}
	s.text("preview.title", false)
	s.list("preview.changes")
	s.text("preview.markdown", false)
}

// checkPreviewRead checks the call of a preview against the tool: it must only read, and the expressions use what it returns.
func (k *checker) checkPreviewRead(doc *Document) {
	x := doc.Execution()
	if doc.broken || x.Preview == nil || x.Preview.Read == nil {
		return
	}
	at, read := (*place)(nil).key("preview").key("read"), x.Preview.Read
	if k.tools.missing(read.Tool) {
		k.report(doc, at.key("tool"), ProblemUnknownTool, k.suggest("tool", read.Tool, k.tools.sorted), "there is no tool %q", read.Tool)
		return
	}
	tool := k.contracts[read.Tool]
	switch {
	case k.specs.all[read.Tool] != nil:
		k.report(doc, at.key("tool"), ProblemBadValue, "call a tool such as entities.get", "%s is a document; a preview can only call a tool in code", read.Tool)
		return
	case tool == nil:
		return // nothing is known about the tools
	case !tool.OnlyReads():
		k.report(doc, at.key("tool"), ProblemBadValue, "call a tool such as entities.get", "a preview only reads, and %s does more than that or sends data away", read.Tool)
		return
	}
	k.checkInput(doc, k.tools.all[read.Tool], call{kind: callTool, name: read.Tool, within: at, key: "tool", input: read.Input, inputKey: "input"})
	d := newDecoder(doc.Path)
	d.places = doc.places
	d.previewExpressions(*x, tool.OutputSchema)
	k.problems = append(k.problems, d.problems...)
}

// preview writes what people see of a call before they approve it.
func (o *outline) preview(p *toolPreview) {
	if p == nil {
		return
	}
	o.line(0, "people who approve it see: %s", p.Title)
	if p.Read != nil {
		o.line(1, "after a call of %s %s", p.Read.Tool, strings.TrimSpace(string(p.Read.Input)))
	}
	if len(p.Changes) > 0 {
		o.line(1, "changes %s", p.Changes)
	}
}
