package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jig-run/jig"
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

// templateForm says how much of a text in a document is known before it runs.
type templateForm int

const (
	// noTemplate is a text without expressions.
	noTemplate templateForm = iota
	// mixedTemplate is a text with expressions in it. Its value is always a text.
	mixedTemplate
	// wholeTemplate is a single expression, which may give anything.
	wholeTemplate
)

// readTemplate returns the form of a text and, if it has no expressions, its literal value, with `$${` replaced by `${`.
func readTemplate(text string) (literal string, form templateForm) {
	if !strings.Contains(text, "${") {
		return text, noTemplate
	}
	if strings.HasPrefix(text, "${") && endsExpression(text[2:]) {
		return "", wholeTemplate
	}
	rest := strings.ReplaceAll(text, "$${", "")
	if strings.Contains(rest, "${") {
		return text, mixedTemplate
	}
	return strings.ReplaceAll(text, "$${", "${"), noTemplate
}

// endsExpression reports whether the brace that closes an expression may be the last character of the text. It returns true if only a CEL
// parser could tell, as with raw strings, triple-quoted strings and comments.
func endsExpression(text string) bool {
	if strings.Contains(text, "//") || strings.Contains(text, `"""`) || strings.Contains(text, `'''`) ||
		strings.ContainsAny(text, `rR`) && strings.Contains(text, `\`) {
		return true
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i == len(text)-1
			}
			depth--
		case '"', '\'':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
	}
	return true // not closed: parsing the expression reports it
}

// contract is a JSON Schema that the values in a document, which may contain templates, are compared with.
type contract struct {
	raw json.RawMessage
	// of is the name used in messages, e.g. "the input of file.read".
	of string

	read   bool
	schema any
	// open says that any object fits.
	open bool
}

// checkInput reports the places where the input of a call cannot fit the schema, whatever values its templates give.
func (k *checker) checkInput(doc *Document, target *contract, c call) {
	target.load()
	if target.open && (len(c.input) == 0 || c.input[0] == '{') {
		return
	}
	var value any = map[string]any{}
	if len(c.input) > 0 {
		var ok bool
		if value, ok = decodeLoosely(c.input); !ok {
			return // reading the document has reported it
		}
	}
	f := fitter{root: target.schema, of: target.of, most: min(maxFitSteps, maxAllFitSteps-k.fitSteps), patterns: &k.patterns}
	f.value(target.schema, value, c.inputAt(), 0)
	k.fitSteps += f.steps
	for _, m := range f.misfits {
		k.report(doc, m.at, m.code, m.hint, "%s", jig.Words(m.message))
	}
}

// checkConfirmed reports a call of a tool with a confirmation flag if the call certainly does not set the flag. Such a call does nothing.
func (k *checker) checkConfirmed(doc *Document, c call) {
	tool := k.contracts[c.name]
	if c.kind != callTool || tool == nil || !tool.Confirm {
		return
	}
	var input map[string]json.RawMessage
	if len(c.input) > 0 && json.Unmarshal(c.input, &input) != nil {
		return // the whole input is a single template
	}
	if flag, given := input["confirmed"]; given && string(flag) != "false" {
		return
	}
	k.report(doc, c.inputAt().key("confirmed"), ProblemMissingKey, "add confirmed: true; the policy then decides whether the call runs or asks a person",
		"%s does nothing without confirmed: true", c.name)
}

// checkPermission warns of a document that says it reads or writes and calls something with a stricter permission. Each step is checked by
// itself, so nothing runs unseen; but the permission misleads whoever reads the catalog. The default, draft, says nothing about the steps.
func (k *checker) checkPermission(doc *Document) {
	x := doc.Execution()
	declared := x.Tool.Permission
	if line, _ := doc.Position("permission"); line == 0 || declared == jig.PermissionDraft {
		return
	}
	found := k.strictest(x, map[string]bool{})
	if effects[found.permission] <= effects[declared] {
		return
	}
	p := problemAt(doc, (*place)(nil).key("permission"), ProblemMilderPermission,
		fmt.Sprintf("write permission: %s, or remove the key: each step is checked by itself", found.permission),
		"the permission is %s, but %s calls %s, whose permission is %s", declared, found.by.at(), found.name, found.permission)
	p.Severity = SeverityWarning
	k.problems = append(k.problems, p)
}

// effects ranks the permissions of calls that change something.
var effects = map[jig.Permission]int{jig.PermissionWrite: 1, jig.PermissionDestructive: 2}

// strictCall is the call of a spec with the strictest permission.
type strictCall struct {
	permission jig.Permission
	// by is the call that the spec itself makes. name is the tool that it leads to.
	by   call
	name string
}

// strictest returns the call with the strictest permission that a spec makes, directly or through the specs that it calls. The result is zero if no
// call writes.
func (k *checker) strictest(x *Execution, seen map[string]bool) (found strictCall) {
	compare := func(c call, name string, permission jig.Permission) {
		if effects[permission] > effects[found.permission] {
			found = strictCall{permission, c, name}
		}
	}
	walkCalls(*x, func(c call) {
		if c.undoes != "" {
			k.undo(&c)
		}
		switch c.kind {
		case callTool, callComposition:
			inner := k.specs.all[c.name]
			switch tool := k.contracts[c.name]; {
			case inner != nil && !seen[c.name]:
				seen[c.name] = true
				compare(c, c.name, inner.Tool.Permission)
				below := k.strictest(inner, seen)
				compare(c, below.name, below.permission)
			case inner == nil && tool != nil:
				compare(c, c.name, tool.Permission)
			}
		case callTask:
			if tool := k.contracts[toolname.TasksRun]; tool != nil {
				compare(c, tool.Name, tool.Permission)
			}
		case callAgent, callSkill: // what a model does is known only when it does it
		}
	})
	if thin := x.Thin(); thin != nil && thin.Creates != nil {
		compare(call{key: "creates"}, toolname.EntitiesCreate, jig.PermissionWrite)
	}
	return found
}

// checkRetries warns of a retry setting that rarely has an effect because the tool writes and is not idempotent.
func (k *checker) checkRetries(doc *Document, c call) {
	tool := k.contracts[c.name]
	if c.retries == "" || c.kind != callTool || tool == nil || !retriesRarely(*tool) {
		return
	}
	p := problemAt(doc, c.within.key(c.retries), ProblemRetryLimited,
		"keep it if that is enough; a tool that is idempotent under its key is retried after other failures, too",
		"%s writes and is not idempotent: it is retried only if the tool reports that nothing was executed", c.name)
	p.Severity = SeverityWarning
	k.problems = append(k.problems, p)
}

// load reads the schema once. It ignores a schema that is not JSON, and one of another draft, because its keywords may mean something else.
func (c *contract) load() {
	if c.read {
		return
	}
	c.read = true
	schema, ok := decodeLoosely(c.raw)
	c.open = !ok || schema == true || string(c.raw) == anyObject
	if c.schema = true; ok && isLatestDraft(schema) {
		c.schema = schema
	}
}

// decodeLoosely decodes JSON and keeps numbers as they are written.
func decodeLoosely(raw json.RawMessage) (any, bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	return v, d.Decode(&v) == nil
}
