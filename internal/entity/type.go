package entity

import (
	"encoding/json"
	"time"
)

// FieldType is the storage type of a field's value.
type FieldType string

// The storage types.
const (
	FieldText     FieldType = "text"
	FieldNumber   FieldType = "number"
	FieldBoolean  FieldType = "boolean"
	FieldDate     FieldType = "date"
	FieldEnum     FieldType = "enum"
	FieldURL      FieldType = "url"
	FieldEmail    FieldType = "email"
	FieldPhone    FieldType = "phone"
	FieldMedia    FieldType = "media"
	FieldRelation FieldType = "relation"
	FieldObject   FieldType = "object"
	FieldArray    FieldType = "array"
)

// FieldTypes lists the storage types.
func FieldTypes() []FieldType {
	return []FieldType{
		FieldText, FieldNumber, FieldBoolean, FieldDate, FieldEnum, FieldURL, FieldEmail, FieldPhone, FieldMedia, FieldRelation,
		FieldObject, FieldArray,
	}
}

// Field defines one field of an entity type, or a part of one.
type Field struct {
	Name  string    `json:"name"`
	Label string    `json:"label,omitempty"`
	Type  FieldType `json:"type"`
	// Display is a variant of the type for forms and pages, e.g. markdown for text; empty means the type's first variant.
	Display     string `json:"display,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
	// Default is the value used when an entity is created without the field.
	Default json.RawMessage `json:"default,omitempty"`
	// Options are the values of an enum.
	Options []string `json:"options,omitempty"`
	// Minimum and Maximum bound a number. MinLength and MaxLength bound a text (in characters) or an array (in items).
	Minimum   *float64 `json:"minimum,omitempty"`
	Maximum   *float64 `json:"maximum,omitempty"`
	MinLength *int     `json:"min_length,omitempty"`
	MaxLength *int     `json:"max_length,omitempty"`
	// Integer restricts a number to whole numbers, Pattern (RE2) restricts a text, and Time gives a date a time of day (RFC 3339).
	Integer bool   `json:"integer,omitempty"`
	Pattern string `json:"pattern,omitempty"`
	Time    bool   `json:"time,omitempty"`
	// Target names the entity type that a relation points at; Many allows several.
	Target string `json:"target,omitempty"`
	Many   bool   `json:"many,omitempty"`
	// Fields are the fields of an object; Items describes the items of an array.
	Fields []Field `json:"fields,omitempty"`
	Items  *Field  `json:"items,omitempty"`
	// Task is the id of the task that fills the field; empty when no task does.
	Task string `json:"task,omitempty"`
}

// Type is an entity type as parsed: its fields and the tasks that fill them.
type Type struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// Version is the content hash of the document.
	Version string  `json:"version"`
	Fields  []Field `json:"fields"`
	Tasks   []Task  `json:"tasks,omitempty"`
	// MaxParallel bounds the tasks of one entity that run at once; default 10.
	MaxParallel int `json:"max_parallel,omitempty"`
}

// TaskKind says how a task gets its value.
type TaskKind string

// The kinds of tasks.
const (
	TaskCompute     TaskKind = "compute"
	TaskTool        TaskKind = "tool"
	TaskPrompt      TaskKind = "prompt"
	TaskComposition TaskKind = "composition"
	TaskAgent       TaskKind = "agent"
	// TaskCitations checks the claims that another task made.
	TaskCitations TaskKind = "citations"
)

// Task fills a field of an entity.
type Task struct {
	ID        string   `json:"id"`
	Kind      TaskKind `json:"kind"`
	DependsOn []string `json:"depends_on,omitempty"`
	// When is a CEL condition. If it is false, the task and all tasks that depend on it are skipped.
	When string `json:"when,omitempty"`
	// Compute is the CEL expression of a compute task.
	Compute string `json:"compute,omitempty"`
	// Use names the tool, composition, prompt or agent.
	Use string `json:"use,omitempty"`
	// Input is a document of templates that gives the call's input.
	Input json.RawMessage `json:"input,omitempty"`
	// Value is a CEL expression over the call's result; empty means the whole result.
	Value string `json:"value,omitempty"`
	// OutputSchema is a JSON Schema that the value must fit in addition to the definition of its field.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// Sources is a CEL expression that returns the ids of the entities and documents on which the value is based.
	Sources string `json:"sources,omitempty"`
	// Attempts bounds the number of attempts; default 1. Backoff is the wait before the second attempt and doubles each time.
	Attempts int           `json:"attempts,omitempty"`
	Backoff  time.Duration `json:"backoff,omitempty"`
	// Claims names the task whose claims a citations task checks. Among is a CEL expression that returns the only ids those claims may
	// cite; empty means anything connected.
	Claims string `json:"claims,omitempty"`
	Among  string `json:"among,omitempty"`
}
