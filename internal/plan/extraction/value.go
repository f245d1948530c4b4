package extraction

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/plan"
)

// answer is the answer from a call.
type answer struct {
	data  json.RawMessage
	model string
}

// valueOf extracts the value from the data of a call.
func (r *run) valueOf(ctx context.Context, t *task, o *openState, data json.RawMessage) (json.RawMessage, *jig.Error, error) {
	if t.value != nil {
		result, err := expr.FromJSON(data)
		if err != nil {
			return nil, jig.Errorf(jig.CodeInvalidOutput, "the result cannot be read: %w", err), nil
		}
		return evaluate(ctx, r, t, "value", t.reads.value, plan.Time(o.Since), &result, t.value.EvalJSON)
	}
	switch {
	case t.wantsJSON():
		return parsed(answerOf(data))
	case t.mends(), t.Kind == entity.TaskAgent:
		return answerOf(data), nil, nil
	}
	return plan.OrNull(data), nil, nil
}

// answerOf returns the answer of a model or an agent: the member output, text or answer of the data, or otherwise all of the data.
func answerOf(data json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) == nil {
		for _, name := range []string{"output", "text", "answer"} {
			if raw, ok := members[name]; ok {
				return raw
			}
		}
	}
	return plan.OrNull(data)
}

// parsed returns the JSON value in the text of an agent's answer.
func parsed(value json.RawMessage) (json.RawMessage, *jig.Error, error) {
	text, is := textOf(value)
	if !is {
		return value, nil, nil // not a text: it is JSON already
	}
	inner, problem := plan.Unfenced(text)
	return inner, problem, nil
}

func textOf(raw json.RawMessage) (text string, is bool) {
	is = json.Unmarshal(raw, &text) == nil
	return text, is
}

// usage is the model and the number of tokens that a call used.
type usage struct {
	model  string
	tokens int64
}

func usageOf(data json.RawMessage) usage {
	var d struct {
		Model string `json:"model"`
		Usage struct {
			Input       int64 `json:"input"`
			Output      int64 `json:"output"`
			CacheRead   int64 `json:"cache_read"`
			CacheCreate int64 `json:"cache_create"`
		} `json:"usage"`
	}
	if json.Unmarshal(data, &d) != nil {
		return usage{}
	}
	return usage{model: d.Model, tokens: d.Usage.Input + d.Usage.Output + d.Usage.CacheRead + d.Usage.CacheCreate}
}

// fits checks a value against the task's schema and its fields.
func (r *run) fits(t *task, value json.RawMessage) *jig.Error {
	if len(value) > maxValue {
		return jig.Errorf(jig.CodeInvalidOutput, "the value takes %d KiB; at most %d are allowed", len(value)>>10, maxValue>>10)
	}
	if _, err := digest(value); err != nil {
		return invalid("the value", err)
	}
	if len(t.OutputSchema) > 0 {
		if err := r.plan.checks.Schema(t.OutputSchema, value); err != nil {
			return invalid("the value does not fit the output schema", err)
		}
	}
	for _, f := range t.fields {
		if err := r.plan.checks.Field(f, value); err != nil {
			return invalid("the value does not fit the field "+f.Name, err)
		}
	}
	return nil
}

func invalid(what string, err error) *jig.Error {
	e := *jig.AsError(err)
	e.Code, e.Message = jig.CodeInvalidOutput, what+": "+e.Message
	return &e
}

// accept gives a task its value, if the value fits. o and given are nil if the task made no call.
func (r *run) accept(ctx context.Context, t *task, o *openState, value json.RawMessage, given *answer) (*jig.Error, error) {
	if value = plan.OrNull(value); r.st.Bytes+len(value) > maxTotal {
		return jig.Errorf(jig.CodeInvalidOutput, "the values of the entity take more than %d MiB", maxTotal>>20), nil
	}
	if problem := r.fits(t, value); problem != nil {
		return problem, nil
	}
	sources, problem, err := r.sources(ctx, t, o, value, given)
	if problem != nil || err != nil {
		return problem, err
	}
	p := entity.Provenance{Task: t.ID, Sources: sources, At: r.At.Now.UTC()}
	if p.InputHash, err = r.hash(ctx, t, sources); err != nil {
		return nil, err
	}
	record := Record{Provenance: &p}
	if o != nil {
		record.Attempts = o.Calls
		p.Model, p.Tokens, p.Attempt, p.Call = given.model, o.Tokens, o.Calls, r.callID(o.path(t))
	}
	r.st.marks[t.number] = markDone
	r.st.Bytes += len(value)
	r.Keep(t.ID, value)
	r.event(jig.EventTaskCompleted, t, o, TaskEvent{Attempts: record.Attempts})
	r.updated(t)
	r.write(t, value, p)
	if err := r.ended(t, Earlier{Status: TaskCompleted, Value: value, Record: record}); err != nil {
		return nil, err
	}
	return nil, r.keepRecord(t, record)
}

// callID returns the id under which a call is known outside of the extraction, e.g. ses_1/1.1/page.
func (r *run) callID(path string) string {
	if r.At.Call == "" {
		return path
	}
	return r.At.Call + "/" + path
}

