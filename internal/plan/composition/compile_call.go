package composition

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
)

// called compiles a call that has a document as its input.
func (c *compiler) called(tool string, input json.RawMessage, at string, in within) (*callPlan, error) {
	doc, err := c.optional(input, expr.JoinPath(at, "input"), in)
	return &callPlan{tool: tool, at: expr.JoinPath(at, "input"), input: doc, named: tool == toolname.AgentRun && namesAgent(input)}, err
}

// namesAgent reports whether the input of a call of agent.run names the agent literally, without an expression.
func namesAgent(input json.RawMessage) bool {
	var members map[string]json.RawMessage
	var name string
	return json.Unmarshal(input, &members) == nil && json.Unmarshal(members["agent"], &name) == nil && !strings.Contains(name, "${")
}

func (c *compiler) prompt(p spec.Prompt, at string, in within) (*callPlan, error) {
	call := &callPlan{at: at}
	parts := partsOf{compiler: c, call: call, at: at, in: in}
	parts.fixed("model", p.Model)
	switch p.Mode {
	case "agent":
		call.tool, call.named = toolname.AgentRun, true
		parts.fixed("agent", p.Agent)
		parts.text("task", "prompt", p.Prompt)
		parts.document("input", "agent_input", p.Input)
		c.answerAs(call, p.Schema)
		return call, parts.err
	case "skill":
		call.tool = toolname.PromptSkill
		parts.fixed("skill", p.Skill)
		parts.text("system", "system", p.System)
		parts.text("prompt", "prompt", p.Prompt)
	case "", "direct":
		call.tool = toolname.PromptDirect
		parts.text("system", "system", p.System)
		parts.text("prompt", "prompt", p.Prompt)
	default:
		return nil, c.plan.Fault(expr.JoinPath(at, "mode"), "%q is not a prompt mode", p.Mode)
	}
	if len(p.Schema) > 0 {
		call.parts = append(call.parts, part{name: "schema", fixed: p.Schema})
	}
	if p.MaxTokens > 0 {
		parts.fixed("max_tokens", p.MaxTokens)
	}
	return call, parts.err
}

// answerAs asks an agent to answer in JSON that fits schema, and marks the call so that the answer is parsed.
func (c *compiler) answerAs(call *callPlan, schema json.RawMessage) {
	if len(schema) == 0 {
		return
	}
	call.parse = true
	wanted := plan.InJSON(schema)
	at := slices.IndexFunc(call.parts, func(p part) bool { return p.name == "task" })
	if at >= 0 {
		call.parts[at].after = "\n\n" + wanted
		return
	}
	raw, err := jsontext.Encode(wanted)
	if err == nil { // a string always encodes
		call.parts = append(call.parts, part{name: "task", fixed: raw})
	}
}

func (c *compiler) task(t spec.TaskCall, at string, in within) (*callPlan, error) {
	call := &callPlan{tool: t.Tool(), at: at}
	parts := partsOf{compiler: c, call: call, at: at, in: in}
	parts.fixed("task", t.Task)
	parts.text("entity", "entity", t.Entity)
	parts.document("values", "values", t.Values)
	return call, parts.err
}

// partsOf collects the parts of an input and leaves out empty ones. The first error stops it and stays in err.
type partsOf struct {
	*compiler
	call *callPlan
	at   string
	in   within
	err  error
}

func (p *partsOf) fixed(name string, value any) {
	if value == "" || p.err != nil {
		return
	}
	raw, err := json.Marshal(value)
	p.call.parts, p.err = append(p.call.parts, part{name: name, fixed: raw}), err
}

func (p *partsOf) text(name, key, source string) {
	if source == "" || p.err != nil {
		return
	}
	t, err := p.template(source, expr.JoinPath(p.at, key), p.in)
	p.call.parts, p.err = append(p.call.parts, part{name: name, text: t}), err
}

func (p *partsOf) document(name, key string, source json.RawMessage) {
	if len(source) == 0 || p.err != nil {
		return
	}
	d, err := p.compiler.document(source, expr.JoinPath(p.at, key), p.in)
	p.call.parts, p.err = append(p.call.parts, part{name: name, doc: d}), err
}
