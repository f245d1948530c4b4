package composition

import (
	"encoding/json"
	"time"

	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/plan"
)

// Plan is an execution spec that is ready to run: its steps as nodes, its expressions compiled. It is safe for concurrent use.
type Plan struct {
	plan.Document
	steps []*node
	// output is nil if the spec defines no output. The output is then the data of the last step that ran.
	output *document
	// byID finds the steps that expressions can name, by id.
	byID map[string]*node
	// ids are the keys of byID, sorted.
	ids []string
}

// action is the kind of action that a step performs.
type action int

const (
	actCall action = iota
	actBlock
	actParallel
	actSwitch
	actSet
	actWait
	actWaitUntil
	actWaitFor
	actEmit
	actFail
)

// node is a step of the plan.
type node struct {
	id string
	// name is the id, or the step's path in the document if it has no id. People see it.
	name string
	// at is the step's path in the document, for error messages.
	at     string
	action action
	// loop is the innermost loop whose items this step is part of; nil outside of loops.
	loop *node

	cond *program
	// each is set if the step is a loop. Everything below then belongs to its items.
	each     *program
	parallel int

	call     *callPlan
	steps    []*node
	cases    []*branch
	branches []*node
	output   *document
	set      *document
	wait     *template
	until    *program
	waitFor  *waitPlan
	emit     *emitPlan
	fail     *failPlan

	timeout time.Duration
	retry   *retryPlan
	onError *errorPlan
	undo    *callPlan
	// observed reports whether the step's result must be kept, because an expression reads it or the composition may return it.
	observed bool
}

// callPlan makes a call of a tool. Its input is either a document or assembled from parts.
type callPlan struct {
	tool  string
	at    string
	input *document
	parts []part
	// parse reports whether an agent's answer is JSON in text form and must be parsed.
	parse bool
	// named reports whether the document itself names the agent that the call starts.
	named bool
}

// part is a member of an input: a fixed value, a text followed by after, or a document. Exactly one of fixed, text and doc is set.
type part struct {
	name  string
	fixed json.RawMessage
	text  *template
	after string
	doc   *document
}

// branch is a case of a switch. A branch without a condition is the else.
type branch struct {
	when  *program
	steps []*node
}

type waitPlan struct {
	event   string
	when    *program
	timeout time.Duration
}

type emitPlan struct {
	event string
	data  *document
}

type failPlan struct {
	message *template
	reason  string
}

type retryPlan struct {
	attempts            int
	backoff, maxBackoff time.Duration
	when                *program
}

type errorPlan struct {
	proceed bool
	as      string
	when    *program
	catch   []*node
}

// program, template and document are compiled sources, with their reads and their path in the spec.
type program struct {
	*expr.Program
	reads expr.Reads
	at    string
}

type template struct {
	*expr.Template
	reads expr.Reads
	at    string
}

type document struct {
	*expr.Document
	reads expr.Reads
	at    string
}
