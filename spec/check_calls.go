package spec

import (
	"encoding/json"
	"strings"

	"github.com/jig-run/jig/internal/toolname"
)

// place is a path in a document. It is turned into text only when a problem is reported there. A nil place is the document itself.
type place struct {
	up    *place
	name  string
	index int
}

func (p *place) key(name string) *place { return &place{up: p, name: name, index: -1} }
func (p *place) item(i int) *place      { return &place{up: p, index: i} }

func (p *place) String() string {
	switch {
	case p == nil:
		return ""
	case p.index >= 0:
		return indexPath(p.up.String(), p.index)
	}
	return keyPath(p.up.String(), p.name)
}

// callKind says what the name in a call refers to.
type callKind int

const (
	callTool callKind = iota
	callComposition
	callAgent
	callSkill
	callTask
)

// call is a call that a step makes: the name of a tool, spec, agent, skill or task, and the input.
type call struct {
	kind callKind
	name string
	// within is the mapping that holds the name under key, and the input under inputKey.
	within        *place
	key, inputKey string
	// input is nil if the step has none.
	input json.RawMessage
	// undoes is the tool whose effect the call undoes. It is set only if the document does not name the undo tool, so that the contract of
	// the undone tool determines it. name is then empty.
	undoes string
	// retries is the key that asks for further attempts. It is empty if there is only one attempt.
	retries string
}

func (c call) at() *place      { return c.within.key(c.key) }
func (c call) inputAt() *place { return c.within.key(c.inputKey) }

// walkCalls visits every call of a spec in document order, including those in nested steps, catches and undos.
func walkCalls(x Execution, visit func(call)) {
	var root *place
	if x.Kind.SingleStep() { // the document's own keys are those of its only step
		for i := range x.Steps {
			promptCalls(x.Steps[i].Prompt, root, visit)
			taskCalls(x.Steps[i].Task, root, visit)
		}
		return
	}
	walkBlock(x.Steps, root, "steps", visit)
}

// walkBlock visits the steps under a key.
func walkBlock(steps []Step, within *place, key string, visit func(call)) {
	if len(steps) == 0 {
		return
	}
	at := within.key(key)
	for i := range steps {
		stepCalls(&steps[i], at.item(i), visit)
	}
}

func stepCalls(s *Step, at *place, visit func(call)) {
	if s.Tool != "" {
		own := call{kind: callTool, name: s.Tool, within: at, key: "tool", input: s.Input, inputKey: "input"}
		if s.Retry != nil && s.Retry.MaxAttempts > 1 {
			own.retries = "retry"
		}
		visit(own)
	}
	inputCalls(s, at, visit)
	if s.Composition != "" {
		visit(call{kind: callComposition, name: s.Composition, within: at, key: "composition", input: s.Input, inputKey: "input"})
	}
	if s.Prompt != nil {
		promptCalls(s.Prompt, at.key("prompt"), visit)
	}
	if s.Task != nil {
		taskCalls(s.Task, at.key("task"), visit)
	}
	walkBlock(s.Steps, at, "steps", visit)
	walkBlock(s.Parallel, at, "parallel", visit)
	for i := range s.Switch {
		walkBlock(s.Switch[i].Steps, at.key("switch").item(i), "steps", visit)
	}
	if s.OnError != nil {
		walkBlock(s.OnError.Catch, at.key("on_error"), "catch", visit)
	}
	if s.Undo != nil {
		undo := call{kind: callTool, name: s.Undo.Tool, within: at.key("undo"), key: "tool", input: s.Undo.Input, inputKey: "input"}
		if undo.name == "" {
			undo.undoes = s.Tool + s.Composition
		}
		visit(undo)
	}
}

// inputCalls visits the agent, skill or task that is named in a step's input, if the step calls the tools behind prompts and tasks directly.
func inputCalls(s *Step, at *place, visit func(call)) {
	var kind callKind
	var key string
	switch s.Tool {
	case toolname.AgentRun:
		kind, key = callAgent, "agent"
	case toolname.PromptSkill:
		kind, key = callSkill, "skill"
	case toolname.TasksRun, toolname.TasksStart:
		kind, key = callTask, "task"
	default:
		return
	}
	var input map[string]json.RawMessage
	var name string
	if json.Unmarshal(s.Input, &input) != nil || json.Unmarshal(input[key], &name) != nil || name == "" || strings.Contains(name, "${") {
		return // the name is chosen at run time
	}
	visit(call{kind: kind, name: name, within: at.key("input"), key: key, input: input["input"], inputKey: "input"})
}

func promptCalls(p *Prompt, at *place, visit func(call)) {
	if p == nil {
		return
	}
	if p.Agent != "" {
		visit(call{kind: callAgent, name: p.Agent, within: at, key: "agent", input: p.Input, inputKey: "agent_input"})
	}
	if p.Skill != "" {
		visit(call{kind: callSkill, name: p.Skill, within: at, key: "skill"})
	}
}

func taskCalls(t *TaskCall, at *place, visit func(call)) {
	if t != nil && t.Task != "" {
		visit(call{kind: callTask, name: t.Task, within: at, key: "task"})
	}
}
