package spec

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
)

// Limits and defaults of an entity type.
const (
	// MaxTasks limits the tasks of an entity type. MaxTaskDepth limits the length of a chain of dependent tasks.
	MaxTasks     = 1_000
	MaxTaskDepth = 100
	// DefaultMaxParallel is how many tasks of one entity run at once by default.
	DefaultMaxParallel = 10
	// DefaultBackoff is the default wait before the second attempt of a task.
	DefaultBackoff = time.Second
)

// entityTypeHead is a document of kind entity_type.
type entityTypeHead struct {
	Kind        string       `json:"kind" spec:"required" jsonschema:"entity_type."`
	Name        string       `json:"name" spec:"required,max=63,form=slug" hint:"add e.g. name: module" jsonschema:"The type's name: lower-case letters, digits, '_' and '-'."`
	Title       string       `json:"title,omitempty" spec:"max=128" jsonschema:"What people call an entity of the type."`
	Description string       `json:"description,omitempty" spec:"max=4096" jsonschema:"What entities of the type are."`
	Fields      []fieldHead  `json:"fields" spec:"required,min=1,max=500" hint:"add at least one field" jsonschema:"The fields."`
	Tasks       []entityTask `json:"tasks,omitempty" spec:"max=1000" jsonschema:"The tasks that fill fields."`
	MaxParallel int          `json:"max_parallel,omitempty" spec:"min=1,max=100" jsonschema:"How many tasks of one entity run at once; default 10."`
}

// fieldHead is a field of an entity or of an object, as the document writes it.
type fieldHead struct {
	Name     string          `json:"name" spec:"required,max=64,form=variable" hint:"add e.g. name: licence" jsonschema:"The field's name, unique among its siblings: letters, digits and '_', starting with a lower-case letter."`
	Required bool            `json:"required,omitempty" jsonschema:"Whether every entity (or object) must have it."`
	Default  json.RawMessage `json:"default,omitempty" jsonschema:"The value if an entity is created without one."`
	Task     string          `json:"task,omitempty" spec:"max=64,form=variable" jsonschema:"The id of the task that fills it."`
	fieldShape
}

// itemHead describes the items of an array.
type itemHead struct{ fieldShape }

// fieldShape holds the keys that fields and items share.
type fieldShape struct {
	Type        entity.FieldType `json:"type" spec:"required,form=field_type" hint:"add e.g. type: text" jsonschema:"text, number, boolean, date, enum, url, email, phone, media, relation, object or array."`
	Label       string           `json:"label,omitempty" spec:"max=128" jsonschema:"What people call it; by default derived from the name."`
	Display     string           `json:"display,omitempty" spec:"max=32" jsonschema:"A variant of the type, for forms and pages; by default the type's first one."`
	Description string           `json:"description,omitempty" spec:"max=4096" jsonschema:"What the value is."`
	Options     []string         `json:"options,omitempty" spec:"min=1,max=1000" jsonschema:"For an enum: its values."`
	Minimum     *float64         `json:"minimum,omitempty" jsonschema:"For a number: the smallest value."`
	Maximum     *float64         `json:"maximum,omitempty" jsonschema:"For a number: the largest value."`
	Integer     bool             `json:"integer,omitempty" jsonschema:"For a number: whether it must be whole."`
	MinLength   *int             `json:"min_length,omitempty" spec:"min=0,max=1000000" jsonschema:"For a text: the minimum number of characters; for an array or many relations: the minimum number of items."`
	MaxLength   *int             `json:"max_length,omitempty" spec:"min=0,max=1000000" jsonschema:"For a text: the maximum number of characters; for an array or many relations: the maximum number of items."`
	Pattern     string           `json:"pattern,omitempty" spec:"max=1000" jsonschema:"For a text: a regular expression (RE2) that must match somewhere in it."`
	Time        bool             `json:"time,omitempty" jsonschema:"For a date: whether it has a time of day and an offset."`
	Target      string           `json:"target,omitempty" spec:"max=63,form=slug" jsonschema:"For a relation: the entity type that it leads to."`
	Many        bool             `json:"many,omitempty" jsonschema:"For a relation: whether it holds several entities."`
	Fields      []fieldHead      `json:"fields,omitempty" spec:"min=1,max=500" jsonschema:"For an object: its fields."`
	Items       *itemHead        `json:"items,omitempty" jsonschema:"For an array: the type of its items."`
}

