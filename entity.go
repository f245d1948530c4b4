package jig

import (
	"encoding/json"
	"time"
)

// FieldType is how a field's value is stored.
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
	// Display is a variant of the type for forms and pages, e.g. markdown of text; the type's first one when empty.
	Display     string `json:"display,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
	// Default is taken when an entity is created without the field.
	Default json.RawMessage `json:"default,omitempty"`
	// Options are the values of an enum.
	Options []string `json:"options,omitempty"`
	// Minimum and Maximum bound a number, MinLength and MaxLength a text (in characters) or an array (in items).
	Minimum   *float64 `json:"minimum,omitempty"`
	Maximum   *float64 `json:"maximum,omitempty"`
	MinLength *int     `json:"min_length,omitempty"`
	MaxLength *int     `json:"max_length,omitempty"`
	// Integer keeps a number whole, Pattern (RE2) bounds a text, Time says that a date has a time of day (RFC 3339).
	Integer bool   `json:"integer,omitempty"`
	Pattern string `json:"pattern,omitempty"`
	Time    bool   `json:"time,omitempty"`
	// Target names the entity type of a relation; Many allows several.
	Target string `json:"target,omitempty"`
	Many   bool   `json:"many,omitempty"`
	// Fields are those of an object, Items is what an array holds.
	Fields []Field `json:"fields,omitempty"`
	Items  *Field  `json:"items,omitempty"`
	// Task is the id of the task that fills the field; none when somebody else does.
	Task string `json:"task,omitempty"`
}

// EntityType is an entity type as parsed: its fields and the tasks that fill them.
type EntityType struct {
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
	// When is CEL; a task whose condition is false is skipped, and so is whatever depends on it.
	When string `json:"when,omitempty"`
	// Compute is the CEL expression of a compute task.
	Compute string `json:"compute,omitempty"`
	// Use names the tool, the composition, the prompt or the agent.
	Use string `json:"use,omitempty"`
	// Input is a document of templates: the call's input.
	Input json.RawMessage `json:"input,omitempty"`
	// Value is CEL over the call's result; the whole result when it is empty.
	Value string `json:"value,omitempty"`
	// OutputSchema is what the value must fit beside its field.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// Sources is CEL that gives the ids of the entities and documents that the value rests on.
	Sources string `json:"sources,omitempty"`
	// Attempts bounds how often it is tried; default 1. Backoff is the wait before the second, doubled each time.
	Attempts int           `json:"attempts,omitempty"`
	Backoff  time.Duration `json:"backoff,omitempty"`
	// Claims names the task whose claims a citations task checks. Among is CEL that gives the only ids that these may cite;
	// whatever is connected when it is empty.
	Claims string `json:"claims,omitempty"`
	Among  string `json:"among,omitempty"`
}

// Entity is a typed record.
type Entity struct {
	Tenant string `json:"tenant"`
	ID     string `json:"entity_id"`
	Type   string `json:"type"`
	// TypeVersion is that of the entity type which the content was last checked against.
	TypeVersion string          `json:"type_version"`
	Title       string          `json:"title,omitempty"`
	Content     json.RawMessage `json:"content"`
	// Provenance says, by field, how a task came to its value.
	Provenance map[string]Provenance `json:"provenance,omitempty"`
	Revision   int64                 `json:"revision"`
	// SessionID and Call are those of the latest extraction of it; empty when there was none.
	SessionID string    `json:"session_id,omitempty"`
	Call      string    `json:"call,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Provenance is how a field came to its value.
type Provenance struct {
	Task    string   `json:"task"`
	Sources []string `json:"sources,omitempty"`
	Model   string   `json:"model,omitempty"`
	Tokens  int64    `json:"tokens,omitempty"`
	// InputHash is the SHA-256 of what the value was worked out from: the same hash needs no second run.
	InputHash string    `json:"input_hash"`
	Attempt   int       `json:"attempt,omitempty"`
	Call      string    `json:"call,omitempty"`
	At        time.Time `json:"at"`
}

// TextClaim is a claim of a text: what it says and on what it rests.
type TextClaim struct {
	Text            string   `json:"text"`
	SourceEntityIDs []string `json:"source_entity_ids"`
	// Quote must stand in one of the sources, word for word; unchecked when empty.
	Quote string `json:"quote,omitempty"`
}
