package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/clip"
	"github.com/jig-run/jig/internal/duration"
)

// ExplainDocument explains to people what a document does: as a text for a terminal, and as a Mermaid flowchart, which is empty for a kind
// without a diagram. For a bundle, it lists the documents beside it: those of beside that are in its folder. Given the tools of a catalog, it
// also says which calls ask a person.
func ExplainDocument(doc Document, beside []Document, tools ...jig.Tool) (text, diagram string) {
	if explain := doc.row().explain; explain != nil {
		return explain(doc, beside, tools)
	}
	return fmt.Sprintf("%s %s%s\n", doc.Kind, doc.Name, versionText(doc.Version)), ""
}

func explainExecution(doc Document, _ []Document, tools []jig.Tool) (text, diagram string) {
	e := Explain(*doc.Execution(), tools...)
	return e.Text(), e.Mermaid()
}

// Explanation explains to people what an execution spec does.
type Explanation struct {
	spec  Execution
	tools map[string]jig.Tool
}

// Explain explains a spec. Given the tools of a catalog, it also says which calls ask a person according to the contracts of the tools;
// policy rules may change that.
func Explain(x Execution, tools ...jig.Tool) Explanation {
	return Explanation{spec: x, tools: toolsByName(tools)}
}

func toolsByName(tools []jig.Tool) map[string]jig.Tool {
	byName := make(map[string]jig.Tool, len(tools))
	for _, t := range tools {
		byName[t.Name] = t
	}
	return byName
}

// Text returns an indented outline for a terminal. It never contains control characters, even if the document does.
func (e Explanation) Text() string {
	o := &outline{tools: e.tools}
	x := e.spec
	o.line(0, "%s %s%s", x.Kind.Words(), x.Name, versionText(x.Version))
	if x.Description != "" {
		o.line(0, "%s", x.Description)
	}
	if asks := asksText(x.Tool); asks != "" {
		o.line(0, "a call of it %s", asks)
	}
	if flow := flowText(x.Tool.Labels); flow != "" {
		o.line(0, "%s", flow)
	}
	if members := membersText(x.Tool.InputSchema); members != "" {
		o.line(0, "input: %s", members)
	}
	o.preview(x.Preview)
	o.b.WriteByte('\n')
	if own := x.Kind.execution(); own.backend {
		if own.outline != nil {
			own.outline(o, x)
		}
		return o.b.String()
	}
	o.block(x.Steps, 0, "")
	if len(x.Output) > 0 && !x.Kind.SingleStep() {
		o.b.WriteByte('\n')
		o.line(0, "output: %s", x.Output)
	}
	return o.b.String()
}

func versionText(version string) string {
	if version == "" {
		return ""
	}
	return " (version " + jig.ShortVersion(version) + ")"
}

// outline writes lines with their indentation.
type outline struct {
	b     strings.Builder
	tools map[string]jig.Tool
}

// maxLine is the longest line of an outline without its indentation, in characters.
const maxLine = 240

func (o *outline) line(depth int, format string, args ...any) {
	o.b.WriteString(strings.Repeat("   ", depth))
	o.b.WriteString(clip.Line(fmt.Sprintf(format, args...), maxLine))
	o.b.WriteByte('\n')
}

// block writes steps. Their numbers begin with the number of the enclosing step.
func (o *outline) block(steps []Step, depth int, number string) {
	for i := range steps {
		o.step(&steps[i], depth, fmt.Sprintf("%s%d", number, i+1))
	}
}

func (o *outline) step(s *Step, depth int, number string) {
	what := s.action()
	if loop := s.loop(); loop != "" {
		what = loop + ": " + what
	}
	if s.ID != "" {
		what = s.ID + ": " + what
	}
	o.line(depth, "%s. %s", number, what)
	depth++
	for _, detail := range s.details(o.tools) {
		o.line(depth, "%s", detail)
	}
	o.block(s.Steps, depth, number+".")
	o.block(s.Parallel, depth, number+".")
	for i, c := range s.Switch {
		o.line(depth, "%s", c.condition())
		o.block(c.Steps, depth+1, fmt.Sprintf("%s.%d.", number, i+1))
	}
	if len(s.Output) > 0 {
		o.line(depth, "gives back %s", s.Output)
	}
	if s.OnError != nil && len(s.OnError.Catch) > 0 {
		o.line(depth, "%s:", s.OnError.text())
		o.block(s.OnError.Catch, depth+1, number+".e")
	}
	if s.Undo != nil {
		undo := s.undoneBy(o.tools)
		o.line(depth, "undone by %s if a later step fails or the run is canceled", cmp.Or(undo, "the undo tool of "+s.Tool+s.Composition))
		if asks := asksText(o.tools[undo]); asks != "" {
			o.line(depth+1, "%s", asks)
		}
	}
}