// entityTask is a task as the document writes it. It has exactly one of Compute, Tool, Prompt, Composition, Agent and Citations.
type entityTask struct {
	ID        string     `json:"id" spec:"required,max=64,form=variable" hint:"add e.g. id: risk" jsonschema:"The task's id, unique in the document; its value is read as tasks.<id>."`
	DependsOn []string   `json:"depends_on,omitempty" spec:"max=1000,form=variable" jsonschema:"Tasks that must end first; the task starts as soon as they have."`
	When      Expression `json:"when,omitempty" spec:"max=4096" jsonschema:"A condition (CEL); if it is false, the task and all tasks that depend on it are skipped."`

	Compute     Expression `json:"compute,omitempty" spec:"max=4096" jsonschema:"CEL that evaluates to the value."`
	Tool        string     `json:"tool,omitempty" spec:"max=64,form=tool_name" jsonschema:"The tool to call."`
	Prompt      string     `json:"prompt,omitempty" spec:"max=64,form=spec_name" jsonschema:"The prompt to ask, a document of that kind."`
	Composition string     `json:"composition,omitempty" spec:"max=64,form=spec_name" jsonschema:"The composition to run."`
	Agent       string     `json:"agent,omitempty" spec:"max=128,form=name" jsonschema:"The agent to start."`
	Citations   string     `json:"citations,omitempty" spec:"max=64,form=variable" jsonschema:"The task whose claims are checked."`
	Among       Expression `json:"among,omitempty" spec:"max=4096" jsonschema:"CEL that evaluates to a list: the ids of the entities and documents that the claims may cite; default: everything that is connected."`

	Input        json.RawMessage `json:"input,omitempty" spec:"form=mapping" jsonschema:"The input of the call; texts in it are templates."`
	Value        Expression      `json:"value,omitempty" spec:"max=4096" jsonschema:"CEL over result, the result of the call; default: the whole result."`
	OutputSchema json.RawMessage `json:"output_schema,omitempty" spec:"form=any_schema" jsonschema:"JSON Schema 2020-12 that the value must match, in addition to its field."`
	Sources      Expression      `json:"sources,omitempty" spec:"max=4096" jsonschema:"CEL that evaluates to a list: the ids of the entities and documents that support the value."`
	Attempts     int             `json:"attempts,omitempty" spec:"min=1,max=20" jsonschema:"Attempts in total; default 1."`
	Backoff      Duration        `json:"backoff,omitempty" spec:"min=1s,max=1d" jsonschema:"The wait before the second attempt, doubled each time; default 1s."`
}

// taskActions returns the keys that say how a task gets its value. A task has exactly one of them, which is also its kind.
func taskActions() []string {
	return []string{
		string(entity.TaskCompute), string(entity.TaskTool), string(entity.TaskPrompt), string(entity.TaskComposition), string(entity.TaskAgent), string(entity.TaskCitations),
	}
}

// LoadEntityType reads a document of kind entity_type, in YAML or JSON. document is the file name for error messages. The result has its
// defaults filled in, and the dependencies of a citations task include the task whose claims it checks. The error is a [Problems] with
// everything that is wrong.
func LoadEntityType(document string, body []byte) (entity.Type, error) {
	return loadAs[entity.Type](KindEntityType, document, body)
}

