package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jig-run/jig"
)

// Limits of a composition.
const (
	// MaxSteps limits the steps of a composition, however they are nested.
	MaxSteps = 1_000
	// MaxNesting limits how deep blocks of steps nest.
	MaxNesting = 10
)

// placed is a step with its place in the composition.
type placed struct {
	*Step
	path string
	// outer is the step whose block contains this step; nil at the top. depth counts the enclosing blocks.
	outer *placed
	depth int
	// block says which of the outer step's blocks contains the step, and index its position there.
	block blockName
	index int
}

// blockName identifies one of a step's blocks.
type blockName struct {
	key string // steps, parallel, switch or catch
	// branch is the index of the case of a switch.
	branch int
}

// The blocks of a step.
const (
	blockSteps    = "steps"
	blockParallel = "parallel"
	blockSwitch   = "switch"
	blockCatch    = "catch"
)

// walk holds the steps of a composition in the order of the document. walkSteps builds it and checks the structure of the steps.
type walk struct {
	*decoder
	all []*placed
	ids map[string]*placed
	// sets maps variables to the steps that set them. names are the names that catches give to errors.
	sets  map[string][]*placed
	names []string
	full  bool
}

// walkSteps places all steps of a spec and reports what is wrong with their structure.
func (d *decoder) walkSteps(x Execution) *walk {
	w := &walk{decoder: d, ids: map[string]*placed{}, sets: map[string][]*placed{}}
	if x.Kind.SingleStep() {
		w.answer(&x.Steps[0])
		return w
	}
	w.list(x.Steps, blockSteps, nil, blockName{key: blockSteps})
	return w
}

// answer places the only step of a prompt or a task, whose keys are at the top of the document.
func (w *walk) answer(step *Step) {
	p := &placed{Step: step}
	w.all, w.ids[step.ID] = []*placed{p}, p
	if step.Prompt != nil {
		w.checkPrompt("", *step.Prompt)
	}
	if step.Task != nil {
		w.checkInput("values")
	}
}

// list places the steps of a block.
func (w *walk) list(steps []Step, path string, outer *placed, block blockName) {
	depth := 1
	if outer != nil {
		depth = outer.depth + 1
	}
	if depth > MaxNesting && len(steps) > 0 {
		w.at(path, ProblemTooDeep, "move some of it into a separate composition", "blocks of steps are nested more than %d levels deep", MaxNesting)
		return
	}
	dead := ""
	for i := range steps {
		if w.full {
			return
		}
		at := indexPath(path, i)
		if len(w.all) == MaxSteps {
			w.full = true
			w.at(at, ProblemTooMany, "move some of it into a separate composition", "the composition has more than %d steps", MaxSteps)
			return
		}
		p := &placed{Step: &steps[i], path: at, outer: outer, depth: depth, block: block, index: i}
		w.all = append(w.all, p)
		if dead != "" && block.key != blockParallel {
			w.at(at, ProblemUnreachable, "remove it, or give the step that fails a condition (if)", "the step never runs: %s always fails", jig.Known(dead))
			dead = ""
		}
		w.place(p)
		if alwaysFails(steps[i]) {
			dead = p.name()
		}
	}
}

// place checks a step and the blocks in it.
func (w *walk) place(p *placed) {
	w.checkStep(p)
	inner := func(key string) string { return keyPath(p.path, key) }
	w.list(p.Steps, inner(blockSteps), p, blockName{key: blockSteps})
	w.list(p.Parallel, inner(blockParallel), p, blockName{key: blockParallel})
	for i, c := range p.Switch {
		w.list(c.Steps, keyPath(indexPath(inner(blockSwitch), i), "steps"), p, blockName{key: blockSwitch, branch: i})
	}
	if p.OnError != nil {
		w.list(p.OnError.Catch, keyPath(inner("on_error"), blockCatch), p, blockName{key: blockCatch})
	}
}

// name returns the name of the step for messages.
func (p *placed) name() string {
	if p.ID != "" {
		return fmt.Sprintf("the step %q", p.ID)
	}
	return p.path
}

// chain returns the step and the steps around it, outermost first.
func (p *placed) chain() []*placed {
	var chain []*placed
	for ; p != nil; p = p.outer {
		chain = append(chain, p)
	}
	slices.Reverse(chain)
	return chain
}

// alwaysFails reports whether a step always fails, so that nothing after it in its block can run.
func alwaysFails(s Step) bool {
	handled := s.OnError != nil && (s.OnError.Continue || len(s.OnError.Catch) > 0)
	if handled || s.ForEach != "" || s.If != "" && s.If != "true" {
		return false
	}
	if s.Fail != nil || slices.ContainsFunc(s.Steps, alwaysFails) || slices.ContainsFunc(s.Parallel, alwaysFails) {
		return true
	}
	cases := s.Switch
	return len(cases) > 0 && cases[len(cases)-1].Else &&
		!slices.ContainsFunc(cases, func(c Case) bool { return !slices.ContainsFunc(c.Steps, alwaysFails) })
}

// checkID checks a step's id. Steps whose result can be read need one.
func (w *walk) checkID(p *placed, action string) {
	path := keyPath(p.path, "id")
	if !w.has(path) {
		if slices.Contains(calls, action) || action == "wait_for" || w.has(keyPath(p.path, "for_each")) {
			w.at(path, ProblemMissingKey, "add e.g. id: "+p.proposedID(action), "the step has no id")
		}
		return
	}
	if p.ID == "" {
		return // it was refused already
	}
	w.checkWord(path, p.ID)
	if first, again := w.ids[p.ID]; again {
		w.at(path, ProblemDuplicateID, "give one of them another id", "the id %q is already used by %s", p.ID, jig.Known(first.path))
		return
	}
	w.ids[p.ID] = p
}

// proposedID proposes an id based on what the step does.
func (p *placed) proposedID(action string) string {
	for _, name := range []string{p.Tool, p.Composition} {
		word := name[strings.LastIndexAny(name, ".-")+1:]
		if variablePattern.MatchString(word) && !slices.Contains(celWords, word) {
			return word
		}
	}
	switch action {
	case "prompt":
		return "answer"
	case "wait_for":
		return "event"
	}
	return "each"
}

// celWords are the reserved words of CEL, which cannot be names in expressions.
var celWords = []string{
	"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop",
	"package", "namespace", "return", "var", "void", "while",
}

// stepVariables are the names that expressions of steps can read.
var stepVariables = []string{
	"input", "steps", "vars", "item", "index", "error", "event", "session", "tenant", "principal", "now",
}

func (d *decoder) checkWord(path, name string) {
	if slices.Contains(celWords, name) {
		d.at(path, ProblemBadName, "choose another name", "%q is a reserved word of the expression language", name)
	}
}
