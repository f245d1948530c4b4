package spec

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jig-run/jig"
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
		d.add(Problem{Code: ProblemMissingKey, Line: 1, Column: 1, Message: "the document has no instructions", Hint: "write them below the front matter"})
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
	if len(body) > MaxDocumentBytes || !utf8.Valid(body) {
		return body, "", true // parseTree reports the size or the encoding
	}
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	if !isFence(body) {
		d.add(Problem{Line: 1, Column: 1, Code: ProblemSyntax, Message: "the document has no front matter", Hint: hint})
		return nil, "", false
	}
	for at := lineEnd(body, 0); at < len(body); at = lineEnd(body, at) {
		if isFence(body[at:]) {
			return body[:at], strings.TrimSpace(string(body[lineEnd(body, at):])), true
		}
	}
	d.add(Problem{Line: 1, Column: 1, Code: ProblemSyntax, Message: "the front matter is not closed", Hint: hint})
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
