// Package composition decides what a composition does next. A [Plan] is an execution spec with its expressions compiled. [Plan.Advance] takes
// the state of a run and what has happened since, and returns the new state and what to do: calls to admit, values to keep, events to
// write, and when to look again. The caller does all this; the package has no side effects and does not depend on the store, Temporal or
// tools. So a run gives the same result however often, and wherever, it is resumed.
//
// The state mirrors the plan for the steps that are running. For a finished step it records only where the result is: in the ledger under
// the step's path, among the kept values, or nowhere if no expression reads it. For a loop it holds a cursor and the open items, so neither
// its size nor the work of a move grows with the number of finished items. Conditions, lists and inputs are evaluated once and never again.
//
// Kept values are stored under these paths: the path of a step (its result), the path of a loop with #n (its list, in chunks), vars.<name>,
// and #n for the n-th note on how to undo a step that succeeded. Only vars are written more than once.
package composition

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/cache"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/docpreview"
	"github.com/jig-run/jig/spec"
)

// These are short names for the types that this package shares with the callers that store its moves. Package plan declares them.
type (
	// Facts gives Advance access to the calls and values of the run.
	Facts = plan.Facts
	// Call is the state of a step's call.
	Call = plan.StepCall
	// Situation is the context of a run, besides its state.
	Situation = plan.Situation
	// Event is an `event` signal that the session received.
	Event = plan.ReceivedEvent
	// Move is the result of [Plan.Advance]. The caller stores it in one transaction, as a whole or not at all.
	Move = plan.Move
	// Ask is a call to admit. A prompt step calls prompt.direct, prompt.skill or agent.run, a composition step calls the composition by name,
	// and a task step calls tasks.run or tasks.start. If a prompt step that calls agent.run has a schema, the agent is sent the schema with its task, and the
	// answer in the step's data is parsed JSON.
	Ask = plan.Ask
)

// Engine computes moves for documents and caches the most recently used plans. It is safe for concurrent use.
type Engine struct{ plans cache.Texts[*compiled] }

// compiled holds the plan and the tool of a document.
type compiled struct {
	plan    *Plan
	tool    jig.Tool
	preview *docpreview.Program
}

// NewEngine returns an Engine with an empty cache.
func NewEngine() *Engine { return &Engine{plans: cache.NewTexts[*compiled]()} }

// Load reads an execution spec and returns its tool, whose calls run as workflows. document is the file name for error messages. The error
// is a [spec.Problems] if the spec is not valid.
func (e *Engine) Load(document string, body []byte) (plan.Tool, error) {
	entry, err := e.plan(document, body)
	if err != nil {
		return plan.Tool{}, err
	}
	loaded := plan.Tool{Contract: entry.tool}
	if entry.preview != nil {
		loaded.Preview = func(ctx context.Context, input []byte, inv jig.Invocation, read plan.Read) (jig.Preview, error) {
			entry, err := e.plan(document, body) // from the cache, which bounds the memory that compiled documents take
			if err != nil {
				return jig.Preview{}, err
			}
			return entry.preview.Preview(ctx, inv, input, read)
		}
	}
	return loaded, nil
}

// Advance calls [Plan.Advance] for the document with this body. version is the version that the run began with; a body of another version is
// refused as INTERNAL.
func (e *Engine) Advance(ctx context.Context, version string, body []byte, state json.RawMessage, facts Facts, at Situation) (Move, error) {
	entry, err := e.plan("", body)
	if err != nil {
		return Move{}, err
	}
	if err := entry.plan.CheckVersion("run", version); err != nil {
		return Move{}, err
	}
	return entry.plan.Advance(ctx, state, facts, at)
}

func (e *Engine) plan(document string, body []byte) (*compiled, error) {
	return e.plans.Get(body, func() (*compiled, error) {
		x, err := spec.LoadExecution(cmp.Or(document, "the composition"), body)
		if err != nil {
			return nil, err
		}
		p, err := Compile(x)
		if err != nil {
			return nil, err
		}
		preview, err := docpreview.Compile(x)
		return &compiled{plan: p, tool: x.Tool, preview: preview}, err
	})
}

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