func (d *decoder) entityType(h entityTypeHead, s source) entity.Type {
	t := entity.Type{
		Name: h.Name, Title: h.Title, Description: h.Description, Version: s.version, MaxParallel: h.MaxParallel,
	}
	setDefault(&t.MaxParallel, DefaultMaxParallel)
	t.Fields = d.entityFields("fields", h.Fields, 1)
	if count := countFields(t.Fields); count > MaxFields {
		d.at("fields", ProblemTooMany, "split the type into two, with a relation between them", "the type has %d fields, including nested ones; at most %d are allowed", count, MaxFields)
	}
	for i, task := range h.Tasks {
		t.Tasks = append(t.Tasks, d.entityTask(indexPath("tasks", i), task))
	}
	d.unique("tasks", "id", len(h.Tasks), func(i int) string { return h.Tasks[i].ID })
	if len(h.Tasks) <= MaxTasks {
		d.checkTasks(t)
	}
	return t
}

func countFields(fields []entity.Field) int {
	n := len(fields)
	for i := range fields {
		n += countFields(fields[i].Fields)
		for item := fields[i].Items; item != nil; item = item.Items {
			n += 1 + countFields(item.Fields)
		}
	}
	return n
}

// entityTask converts a task from its written form.
func (d *decoder) entityTask(path string, h entityTask) entity.Task {
	t := entity.Task{
		ID: h.ID, DependsOn: h.DependsOn, When: string(h.When), Input: h.Input, Value: string(h.Value), OutputSchema: h.OutputSchema,
		Sources: string(h.Sources), Attempts: h.Attempts, Backoff: time.Duration(h.Backoff),
	}
	t.Kind = d.taskKind(path)
	d.checkInput(path + ".input")
	d.schemaInput(h.Tool, path+".input", h.Input)
	switch t.Kind {
	case entity.TaskCompute:
		t.Compute = string(h.Compute)
	case entity.TaskTool:
		t.Use = h.Tool
	case entity.TaskPrompt:
		t.Use = h.Prompt
	case entity.TaskComposition:
		t.Use = h.Composition
	case entity.TaskAgent:
		t.Use = h.Agent
	case entity.TaskCitations:
		t.Claims, t.Among = h.Citations, string(h.Among)
		if !slices.Contains(t.DependsOn, t.Claims) {
			t.DependsOn = append(slices.Clone(t.DependsOn), t.Claims)
		}
	}
	if h.OutputSchema != nil {
		d.checkAnySchema(path+".output_schema", h.OutputSchema)
	}
	setDefault(&t.Attempts, 1)
	if d.has(path+".backoff") && t.Attempts == 1 {
		d.at(path+".backoff", ProblemBadShape, "add attempts: 2, or remove it", "a task with a single attempt has no wait between attempts")
	}
	if t.Attempts > 1 {
		setDefault(&t.Backoff, DefaultBackoff)
	}
	return t
}

// taskKind returns the kind of a task, from the key that says how the task gets its value. It refuses keys that cannot be combined with
// that key.
func (d *decoder) taskKind(path string) entity.TaskKind {
	var given []string
	for _, action := range taskActions() {
		if d.has(path + "." + action) {
			given = append(given, action)
		}
	}
	switch {
	case len(given) == 0:
		d.at(path, ProblemBadShape, "add one of "+strings.Join(taskActions(), ", "), "the task does not say how it gets its value")
		return ""
	case len(given) > 1:
		d.at(path+"."+given[1], ProblemBadShape, "split it into two tasks", "a task gets its value in one way; this one has %s", jig.Known(strings.Join(given, " and ")))
		return ""
	}
	kind := entity.TaskKind(given[0])
	for _, key := range strayTaskKeys(kind) {
		if d.has(path + "." + key) {
			d.at(path+"."+key, ProblemBadShape, "remove it", "a task with %s has no %s", jig.Known(kind), jig.Known(key))
		}
	}
	return kind
}

// strayTaskKeys returns the keys that a kind of task must not have. Tasks that are evaluated locally make no call, so they have neither
// input nor value. Only citations tasks have the key among.
func strayTaskKeys(kind entity.TaskKind) []string {
	switch kind {
	case entity.TaskCompute:
		return []string{"input", "value", "among"}
	case entity.TaskCitations:
		return []string{"input", "value", "sources"}
	case entity.TaskTool, entity.TaskPrompt, entity.TaskComposition, entity.TaskAgent:
		return []string{"among"}
	}
	return nil
}
