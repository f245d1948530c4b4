package spec

import (
	"encoding/json"
	"strings"
)

// place is a path within a document that is written out only when there is something to say about it; nil is the document.
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

// callKind is what a name of a step means.
type callKind int

const (
	callTool callKind = iota
	callComposition
	callAgent
	callSkill
	callTask
)

// call is one name that a step calls, with what it gives it.
type call struct {
	kind callKind
	name string
	// within is the mapping that has the name under a key, and the input under another.
	within        *place
	key, inputKey string
	// input is nil when the step gives none.
	input json.RawMessage
	// undoes is the tool whose effect the call takes back, when the document leaves it to that tool's contract what does: name is
	// empty then.
	undoes string
	// retries is the key that asks for further attempts; empty when there is one alone.
	retries string
}

func (c call) at() *place      { return c.within.key(c.key) }
func (c call) inputAt() *place { return c.within.key(c.inputKey) }

// walkCalls visits every call of a spec in the order of the document: nested steps, catches and undo included.
func walkCalls(x Execution, visit func(call)) {
	var root *place
	if x.Kind == KindPrompt || x.Kind == KindTask { // the document's own keys are the one step's
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

// inputCalls visits the agent, skill or task that a step names to the tool that stands behind prompts and tasks.
func inputCalls(s *Step, at *place, visit func(call)) {
	var kind callKind
	var key string
	switch s.Tool {
	case "agent.run":
		kind, key = callAgent, "agent"
	case "prompt.skill":
		kind, key = callSkill, "skill"
	case "task.run":
		kind, key = callTask, "task"
	default:
		return
	}
	var input map[string]json.RawMessage
	var name string
	if json.Unmarshal(s.Input, &input) != nil || json.Unmarshal(input[key], &name) != nil || name == "" || strings.Contains(name, "${") {
		return // chosen when it runs
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
