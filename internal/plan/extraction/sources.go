package extraction

import (
	"context"
	"slices"
	"strings"

	"github.com/jig-run/jig/internal/entity"
)

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
