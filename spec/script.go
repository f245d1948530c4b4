package spec

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/toolname"
)

// script holds the rules of a script model. In each pass, the first rule whose condition holds applies. This package compiles the expressions
// only to find mistakes before anything runs; package model runs them and documents their variables.
type script struct {
	Rules []scriptRule `json:"rules" spec:"required,min=1,max=256" hint:"add at least one rule" jsonschema:"The first rule whose condition holds is used."`
}

// scriptRule makes calls or gives the final answer.
type scriptRule struct {
	// When is the condition (CEL). A rule without one always applies.
	When Expression `json:"when,omitempty" spec:"max=16384" jsonschema:"The condition (CEL); a rule without one always holds."`
	// Let names values for the expressions that follow, in order.
	Let []scriptLet `json:"let,omitempty" spec:"max=64" jsonschema:"Named values for the expressions that follow, in order."`
	// Say is the text of the model's turn, next to its calls.
	Say string `json:"say,omitempty" spec:"max=65536" jsonschema:"Text that accompanies the calls; a template."`
	// ForEach gives a list (CEL). The calls are made for each item.
	ForEach Expression   `json:"for_each,omitempty" spec:"max=16384" jsonschema:"A list (CEL); the calls are made once per element."`
	Calls   []scriptCall `json:"calls,omitempty" spec:"max=64" jsonschema:"The calls to make."`
	// Answer ends the session.
	Answer string `json:"answer,omitempty" spec:"max=65536" jsonschema:"The final answer; a template."`
}

// scriptLet names a value.
type scriptLet struct {
	Name  string     `json:"name" spec:"required,max=64,form=variable" jsonschema:"The name that later expressions use, as vars.name."`
	Value Expression `json:"value" spec:"required,max=16384" jsonschema:"The value (CEL)."`
}

// scriptCall is one call of a rule.
type scriptCall struct {
	// ForEach gives a list (CEL). This call is made for each item.
	ForEach Expression `json:"for_each,omitempty" spec:"max=16384" jsonschema:"A list (CEL); this call is made once per element. Only in a rule without for_each."`

	Tool string `json:"tool" spec:"required,max=16384,form=call" jsonschema:"The tool's name; a template may choose it."`
	// Input is a value whose texts are templates.
	Input json.RawMessage `json:"input,omitempty" spec:"form=mapping" jsonschema:"The input; texts in it are templates."`
}

// json returns the script in the form that the model reads.
func (s script) json() json.RawMessage {
	raw, err := jsontext.Encode(s)
	if err != nil {
		panic("spec: cannot marshal a script: " + err.Error()) // its raw parts were made by node.json
	}
	return raw
}

// checkScript checks that each rule either makes calls or answers, that the agent may use the tools that are called, and that the
// expressions compile.
func (d *decoder) checkScript(s script, agent agentHead) {
	for i, rule := range s.Rules {
		path := indexPath("script.rules", i)
		switch {
		case len(rule.Calls) == 0 && rule.Answer == "":
			d.at(path, ProblemBadShape, "give it calls or an answer", "the rule does nothing")
		case len(rule.Calls) > 0 && rule.Answer != "":
			d.at(path+".answer", ProblemBadShape, "use say for text that accompanies calls", "a rule with calls cannot answer")
		case rule.ForEach != "" && len(rule.Calls) == 0:
			d.at(path+".for_each", ProblemBadShape, "add calls", "for_each has no calls to repeat")
		}
		for j, call := range rule.Calls {
			if rule.ForEach != "" && call.ForEach != "" {
				d.at(indexPath(path+".calls", j)+".for_each", ProblemBadShape, "remove one of the two", "the rule's for_each already repeats its calls")
			}
			d.checkScriptCall(indexPath(path+".calls", j), call, agent)
		}
	}
	d.compileScript(s)
}

func (d *decoder) checkScriptCall(path string, call scriptCall, agent agentHead) {
	if raw := bytes.TrimSpace(call.Input); len(raw) > 0 && raw[0] != '{' && !isTemplate(raw) {
		d.at(path+".input", ProblemWrongType, "", "the input must be a mapping")
	}
	if jig.CheckToolName(call.Tool) != nil {
		return // reported before: the text has the wrong form
	}
	if !slices.ContainsFunc(agent.Tools, func(pattern string) bool { return covers(pattern, call.Tool) }) {
		d.at(path+".tool", ProblemBadValue, "add it to tools", "the agent's tools do not include %s", call.Tool)
	}
	if name, ok := startedAgent(call.Tool, call.Input); ok && !slices.Contains(agent.Agents, name) {
		d.at(path+".input.agent", ProblemBadValue, "add it to agents", "the agents that this agent may start do not include %q", name)
	}
}

// startedAgent returns the agent that a call starts, if its input names one literally.
func startedAgent(tool string, input json.RawMessage) (name string, ok bool) {
	var members map[string]json.RawMessage
	if tool != toolname.AgentRun || json.Unmarshal(input, &members) != nil || json.Unmarshal(members["agent"], &name) != nil {
		return "", false
	}
	return name, name != "" && !strings.Contains(name, "${")
}

// isTemplate reports whether a JSON string is a single expression.
func isTemplate(raw []byte) bool {
	return bytes.HasPrefix(raw, []byte(`"${`)) && bytes.HasSuffix(raw, []byte(`}"`))
}

// covers reports whether an entry of a whitelist (a name, category.* or *) includes a tool.
func covers(pattern, tool string) bool {
	prefix, wild := strings.CutSuffix(pattern, "*")
	return pattern == tool || wild && strings.HasPrefix(tool, prefix)
}
