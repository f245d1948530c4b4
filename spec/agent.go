package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/duration"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/toolname"
)

// agentHead is the front matter of an agent document.
type agentHead struct {
	// Kind is "agent" or empty; a Markdown file with front matter is an agent by default.
	Kind string `json:"kind,omitempty" jsonschema:"Always agent; optional."`
	Name string `json:"name" spec:"required,max=128,form=name" hint:"add e.g. name: dependency-review" jsonschema:"The agent's name: lower-case letters, digits, '.', '_' and '-'."`
	// Description tells people, and agents that delegate, what the agent is for.
	Description string `json:"description,omitempty" spec:"max=4096" jsonschema:"What the agent is for, in a sentence or two."`
	Model       string `json:"model" spec:"required,max=256,form=model" hint:"add e.g. model: anthropic/claude-sonnet-4-5" jsonschema:"provider/model: anthropic/…, openai/… or script/…"`
	// Tools is the whitelist. By default the agent has no tools.
	Tools []string `json:"tools,omitempty" spec:"max=512,form=tool" jsonschema:"The tools the agent may use: names, category.* or * for all."`
	// Agents are the agents that this agent may start. By default it may start no agents.
	Agents []string `json:"agents,omitempty" spec:"max=512,form=name" jsonschema:"The agents that the agent may start with agent.run; none by default."`
	// Models are the models that a caller may choose in place of Model. By default a caller may not choose a model.
	Models []string `json:"models,omitempty" spec:"max=64,form=model_choice" jsonschema:"The models that an agent or a composition that starts this agent may choose instead of model: provider/model, provider/* or *; none by default."`
	// InputSchema describes the session's input. Without it any object is accepted.
	InputSchema json.RawMessage `json:"input_schema,omitempty" spec:"form=schema" jsonschema:"JSON Schema 2020-12 of the session's input; the top level is an object."`
	Script      *script         `json:"script,omitempty" jsonschema:"The rules of a script/… model."`

	MaxPasses        int      `json:"max_passes,omitempty" spec:"min=1,max=100000" jsonschema:"The session ends after this many passes; default 50."`
	MaxParallelCalls int      `json:"max_parallel_calls,omitempty" spec:"min=1,max=1000" jsonschema:"How many calls of a pass run at the same time; default 10."`
	PassesPerRun     passes   `json:"passes_per_run,omitempty" spec:"form=passes" jsonschema:"How many passes share a workflow run, or auto: quick passes share a run until its history has grown long; default 1."`
	TokenBudget      int      `json:"token_budget,omitempty" spec:"min=1000,max=10000000" jsonschema:"Limit of the prompt in tokens; default 100000."`
	MaxTokens        int      `json:"max_tokens,omitempty" spec:"min=1,max=1000000" jsonschema:"Limit of one answer in tokens; default 8192."`
	MaxTotalTokens   int64    `json:"max_total_tokens,omitempty" spec:"min=1,max=1000000000000" jsonschema:"Limit of the whole session in tokens; no limit by default."`
	Deadline         Duration `json:"deadline,omitempty" spec:"min=1s,max=3650d" jsonschema:"How long the session may last, e.g. 48h or 3d; no limit by default."`
	ApprovalExpires  Duration `json:"approval_expires,omitempty" spec:"min=1s,max=365d" jsonschema:"How long a call waits for a decision; default 7d."`
}

// passes is a number of passes as documents write it, or auto.
type passes string

// number returns the number of passes; 0 if there is none, [jig.PassesAuto] for auto.
func (p passes) number() int {
	if p == "auto" {
		return jig.PassesAuto
	}
	n, err := strconv.Atoi(string(p))
	if err != nil { // it is empty, or was reported
		return 0
	}
	return n
}

// ParseAgent reads an agent document: Markdown with YAML front matter. document is the file name for error messages. The error is a
// [Problems] with everything that is wrong.
func ParseAgent(document string, body []byte) (jig.Agent, error) {
	return loadAs[jig.Agent](KindAgent, document, body)
}

// CheckAgent reads an agent document and also returns warnings. The agent is usable only if no problem is an error.
func CheckAgent(document string, body []byte) (jig.Agent, Problems) {
	doc, problems := KindAgent.row().load(document, body)
	return *doc.Agent(), problems
}

func (d *decoder) agent(h agentHead, s source) jig.Agent {
	d.checkHead(h, s.text)
	agent := jig.Agent{
		Name: h.Name, Description: h.Description, Version: s.version, Model: h.Model, Instructions: s.text,
		Tools: h.Tools, Agents: h.Agents, Models: h.Models, InputSchema: h.InputSchema,
		Limits: jig.Limits{
			MaxPasses: h.MaxPasses, MaxParallelCalls: h.MaxParallelCalls, PassesPerRun: h.PassesPerRun.number(), TokenBudget: h.TokenBudget,
			MaxTokens: h.MaxTokens, MaxTotalTokens: h.MaxTotalTokens,
			Deadline: time.Duration(h.Deadline), ApprovalExpires: time.Duration(h.ApprovalExpires),
		},
	}
	if h.Script != nil {
		agent.Script = h.Script.json()
	}
	return agent
}

