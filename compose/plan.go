package compose

import (
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/expr"
)

// Plan is an execution spec ready to run: its steps as nodes, its expressions compiled. It is safe for concurrent use.
type Plan struct {
	name, version string
	steps         []*node
	// output is nil when the spec has none: the data of the last step that ran is the output then.
	output *document
	// byID finds the steps that expressions can name.
	byID map[string]*node
	// ids are the keys of byID in order.
	ids []string
}

// action is what a step does.
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
	// name is the id, or the step's path in the document when it has none; people see it.
	name string
	// at is the step's path in the document, for messages.
	at     string
	action action
	// loop is the innermost loop whose items this step is part of; nil outside of loops.
	loop *node

	cond *program
	// each is set of a loop; everything below is then of its items.
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
	// observed says that some expression reads the step's result, or the composition's output may be it.
	observed bool
}

// callPlan makes a call: of a tool with an input that is a document or put together from parts.
type callPlan struct {
	tool  string
	at    string
	input *document
	parts []part
	// parse says that the answer of an agent is JSON as text.
	parse bool
	// named says that the document names the agent that the call starts.
	named bool
}

// part is a member of an input: fixed, a text with what is said after it, or a document; those that are nil are not there.
type part struct {
	name  string
	fixed json.RawMessage
	text  *template
	after string
	doc   *document
}

// branch is a case of a switch; one without a condition is the else.
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

// program, template and document are compiled sources with what they read and where in the spec they stand.
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

// located says where in the spec an expression failed.
func (p *Plan) located(at string, err error) *jig.Error {
	e := *jig.AsError(err)
	at = joinPath(at, e.Field)
	e.Code, e.Field = jig.CodeInvalidInput, at
	e.Message = p.name + ", " + at + ": " + e.Message
	return &e
}

// joinPath appends a path that begins with a key or with an index.
func joinPath(path, inner string) string {
	switch {
	case inner == "":
		return path
	case path == "" || inner[0] == '[':
		return path + inner
	}
	return path + "." + inner
}