// maxSources is the maximum number of sources of a value.
const maxSources = 1_000

// sources returns the ids of the sources of a task's value. given is the answer from its call, and value the value derived from the answer.
// Before there is a value, it returns the ids that are already known.
func (r *run) sources(ctx context.Context, t *task, o *openState, value json.RawMessage, given *answer) ([]string, *jig.Error, error) {
	if t.Kind == entity.TaskCitations {
		raw, err := r.claims(ctx, t)
		return citedIDs(raw), nil, err
	}
	if t.sources == nil {
		return nil, nil, nil
	}
	raw, now := value, r.At.Now.UTC()
	if given != nil {
		raw = given.data
	}
	if o != nil {
		now = plan.Time(o.Since)
	}
	result, err := expr.FromJSON(raw)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidOutput, "the result cannot be read: %w", err), nil
	}
	v, problem, err := evaluate(ctx, r, t, "sources", t.reads.sources, now, &result, t.sources.Eval)
	if problem != nil || err != nil {
		return nil, problem, err
	}
	ids, problem := idsOf(v, maxSources)
	if problem != nil {
		problem = r.plan.Located(t.at("sources"), problem)
	}
	return ids, problem, nil
}

// idsOf reads one id or a list of at most most ids.
func idsOf(v any, most int) ([]string, *jig.Error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	if v == nil || len(list) == 0 {
		return nil, nil
	}
	if len(list) > most {
		return nil, jig.Errorf(jig.CodeInvalidOutput, "there are %d ids, at most %d are allowed", len(list), most)
	}
	ids, seen := make([]string, 0, len(list)), make(map[string]bool, len(list))
	for _, item := range list {
		id, ok := item.(string)
		if !ok || id == "" {
			return nil, jig.Errorf(jig.CodeInvalidOutput, "sources are ids: a text, or a list of texts")
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// change returns the change that this move makes to the entity.
func (r *run) change() *entity.Change {
	if r.Move.Entity == nil {
		r.Move.Entity = &entity.Change{ID: r.given.EntityID, Tasks: map[string]json.RawMessage{}}
	}
	return r.Move.Entity
}

// write sets the fields of the entity that the task fills.
func (r *run) write(t *task, value json.RawMessage, p entity.Provenance) {
	c := r.change()
	if len(t.fields) > 0 && c.Fields == nil {
		c.Fields, c.Provenance = map[string]json.RawMessage{}, map[string]entity.Provenance{}
	}
	r.related = r.related || points(t.fields)
	for _, f := range t.fields {
		c.Fields[f.Name], c.Provenance[f.Name] = value, p
	}
}

// ended stores how a task ended, for the next extraction. If the task fills fields, its value and provenance are not stored here but only in
// the entity: if somebody changes a field there, the value is no longer the task's.
func (r *run) ended(t *task, e Earlier) error {
	if len(t.fields) > 0 {
		e.Value, e.Provenance = nil, nil
	}
	raw, err := jsontext.Encode(e)
	if err == nil {
		r.change().Tasks[t.ID] = raw
	}
	return err
}

// InputOf returns the input of an extraction that begins. A task that filled fields loses its earlier value if somebody
// else has changed one of these fields, or if a field's provenance names another task.
func InputOf(x entity.Extraction) (json.RawMessage, error) {
	in := Input{
		EntityID: x.Entity.ID, Entity: Target{Type: x.Entity.Type, Title: x.Entity.Title, Content: x.Entity.Content}, Fields: x.Fields, Mode: Mode(x.Mode), Task: x.Task, Input: x.Input,
		Earlier: map[string]Earlier{},
	}
	content := map[string]json.RawMessage{}
	if len(x.Entity.Content) > 0 {
		if err := json.Unmarshal(x.Entity.Content, &content); err != nil {
			return nil, jig.Errorf(jig.CodeInternal, "reading the content of entity %s: %w", x.Entity.ID, err)
		}
	}
	for _, t := range x.Type.Tasks {
		raw, known := x.Tasks[t.ID]
		if !known {
			continue
		}
		var e Earlier
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, jig.Errorf(jig.CodeInternal, "reading how task %s of entity %s ended: %w", t.ID, x.Entity.ID, err)
		}
		if e.filled(x.Type, t.ID, content, x.Entity.Provenance) {
			in.Earlier[t.ID] = e
		}
	}
	return jsontext.Encode(in)
}

// filled sets the value and provenance of a task from the entity if the task fills a field. It returns false if a field no longer has the
// task's value.
func (e *Earlier) filled(kind entity.Type, id string, content map[string]json.RawMessage, provenance map[string]entity.Provenance) bool {
	if e.Status != TaskCompleted && e.Status != TaskKept {
		return true
	}
	for _, f := range kind.Fields {
		if f.Task != id {
			continue
		}
		p, ok := provenance[f.Name]
		if !ok || p.Task != id {
			return false
		}
		e.Value, e.Provenance = plan.OrNull(content[f.Name]), &p
	}
	return true
}
