// Package extraction decides how the fields of an entity are filled. A [Plan] is an entity type whose tasks form a graph, with its expressions
// compiled. [Plan.Advance] takes the state of an extraction and what has happened since, and returns the new state and what to do: calls to
// admit, values to keep, events to write, and when to look again. The caller does all this; the package has no side effects and does not
// depend on the store, Temporal, tools or models. So an extraction gives the same result however often, and wherever, it is resumed. A move
// of an extraction is stored in the same way as a move of a composition.
//
// A task begins as soon as every task that it depends on has its value, in the order of the document, with at most max_parallel tasks
// running at once; a task that waits for its next attempt counts as running. Tasks that make no call (compute, citations) are evaluated
// within the move. When a task fails, the tasks that depend on it are skipped and nothing else happens: an extraction with failed tasks is
// a result, not an error.
//
// A task can read the values of the tasks that it depends on, directly or not. It can also read the fields of the entity that these tasks
// fill, and those that no task fills. So the values that it reads never depend on which task was faster. The input hash of a task covers all
// values that it reads; a refresh runs the task again if the hash has changed.
//
// Values are kept under two kinds of paths: the id of a task (its value) and <id># (a [Record] of how the task ended). Each is written
// once.
package extraction

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/cache"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan"
)

// These are short names for the types that this package shares with the callers that store its moves. Package plan declares them.
type (
	// Facts gives Advance access to the calls and values of this extraction, and to the sources that the values may be based on.
	Facts = plan.ExtractionFacts
	// Situation is the context of an extraction, besides its state. Its Input is an [Input]. Session, Principal and Events are not read.
	Situation = plan.Situation
	// Move is the result of [Plan.Advance]. The caller stores it in one transaction, as a whole or not at all.
	Move = plan.Move
)

// TaskEvent describes the progress of a task. It is the data of task.started, task.completed, task.failed and task.skipped.
type TaskEvent struct {
	EntityID string          `json:"entity_id"`
	Task     string          `json:"task"`
	Kind     entity.TaskKind `json:"kind"`
	// Attempts is the number of calls made, including a call that repairs an answer. It is 0 for a task that makes no calls.
	Attempts int `json:"attempts,omitempty"`
	// Because says why the task was skipped: "condition", or the id of a task that it depends on and that has no value.
	Because string     `json:"because,omitempty"`
	Error   *jig.Error `json:"error,omitempty"`
}

// EntityEvent is the data of entity.updated. It names the fields that have a new value. The value itself is kept under the task's id.
type EntityEvent struct {
	EntityID string   `json:"entity_id"`
	Fields   []string `json:"fields"`
	Task     string   `json:"task"`
}

// Checks holds the functions that check values. Both are required and must be pure. A function returns an error if the value is not valid; it
// should be a [jig.Error] that names the place.
type Checks struct {
	// Field checks a value against a field of the entity type.
	Field func(field entity.Field, value json.RawMessage) error
	// Schema checks a value against the JSON Schema of a task's output.
	Schema func(schema, value json.RawMessage) error
}

// Mode says how an extraction treats the outcomes of an earlier extraction's tasks.
type Mode = entity.ExtractMode

// The modes.
const (
	// ModeRun runs every task. It is the default.
	ModeRun Mode = "run"
	// ModeRetry runs the tasks that have no value and keeps the values of the others.
	ModeRetry Mode = "retry"
	// ModeRefresh runs the tasks whose input hash has changed. The others stay as they were, including failed ones.
	ModeRefresh Mode = "refresh"
)

// Input is the input of an extraction.
type Input struct {
	EntityID string `json:"entity_id"`
	Entity   Target `json:"entity"`
	// Input is the value that expressions read as `input`.
	Input json.RawMessage `json:"input,omitempty"`
	// Fields limits the extraction to these fields and what they depend on. Empty means all fields.
	Fields []string `json:"fields,omitempty"`
	Mode   Mode     `json:"mode,omitempty"`
	// Task limits the extraction to one task, which runs in any case, and to those that it depends on, which run only if they have no value.
	// Fields and Mode are then empty, and the result is a [TaskOutcome].
	Task string `json:"task,omitempty"`
	// Earlier says how the tasks ended in earlier extractions, by id; see [Result.Earlier].
	Earlier map[string]Earlier `json:"earlier,omitempty"`
}

// Target is the entity as it was when the extraction began.
type Target struct {
	Type    string          `json:"type,omitempty"`
	Title   string          `json:"title,omitempty"`
	Content json.RawMessage `json:"content,omitempty"`
}

// Source is an entity or document that a value is based on.
type Source struct {
	// Hash changes whenever the content does.
	Hash string `json:"hash,omitempty"`
	// Text is the content of the source if it is text. Quotes are looked up in it.
	Text *string `json:"text,omitempty"`
}

// Earlier describes how a task ended in an earlier extraction. The status comes first in its JSON, where the store looks for it.
type Earlier struct {
	Status TaskStatus      `json:"status"`
	Value  json.RawMessage `json:"value,omitempty"`
	Record
}

