package extract

import (
	"encoding/json"

	"github.com/jig-run/jig"
)

// The contract with those who keep what comes of a move stands in the vocabulary; here it has its short names.
type (
	// Facts is what Advance may read: the calls and the values of this extraction, and what these may rest on.
	Facts = jig.ExtractionFacts
	// Situation is what an extraction is in, beside its state. Its Input is an Input; Session, Principal and Events are not read.
	Situation = jig.Situation
	// Move is what comes of Advance: the caller stores all of it in one transaction, or none.
	Move = jig.Move
)

// The tools that tasks of kinds other than tool and composition call.
const (
	// ToolPrompt takes {model?, system?, prompt, schema?, max_tokens?} and gives {text} or, with a schema, {output}, and
	// {model, usage}.
	ToolPrompt = "prompt.direct"
	// ToolSkill takes {skill, …} beside that and gives the same.
	ToolSkill = "prompt.skill"
	// ToolAgent takes {agent, task?, input?, model?} and gives {session_id, answer}.
	ToolAgent = "agent.run"
)

// TaskEvent says what became of a task: the data of task.started, task.completed, task.failed and task.skipped.
type TaskEvent struct {
	EntityID string       `json:"entity_id"`
	Task     string       `json:"task"`
	Kind     jig.TaskKind `json:"kind"`
	// Attempts is how many calls were made, the repair of an answer included; 0 of a task that makes none.
	Attempts int `json:"attempts,omitempty"`
	// Because is why it was skipped: "condition", or the id of the task that it depends on and that has no value.
	Because string     `json:"because,omitempty"`
	Error   *jig.Error `json:"error,omitempty"`
}

// EntityEvent is the data of entity.updated. It says which fields have a new value: that of the task, kept under its id.
type EntityEvent struct {
	EntityID string   `json:"entity_id"`
	Fields   []string `json:"fields"`
	Task     string   `json:"task"`
}

// Checks are the rules that a value must keep. Both functions are required and must be pure; the error says what is wrong, a
// jig.Error with its place.
type Checks struct {
	// Field holds a value against a field of the entity type.
	Field func(field jig.Field, value json.RawMessage) error
	// Schema holds a value against the JSON Schema of a task's output.
	Schema func(schema, value json.RawMessage) error
}

// Mode is what an extraction does with the tasks of an earlier one.
type Mode string

// The modes.
const (
	// ModeRun runs every task. It is the default.
	ModeRun Mode = "run"
	// ModeRetry runs those that have no value; the values of the others are kept.
	ModeRetry Mode = "retry"
	// ModeRefresh runs those whose input hash is another than before; the others stay as they were, also the failed ones.
	ModeRefresh Mode = "refresh"
)

// Input is what an extraction is given.
type Input struct {
	EntityID string `json:"entity_id"`
	Entity   Target `json:"entity"`
	// Input is read as `input`.
	Input json.RawMessage `json:"input,omitempty"`
	// Fields are the only ones to be filled, with what they depend on; all when it is empty.
	Fields []string `json:"fields,omitempty"`
	Mode   Mode     `json:"mode,omitempty"`
	// Earlier is how the tasks ended before, by id; see Result.Earlier.
	Earlier map[string]Earlier `json:"earlier,omitempty"`
}

// Target is the entity as it is when the extraction begins.
type Target struct {
	Type    string          `json:"type,omitempty"`
	Title   string          `json:"title,omitempty"`
	Content json.RawMessage `json:"content,omitempty"`
}

// Source is what an id stands for.
type Source struct {
	// Hash changes whenever the content does.
	Hash string `json:"hash,omitempty"`
	// Text is its content when it is a text: where quotes are looked for.
	Text *string `json:"text,omitempty"`
}

// Earlier is how a task ended in an earlier extraction.
type Earlier struct {
	Status TaskStatus      `json:"status"`
	Value  json.RawMessage `json:"value,omitempty"`
	Record
}

// Record is how a task ended; its value is kept beside it.
type Record struct {
	// Attempts is how many calls were made.
	Attempts int `json:"attempts,omitempty"`
	// InputHash of a task that failed; of one that has a value see Provenance.
	InputHash string `json:"input_hash,omitempty"`
	// Provenance of the value. Its Call is the path of the call within the extraction.
	Provenance *jig.Provenance `json:"provenance,omitempty"`
	// Error says why the task failed.
	Error *jig.Error `json:"error,omitempty"`
}

// TaskStatus is how a task ended.
type TaskStatus string

// The statuses.
const (
	TaskCompleted TaskStatus = "completed"
	// TaskKept has the value of an earlier extraction.
	TaskKept   TaskStatus = "kept"
	TaskFailed TaskStatus = "failed"
	// TaskSkipped had a condition that was false, or depends on a task without a value.
	TaskSkipped TaskStatus = "skipped"
	// TaskCanceled had not ended when the extraction was cancelled.
	TaskCanceled TaskStatus = "canceled"
)

// Result is the data of an extraction that is over.
type Result struct {
	EntityID string `json:"entity_id"`
	// Values and Provenance are by field, of the fields whose task has a value.
	Values     map[string]json.RawMessage `json:"values"`
	Provenance map[string]jig.Provenance  `json:"provenance"`
	// Tasks are those that were asked for, by id.
	Tasks  map[string]TaskResult `json:"tasks"`
	Counts Counts                `json:"counts"`
}

// TaskResult is how a task ended. Value and provenance stand with the fields when it fills any.
type TaskResult struct {
	Status  TaskStatus `json:"status"`
	Because string     `json:"because,omitempty"`
	// Fields are those that the task fills.
	Fields []string        `json:"fields,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
	Record
}

// Counts are numbers of tasks.
type Counts struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Kept      int `json:"kept"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
	Canceled  int `json:"canceled"`
}

// Earlier is what the next extraction of the entity is given as Input.Earlier. Of one that filled some fields only, lay it
// over that of the one before.
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
