package extraction

import (
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/plan"
)

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