// undoneBy returns the tool that undoes a step, or an empty string if the contract that names the tool is not known.
func (s *Step) undoneBy(tools map[string]jig.Tool) string {
	return cmp.Or(s.Undo.Tool, tools[s.Tool+s.Composition].Undo)
}

// action says what a step does.
func (s *Step) action() string {
	switch {
	case s.Tool != "":
		return "call " + s.Tool
	case s.Composition != "":
		return "run composition " + s.Composition
	case s.Prompt != nil:
		return s.Prompt.action()
	case s.Task != nil:
		what := "run task " + s.Task.Task
		if s.Task.Entity != "" {
			what += " of entity " + s.Task.Entity
		}
		if s.Task.Wait != nil && !*s.Task.Wait {
			what += ", without waiting for its result"
		}
		return what
	case len(s.Steps) > 0:
		return "these steps in order"
	case len(s.Parallel) > 0:
		return "these steps at the same time"
	case len(s.Switch) > 0:
		return "the first case that holds"
	case len(s.Set) > 0:
		return s.setText()
	case s.Wait != "":
		return "wait " + s.Wait
	case s.WaitUntil != "":
		return "wait until " + string(s.WaitUntil)
	case s.WaitFor != nil:
		return s.WaitFor.text()
	case s.Emit != nil:
		return "write event custom." + s.Emit.Event
	case s.Fail != nil:
		what := "fail: " + s.Fail.Message
		if s.Fail.Reason != "" {
			what += " (" + s.Fail.Reason + ")"
		}
		return what
	}
	return "nothing"
}

func (p *Prompt) action() string {
	switch p.Mode {
	case promptAgent:
		what := "let agent " + p.Agent + " work"
		if p.Model != "" {
			what += " with " + p.Model
		}
		return what
	case promptSkill:
		return "ask " + p.Model + " with skill " + p.Skill
	}
	return "ask " + p.Model
}

func (s *Step) setText() string {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(s.Set, &values); err != nil {
		return "set values"
	}
	return "set " + strings.Join(slices.Sorted(maps.Keys(values)), ", ")
}

func (w *WaitFor) text() string {
	what := "wait for event " + w.Event
	if w.When != "" {
		what += " with " + string(w.When)
	}
	if w.Timeout > 0 {
		what += ", at most " + duration.Format(time.Duration(w.Timeout))
	}
	return what
}

// loop describes the loop of a step. It returns an empty string if the step has no loop.
func (s *Step) loop() string {
	if s.ForEach == "" {
		return ""
	}
	atOnce := s.MaxParallel
	if atOnce == 0 {
		atOnce = defaultMaxParallel
	}
	if atOnce == 1 {
		return "for each of " + string(s.ForEach) + ", one by one"
	}
	return fmt.Sprintf("for each of %s, %d at a time", string(s.ForEach), atOnce)
}

// defaultMaxParallel is how many items of a loop run at once by default.
const defaultMaxParallel = 10

// details returns the lines below a step.
func (s *Step) details(tools map[string]jig.Tool) []string {
	var lines []string
	if s.If != "" {
		lines = append(lines, "only if "+string(s.If))
	}
	lines = append(lines, s.remarks(tools)...)
	if len(s.Input) > 0 {
		lines = append(lines, "input "+string(s.Input))
	}
	return lines
}