// checkHead checks rules that involve more than one key.
func (d *decoder) checkHead(h agentHead, text string) {
	if h.Name == jig.CallAgent {
		d.at("name", ProblemBadName, "give it another name", "%q is reserved for single calls, which no agent makes", h.Name)
	}
	scripted := strings.HasPrefix(h.Model, "script/")
	if scripted && h.Script == nil {
		d.at("script", ProblemMissingKey, "add script: {rules: […]}", "the model %q needs the document's script", h.Model)
	}
	if !scripted && text == "" {
		d.add(Problem{Code: ProblemMissingKey, Line: 1, Column: 1, Hint: "write them below the front matter"}.saying("the document has no instructions"))
	}
	if h.Script != nil {
		d.checkScript(*h.Script, h)
	}
	if h.InputSchema != nil {
		d.checkSchema("input_schema", h.InputSchema)
	}
}

// frontMatter splits the document at its --- lines. The head includes the first of them, so that line numbers in it match the file's.
func (d *decoder) frontMatter(body []byte) (head []byte, text string, ok bool) {
	const hint = "begin the file with a line ---, the settings, and another line ---"
	if len(body) > MaxDocumentBytes || notUTF8(body) != nil {
		return body, "", true // parseTree reports the size or the encoding
	}
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	if !isFence(body) {
		d.add(Problem{Line: 1, Column: 1, Code: ProblemSyntax, Hint: hint}.saying("the document has no front matter"))
		return nil, "", false
	}
	for at := lineEnd(body, 0); at < len(body); at = lineEnd(body, at) {
		if isFence(body[at:]) {
			return body[:at], strings.TrimSpace(string(body[lineEnd(body, at):])), true
		}
	}
	d.add(Problem{Line: 1, Column: 1, Code: ProblemSyntax, Hint: hint}.saying("the front matter is not closed"))
	return nil, "", false
}

// isFence reports whether text begins with a line of three dashes.
func isFence(text []byte) bool {
	return string(bytes.TrimRight(text[:lineEnd(text, 0)], " \t\r\n")) == "---"
}

// lineEnd returns the offset of the line after the one that begins at from.
func lineEnd(text []byte, from int) int {
	if i := bytes.IndexByte(text[from:], '\n'); i >= 0 {
		return from + i + 1
	}
	return len(text)
}

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
	d.schemaInput(call.Tool, path+".input", call.Input)
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

func explainAgent(doc Document, _ []Document, tools []jig.Tool) (text, diagram string) {
	return ExplainAgent(*doc.Agent(), tools...), ""
}

// ExplainAgent returns a short text for a terminal: who the agent is, what it may use, and its limits. Given the tools of a catalog, it
// says which tools the whitelist includes, and which of them ask a person.
func ExplainAgent(a jig.Agent, tools ...jig.Tool) string {
	o := &outline{tools: toolsByName(tools)}
	o.line(0, "agent %s%s", a.Name, versionText(a.Version))
	if a.Description != "" {
		o.line(0, "%s", a.Description)
	}
	o.line(0, "model: %s", a.Model)
	if members := membersText(a.InputSchema); members != "" {
		o.line(0, "input: %s", members)
	}
	limits := a.Limits.WithDefaults()
	o.line(0, "%s", limitsText(limits))
	o.b.WriteByte('\n')
	if len(a.Agents) > 0 {
		o.line(0, "It may start: %s", strings.Join(a.Agents, ", "))
	}
	if len(a.Models) > 0 {
		o.line(0, "A caller may choose the model: %s", strings.Join(a.Models, ", "))
	}
	if len(a.Tools) == 0 {
		o.line(0, "It has no tools.")
		return o.b.String()
	}
	o.line(0, "It may use:")
	tools = slices.SortedFunc(slices.Values(tools), func(x, y jig.Tool) int { return strings.Compare(x.Name, y.Name) })
	for _, entry := range a.Tools {
		o.whitelisted(entry, tools)
	}
	return o.b.String()
}

// whitelisted writes an entry of a whitelist with the tools that it includes.
func (o *outline) whitelisted(entry string, tools []jig.Tool) {
	prefix, wild := strings.CutSuffix(entry, "*")
	if !wild {
		o.tool(1, entry)
		return
	}
	o.line(1, "%s", entry)
	if len(tools) == 0 {
		return
	}
	found := false
	for _, t := range tools {
		if strings.HasPrefix(t.Name, prefix) {
			o.tool(2, t.Name)
			found = true
		}
	}
	if !found {
		o.line(2, "the catalog has no such tool")
	}
}

func (o *outline) tool(depth int, name string) {
	t, known := o.tools[name]
	switch asks := asksText(t); {
	case known && asks != "":
		o.line(depth, "%s %s", name, asks)
	case !known && len(o.tools) > 0:
		o.line(depth, "%s (the catalog has no such tool)", name)
	default:
		o.line(depth, "%s", name)
	}
}

func limitsText(l jig.Limits) string {
	text := fmt.Sprintf("ends after %d passes", l.MaxPasses)
	if l.Deadline > 0 {
		text += " or " + duration.Format(l.Deadline)
	}
	if l.MaxTotalTokens > 0 {
		text += fmt.Sprintf(" or %d tokens", l.MaxTotalTokens)
	}
	return text + fmt.Sprintf("; %d calls at a time; an approval waits %s", l.MaxParallelCalls, duration.Format(l.ApprovalExpires))
}
