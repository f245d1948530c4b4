package spec

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/duration"
	"github.com/jig-run/jig/internal/expr"
)

// actions are the keys that make a step do something; each step has exactly one. calls are the actions that call something.
var (
	actions = []string{
		"tool", "prompt", "task", "composition", "steps", "parallel", "switch", "set", "wait", "wait_until", "wait_for", "emit", "fail",
	}
	calls = []string{"tool", "prompt", "task", "composition"}
)

// stepRule says which actions a key may be combined with.
type stepRule struct {
	key  string
	with []string
	// hint says what to write instead. instead overrides it for some actions.
	hint    string
	instead map[string]string
}

// stepRules are the keys that cannot be combined with every action.
var stepRules = []stepRule{
	{"for_each", append([]string{"steps"}, calls...), "put the step into a block: steps: [ … ]", nil},
	{"input", []string{"tool", "composition"}, "remove it", map[string]string{
		"prompt": "write agent_input inside prompt", "task": "write values inside task", "emit": "write data inside emit",
	}},
	{"output", []string{"steps"}, "remove it: a tool's result is used as it is, and a composition's output is defined at the top", nil},
	{"timeout", append([]string{"steps", "parallel", "switch"}, calls...), "remove it", map[string]string{
		"wait_for": "write timeout inside wait_for",
	}},
	{"retry", calls, "remove it", map[string]string{
		"steps": "retry the steps inside", "parallel": "retry the steps inside", "switch": "retry the steps inside",
	}},
	{"undo", calls, "remove it", map[string]string{
		"steps": "undo the steps inside", "parallel": "undo the steps inside", "switch": "undo the steps inside",
	}},
	{"on_error", slices.DeleteFunc(slices.Clone(actions), func(action string) bool { return action == "fail" }), "remove it", nil},
}

// checkStep checks rules that involve more than one key of a step.
func (w *walk) checkStep(p *placed) {
	inner := func(key string) string { return keyPath(p.path, key) }
	given := slices.DeleteFunc(slices.Clone(actions), func(action string) bool { return !w.has(inner(action)) })
	switch {
	case len(given) == 0:
		if !w.hasUnknownKey(p.path) && w.places[p.path].kind == kindMap {
			w.at(p.path, ProblemBadShape, "give it one of "+strings.Join(actions, ", "), "the step does nothing")
		}
		w.checkID(p, "")
		return
	case len(given) > 1:
		w.at(inner(given[1]), ProblemBadShape, "split it into two steps", "a step has one action, and this one already has %s", jig.Known(given[0]))
		w.checkID(p, given[0])
		return
	}
	action := given[0]
	w.checkID(p, action)
	for _, rule := range stepRules {
		if !w.has(inner(rule.key)) || slices.Contains(rule.with, action) {
			continue
		}
		hint := rule.hint
		if instead, ok := rule.instead[action]; ok {
			hint = instead
		}
		w.at(inner(rule.key), ProblemBadShape, hint, "%s cannot be combined with %s", jig.Known(rule.key), jig.Known(action))
	}
	if w.has(inner("max_parallel")) && !w.has(inner("for_each")) {
		w.at(inner("max_parallel"), ProblemBadShape, "add for_each, or remove it", "max_parallel needs for_each")
	}
	if p.If == "false" {
		w.warn(inner("if"), ProblemUnreachable, "remove the step, or give it a condition", "the step never runs: its condition is false")
	}
	w.checkInput(inner("input"))
	w.schemaInput(p.Tool, inner("input"), p.Input)
	w.checkAction(p, action, inner(action))
	w.checkHandling(p)
}

// checkAction checks the contents of a step's action.
func (w *walk) checkAction(p *placed, action, path string) {
	switch {
	case p.Prompt != nil:
		w.checkPrompt(path, *p.Prompt)
	case p.Task != nil:
		w.checkInput(keyPath(path, "values"))
	case len(p.Switch) > 0:
		w.checkCases(path, p.Switch)
	case p.Set != nil:
		w.checkSet(p, path)
	case action == "wait" && w.places[path].kind == kindString:
		w.checkWait(path, p.Wait)
	}
}

// checkHandling checks retry, on_error and undo.
func (w *walk) checkHandling(p *placed) {
	if r := p.Retry; r != nil && r.Backoff > 0 && r.MaxBackoff > 0 && r.Backoff > r.MaxBackoff {
		w.at(expr.JoinPath(p.path, "retry.max_backoff"), ProblemBadValue, "make it at least backoff",
			"the longest wait %s is less than the first, %s", r.MaxBackoff, r.Backoff)
	}
	if p.Undo != nil {
		w.checkInput(expr.JoinPath(p.path, "undo.input"))
		if at := expr.JoinPath(p.path, "undo.tool"); !w.has(at) && p.Tool == "" && p.Composition == "" {
			w.at(at, ProblemMissingKey, "add tool: …", "only a call of a tool or composition can be undone")
		}
	}
	if p.OnError == nil || p.OnError.As == "" {
		return
	}
	path := expr.JoinPath(p.path, "on_error.as")
	w.checkWord(path, p.OnError.As)
	if p.OnError.As != "error" && slices.Contains(stepVariables, p.OnError.As) {
		w.at(path, ProblemBadName, "choose another name", "%q has another meaning in expressions", p.OnError.As)
	}
	if !slices.Contains(w.names, p.OnError.As) {
		w.names = append(w.names, p.OnError.As)
	}
}