// Record describes how a task ended. The task's value is kept separately.
type Record struct {
	// Attempts is the number of calls made.
	Attempts int `json:"attempts,omitempty"`
	// InputHash is the input hash of a task that failed. For a task with a value it is in Provenance.
	InputHash string `json:"input_hash,omitempty"`
	// Provenance is the provenance of the value.
	Provenance *entity.Provenance `json:"provenance,omitempty"`
	// Error says why the task failed.
	Error *jig.Error `json:"error,omitempty"`
}

// TaskStatus is the status of a task.
type TaskStatus string

// The statuses of tasks that have ended.
const (
	TaskCompleted TaskStatus = "completed"
	// TaskKept means that the task has the value of an earlier extraction.
	TaskKept   TaskStatus = "kept"
	TaskFailed TaskStatus = "failed"
	// TaskSkipped means that the task's condition was false, or that it depends on a task without a value.
	TaskSkipped TaskStatus = "skipped"
	// TaskCanceled means that the task had not ended when the extraction was canceled.
	TaskCanceled TaskStatus = "canceled"
)

// Result is the data of an extraction that has ended.
type Result struct {
	EntityID string `json:"entity_id"`
	// Values and Provenance are keyed by field. They hold only fields whose task has a value.
	Values     map[string]json.RawMessage   `json:"values"`
	Provenance map[string]entity.Provenance `json:"provenance"`
	// Tasks holds the requested tasks, by id.
	Tasks  map[string]TaskResult `json:"tasks"`
	Counts Counts                `json:"counts"`
}

// TaskResult describes how a task ended. If the task fills fields, its value and provenance are in [Result.Values] and [Result.Provenance]
// instead.
type TaskResult struct {
	Status  TaskStatus `json:"status"`
	Because string     `json:"because,omitempty"`
	// Fields are the fields that the task fills.
	Fields []string        `json:"fields,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
	Record
}

// TaskOutcome is the data of an extraction of a single task that has ended.
type TaskOutcome struct {
	EntityID string `json:"entity_id"`
	Task     string `json:"task"`
	// Status is completed or skipped, and Because says why the task was skipped, as in [TaskResult].
	Status  TaskStatus `json:"status"`
	Because string     `json:"because,omitempty"`
	// Fields are the fields that the task fills.
	Fields []string `json:"fields,omitempty"`
	// Value is null if the task was skipped.
	Value      json.RawMessage    `json:"value"`
	Provenance *entity.Provenance `json:"provenance,omitempty"`
}

// Counts counts tasks by status.
type Counts struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Kept      int `json:"kept"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
	Canceled  int `json:"canceled"`
}

// Earlier returns the Input.Earlier for the next extraction of the entity. If this extraction filled only some fields, merge the returned map
// into the one from the extraction before.
func (r Result) Earlier() map[string]Earlier {
	all := make(map[string]Earlier, len(r.Tasks))
	for id, t := range r.Tasks {
		e := Earlier{Status: t.Status, Value: t.Value, Record: t.Record}
		if len(t.Fields) > 0 && (t.Status == TaskCompleted || t.Status == TaskKept) {
			e.Value = r.Values[t.Fields[0]]
			p := r.Provenance[t.Fields[0]]
			e.Provenance = &p
		}
		all[id] = e
	}
	return all
}

// Load parses a document of an entity type. document is the file name for error messages.
type Load func(document string, body []byte) (entity.Type, error)

// Engine computes moves for documents and caches their plans. It is safe for concurrent use.
type Engine struct {
	load   Load
	checks Checks
	plans  cache.Texts[*Plan]
}

// NewEngine returns an Engine that parses documents with load and checks values with checks.
func NewEngine(load Load, checks Checks) *Engine {
	return &Engine{load: load, checks: checks, plans: cache.NewTexts[*Plan]()}
}

// Advance calls [Plan.Advance] for the document with this body. version is the version of the entity type that the extraction began with; a
// body of another version is refused as INTERNAL.
func (e *Engine) Advance(ctx context.Context, version string, body []byte, state json.RawMessage, facts Facts, at Situation) (Move, error) {
	p, err := e.plan(body)
	if err != nil {
		return Move{}, err
	}
	if err := p.CheckVersion("extraction", version); err != nil {
		return Move{}, err
	}
	return p.Advance(ctx, state, facts, at)
}

// Type returns the entity type of the document with this body, which is parsed once. Callers must not modify it.
func (e *Engine) Type(body []byte) (entity.Type, error) {
	p, err := e.plan(body)
	if err != nil {
		return entity.Type{}, err
	}
	return p.kind, nil
}

func (e *Engine) plan(body []byte) (*Plan, error) {
	return e.plans.Get(body, func() (*Plan, error) {
		kind, err := e.load("the entity type", body)
		if err != nil {
			return nil, err
		}
		return Compile(kind, e.checks)
	})
}
