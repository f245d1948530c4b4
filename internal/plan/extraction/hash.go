package extraction

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/canonical"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/plan"
)

// hashed holds everything that a task's value depends on. The SHA-256 of its RFC 8785 form is the task's input hash. The values of tasks,
// fields and the input are included as hashes. `now` and `tenant` are left out: the first always changes, the second never does.
type hashed struct {
	Definition json.RawMessage `json:"definition"`
	Tasks      map[string]any  `json:"tasks,omitempty"`
	Content    map[string]any  `json:"content,omitempty"`
	// Entity has the entity's id, type and title.
	Entity []string `json:"entity,omitempty"`
	Input  string   `json:"input,omitempty"`
	// Sources maps ids to hashes. The hash of an unknown source is null.
	Sources map[string]any `json:"sources,omitempty"`
}

// hash returns the input hash of a task whose value is based on these sources.
func (r *run) hash(ctx context.Context, t *task, sources []string) (string, error) {
	rd := t.reads.all
	doc := hashed{Definition: t.definition}
	numbers := r.tasksOf(t, rd)
	if t.Kind == entity.TaskCitations {
		numbers = append(numbers, t.claims)
	}
	if err := r.loadTasks(ctx, numbers); err != nil {
		return "", err
	}
	read := r.tasksNamed(t, rd.tasks)
	if t.Kind == entity.TaskCitations {
		read = append(read, t.claims)
	}
	doc.Tasks = make(map[string]any, len(read))
	for _, n := range read {
		sum, err := r.valueHash(n)
		if err != nil {
			return "", err
		}
		doc.Tasks[r.plan.tasks[n].ID] = sum
	}
	var err error
	if doc.Content, err = r.hashContent(t, rd.content); err != nil {
		return "", err
	}
	if rd.input {
		if doc.Input, err = digest(plan.OrNull(r.given.Input.Input)); err != nil {
			return "", err
		}
	}
	if rd.entity {
		doc.Entity = []string{r.given.EntityID, r.entityType(), r.given.Entity.Title}
	}
	if doc.Sources, err = r.sourceHashes(ctx, sources); err != nil {
		return "", err
	}
	raw, err := jsontext.Encode(doc)
	if err != nil {
		return "", err
	}
	return digest(raw)
}

// sourceHashes returns the hash of each source, by id. The hash of an unknown source is null.
func (r *run) sourceHashes(ctx context.Context, ids []string) (map[string]any, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	known, err := r.known(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[string]any, len(ids))
	for _, id := range ids {
		switch source, ok := known[id]; {
		case !ok:
			out[id] = nil
		case source.Hash == "" && source.Text != nil:
			sum := sha256.Sum256([]byte(*source.Text))
			out[id] = hex.EncodeToString(sum[:])
		default:
			out[id] = source.Hash
		}
	}
	return out, nil
}

func (r *run) hashContent(t *task, of names) (map[string]any, error) {
	out := map[string]any{}
	for _, name := range r.fieldsNamed(of) {
		n, filled := r.plan.filler[name]
		switch {
		case filled && t.ancestors.has(n) && r.st.marks[n].hasValue():
			sum, err := r.valueHash(n)
			if err != nil {
				return nil, err
			}
			out[name] = sum
		case !filled:
			if raw, ok := r.given.raw.content[name]; ok {
				sum, err := digest(raw)
				if err != nil {
					return nil, err
				}
				out[name] = sum
			}
		}
	}
	return out, nil
}

func (r *run) valueHash(n int) (string, error) {
	if sum, ok := r.sums[n]; ok {
		return sum, nil
	}
	raw, err := r.rawValue(n)
	if err != nil {
		return "", err
	}
	sum, err := digest(raw)
	if err == nil {
		r.sums[n] = sum
	}
	return sum, err
}

// digest returns the SHA-256 of a JSON value's RFC 8785 form, in hex.
func digest(raw json.RawMessage) (string, error) {
	sum, err := canonical.Hash(raw)
	if err != nil {
		return "", jig.Errorf(jig.CodeInvalidInput, "the value has no canonical form: %w", err)
	}
	return sum, nil
}

// known returns the entities and documents that values may be based on and that claims may cite, by id. It reads them once per move.
func (r *run) known(ctx context.Context) (map[string]Source, error) {
	if r.sourcesRead {
		return r.connected, nil
	}
	all, err := r.facts.Sources(ctx)
	if err != nil {
		return nil, err
	}
	r.connected, r.sourcesRead = sourcesOf(all), true
	return r.connected, nil
}

// sourcesOf returns each source with its hash. Quotes of an entity are looked up in the entity's texts.
func sourcesOf(all entity.Sources) map[string]Source {
	out := make(map[string]Source, len(all.Texts)+len(all.Entities))
	bodies, sums := map[string][]string{}, map[string][]string{}
	for _, t := range all.Texts {
		out[t.ID] = Source{Hash: t.Hash, Text: t.Body}
		sums[t.EntityID] = append(sums[t.EntityID], t.Hash)
		if t.Body != nil {
			bodies[t.EntityID] = append(bodies[t.EntityID], *t.Body)
		}
	}
	for _, e := range all.Entities {
		source := Source{Hash: e.Hash + strings.Join(sums[e.ID], "")}
		if texts := bodies[e.ID]; len(texts) > 0 {
			whole := strings.Join(texts, "\n\n")
			source.Text = &whole
		}
		out[e.ID] = source
	}
	return out
}

// rests reports whether the task needs the known sources.
func (t *task) rests() bool { return t.Kind == entity.TaskCitations || t.sources != nil }

// points reports whether one of these fields can make the entity point to other entities.
func points(fields []entity.Field) bool {
	return slices.ContainsFunc(fields, func(f entity.Field) bool {
		return f.Type == entity.FieldRelation || points(f.Fields) || f.Items != nil && points([]entity.Field{*f.Items})
	})
}