// checkInput checks that a value, if it is present, is a mapping or can become one.
func (d *decoder) checkInput(path string) {
	n := d.places[path]
	if n == nil || n.kind == kindMap || n.kind == kindString && isTemplate(n.json()) {
		return
	}
	d.at(path, ProblemWrongType, "write a mapping, e.g. {title: …}",
		"this must be a mapping, or one expression (${…}) that evaluates to one, not %s", n.kind)
}

// promptRules are the keys of a prompt that are allowed only in some modes.
var promptRules = []stepRule{
	{key: "skill", with: []string{promptSkill}, hint: "add mode: skill"},
	{key: "agent", with: []string{promptAgent}, hint: "add mode: agent"},
	{key: "agent_input", with: []string{promptAgent}, hint: "put it into the prompt"},
	{key: "system", with: []string{promptDirect, promptSkill}, hint: "an agent has its own instructions"},
	{key: "max_tokens", with: []string{promptDirect, promptSkill}, hint: "an agent has its own max_tokens"},
}

// promptNeeds are the keys that each mode requires.
var promptNeeds = map[string][]string{
	promptDirect: {"model", "prompt"},
	promptSkill:  {"skill", "model", "prompt"},
	promptAgent:  {"agent"},
}

// checkPrompt checks a prompt whose keys are below a path.
func (w *walk) checkPrompt(path string, p Prompt) {
	if n := w.places[path]; n == nil || n.kind != kindMap {
		return // it was refused already
	}
	mode := p.Mode
	if mode == "" && !w.has(keyPath(path, "mode")) {
		mode = promptDirect
	}
	needs, known := promptNeeds[mode]
	if !known {
		return // it was refused already
	}
	for _, key := range needs {
		if !w.has(keyPath(path, key)) {
			w.at(keyPath(path, key), ProblemMissingKey, fmt.Sprintf("add %s: …", key), "a prompt of mode %s needs the key %q", mode, jig.Known(key))
		}
	}
	for _, rule := range promptRules {
		if at := keyPath(path, rule.key); w.has(at) && !slices.Contains(rule.with, mode) {
			w.at(at, ProblemBadShape, rule.hint, "%s cannot be used with mode %s", jig.Known(rule.key), mode)
		}
	}
	w.checkInput(keyPath(path, "agent_input"))
	if at := keyPath(path, "schema"); w.has(at) {
		w.checkSchema(at, p.Schema)
	}
}

// checkCases checks that each case of a switch has a condition or is the else at the end.
func (w *walk) checkCases(path string, cases []Case) {
	last := "" // the case after which no other can run
	for i, c := range cases {
		at := indexPath(path, i)
		when, other := w.has(keyPath(at, "when")), w.has(keyPath(at, "else"))
		switch {
		case w.places[at].kind != kindMap:
		case when && other:
			w.at(keyPath(at, "else"), ProblemBadShape, "remove one of them", "a case has when or else, not both")
		case !when && !other:
			w.at(keyPath(at, "when"), ProblemMissingKey, "add when: <condition>, or else: true to the last case", "the case has no condition")
		case other && !c.Else && w.places[keyPath(at, "else")].kind == kindBool:
			w.at(keyPath(at, "else"), ProblemBadValue, "write else: true, or when", "else can only be true")
		}
		if last != "" {
			w.at(at, ProblemUnreachable, "move it up, or remove it", "the case never runs: %s matches everything that is left", last)
			return
		}
		if c.Else || c.When == "true" {
			last = at
		}
	}
}

// checkSet checks that a set assigns values to valid names, and records them.
func (w *walk) checkSet(p *placed, path string) {
	n := w.places[path]
	if n.kind != kindMap || len(n.entries) == 0 {
		w.at(path, ProblemWrongType, `e.g. set: {total: "${…}"}`, "set must be a mapping of names to values")
		return
	}
	for _, e := range n.entries {
		at := keyPath(path, e.key)
		if !variablePattern.MatchString(e.key) || len(e.key) > 64 {
			w.at(at, ProblemBadName, formOf("variable").hint, "%q cannot be a variable's name", e.key)
			continue
		}
		w.checkWord(at, e.key)
		w.sets[e.key] = append(w.sets[e.key], p)
	}
}

// maxWait limits a wait that is written literally.
const maxWait = 3650 * 24 * time.Hour

func (w *walk) checkWait(path, text string) {
	if strings.Contains(text, "${") {
		return
	}
	d, err := duration.Parse(text)
	switch {
	case err != nil:
		w.at(path, ProblemBadValue, `e.g. "90s", "48h", "3d" or "${…}"`, "%q is not a duration", text)
	case d <= 0 || d > maxWait:
		w.at(path, ProblemOutOfRange, "use more than 0s and at most 3650d", "%s is out of range", text)
	}
}

// warn is like at, but reports a warning.
func (d *decoder) warn(path string, code ProblemCode, hint, format string, args ...any) {
	before := len(d.problems)
	d.at(path, code, hint, format, args...)
	for i := range d.problems[before:] {
		d.problems[before+i].Severity = SeverityWarning
	}
}

// hasUnknownKey reports whether a key of the mapping at a path was refused as unknown.
func (d *decoder) hasUnknownKey(path string) bool {
	return slices.ContainsFunc(d.problems, func(p Problem) bool {
		rest, below := strings.CutPrefix(p.Path, path+".")
		return below && p.Code == ProblemUnknownKey && !strings.ContainsAny(rest, ".[")
	})
}