// remarks says how a step is run: whether it asks, how often it is tried, how long it may take, and what a failure does.
func (s *Step) remarks(tools map[string]jig.Tool) []string {
	var lines []string
	if name := s.Tool + s.Composition; name != "" {
		t, known := tools[name]
		switch asks := asksText(t); {
		case known && asks != "":
			lines = append(lines, asks)
		case !known && s.Tool != "" && len(tools) > 0:
			lines = append(lines, "the catalog has no such tool")
		}
	}
	if s.Retry != nil {
		lines = append(lines, s.Retry.text())
		if retriesRarely(tools[s.Tool]) {
			lines = append(lines, retryText)
		}
	}
	if s.Timeout > 0 {
		lines = append(lines, "fails after "+duration.Format(time.Duration(s.Timeout)))
	}
	if s.OnError != nil && s.OnError.Continue {
		lines = append(lines, "a failure is ignored")
	}
	return lines
}

// asksText says that a call of the tool asks a person, and why. It is empty if the call does not ask or the tool is not known.
func asksText(t jig.Tool) string {
	var why []string
	if t.Permission == jig.PermissionWrite || t.Permission == jig.PermissionDestructive {
		why = append(why, "permission "+string(t.Permission))
	}
	if t.Risk == jig.RiskHigh {
		why = append(why, "risk high")
	}
	if t.Approval == jig.ApprovalAlwaysAsk {
		why = append(why, "always asks")
	}
	if len(why) == 0 {
		return ""
	}
	return "asks a person first: " + strings.Join(why, ", ")
}

// flowText says which data flows through a tool, by its labels. It is empty for a tool without labels.
func flowText(l *jig.Labels) string {
	if l == nil {
		return ""
	}
	words := make([]string, 0, len(l.Reads)+1)
	for _, kind := range l.Reads {
		words = append(words, "reads "+kind+" data")
	}
	if l.Sends {
		words = append(words, "can send data out of the tenant")
	}
	return strings.Join(words, ", ")
}

// retriesRarely reports whether a failed call of a tool is repeated only if it was not executed, because the tool writes and is not
// idempotent. It is false for an unknown tool.
func retriesRarely(t jig.Tool) bool {
	return t.Name != "" && t.Permission.Writes() && !t.Idempotent
}

// retryText is the remark on a step with retries if retriesRarely holds for its tool.
const retryText = "retried only if the tool reports that nothing was executed"

func (r *Retry) text() string {
	backoff := cmp.Or(time.Duration(r.Backoff), time.Second)
	longest := cmp.Or(time.Duration(r.MaxBackoff), max(time.Minute, backoff))
	what := fmt.Sprintf("up to %d attempts, %s apart", r.MaxAttempts, duration.Format(min(backoff, longest)))
	if r.MaxAttempts > 2 && backoff < longest {
		what += ", doubling to " + duration.Format(longest)
	}
	if r.When != "" {
		what += ", when " + string(r.When)
	}
	return what
}

func (e *OnError) text() string {
	what := "when it fails"
	if e.When != "" {
		what += " with " + string(e.When)
	}
	if e.As != "" && e.As != "error" {
		what += ", as " + e.As
	}
	return what
}

func (c Case) condition() string {
	if c.Else {
		return "else"
	}
	return "when " + string(c.When)
}

// membersText lists the members of an object's schema with their types, the required ones first.
func membersText(raw json.RawMessage) string {
	value, _ := decodeLoosely(raw)
	top, _ := value.(map[string]any)                    //nolint:errcheck // nil has no members
	properties, _ := top["properties"].(map[string]any) //nolint:errcheck // as above
	required := list(top["required"])
	names := slices.Sorted(maps.Keys(properties))
	slices.SortStableFunc(names, func(a, b string) int {
		return boolOrder(slices.Contains(required, any(b))) - boolOrder(slices.Contains(required, any(a)))
	})
	const shown = 20
	members := make([]string, 0, shown+1)
	for i, name := range names {
		if i == shown {
			members = append(members, fmt.Sprintf("and %d more", len(names)-shown))
			break
		}
		property, _ := properties[name].(map[string]any) //nolint:errcheck // nil has no type
		notes := []string{}
		if word, ok := property["type"].(string); ok && typeNames[word] != "" {
			notes = append(notes, string(typeNames[word]))
		}
		if slices.Contains(required, any(name)) {
			notes = append(notes, "required")
		}
		if len(notes) > 0 {
			name += " (" + strings.Join(notes, ", ") + ")"
		}
		members = append(members, name)
	}
	return strings.Join(members, ", ")
}

func boolOrder(b bool) int {
	if b {
		return 1
	}
	return 0
}
