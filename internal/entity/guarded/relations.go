package guarded

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
)

// Relations returns the targets of the relation fields among the given fields, by the dotted names of those fields. It checks that the
// principal may read the targets and that they have the right type.
func (g Entities) Relations(
	ctx context.Context, inv jig.Invocation, t entity.Type, content map[string]json.RawMessage, at string,
) (map[string][]string, error) {
	found := linksOf(t, content)
	var ids []string
	for _, ends := range found.ends {
		ids = append(ids, ends...)
	}
	if len(ids) == 0 {
		return found.ends, nil
	}
	kinds, err := g.kinds(ctx, inv, ids)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(found.ends)) {
		field := at + "/" + strings.ReplaceAll(name, ".", "/")
		for _, id := range found.ends[name] {
			switch kind, ok := kinds[id]; {
			case !ok:
				return nil, NotFound(field, id)
			case found.target[name] != "" && kind != found.target[name]:
				return nil, jig.Errorf(jig.CodeInvalidInput, "%s points at entities of type %s, but %q has type %s", name, found.target[name], id, kind).
					WithField(field).WithHint("give the id of a " + found.target[name])
			}
		}
	}
	return found.ends, nil
}

// kinds returns the types of the given entities, by id, leaving out those that the principal may not read.
func (g Entities) kinds(ctx context.Context, inv jig.Invocation, ids []string) (map[string]string, error) {
	types, err := g.ReadableTypes(ctx, inv)
	if err != nil {
		return nil, err
	}
	there, err := g.Store.Entities(ctx, inv.Tenant, ids)
	if err != nil {
		return nil, err
	}
	kinds := make(map[string]string, len(there))
	for _, e := range entity.Visible(types, there) {
		kinds[e.ID] = e.Type
	}
	return kinds, nil
}

// links are the ids in relation fields and the types that they must have, by dotted field name.
type links struct {
	ends   map[string][]string
	target map[string]string
}

// Links returns the targets of the relation fields among the values, by the dotted names of those fields.
func Links(t entity.Type, values map[string]json.RawMessage) map[string][]string {
	return linksOf(t, values).ends
}

func linksOf(t entity.Type, values map[string]json.RawMessage) links {
	found := links{ends: map[string][]string{}, target: map[string]string{}}
	for i := range t.Fields {
		if v, ok := values[t.Fields[i].Name]; ok {
			found.collect(&t.Fields[i], t.Fields[i].Name, v)
		}
	}
	return found
}

// collect adds the ids in a value of a field. Every relation field gets an entry, even if empty, so that old relations are removed.
func (l links) collect(f *entity.Field, name string, v json.RawMessage) {
	switch f.Type { //nolint:exhaustive // fields of other types hold no ids
	case entity.FieldRelation:
		var one string
		var many []string
		if json.Unmarshal(v, &one) == nil && one != "" {
			many = []string{one}
		} else if json.Unmarshal(v, &many) != nil {
			many = nil
		}
		l.ends[name], l.target[name] = append(l.ends[name], many...), f.Target
	case entity.FieldObject:
		var object map[string]json.RawMessage
		if json.Unmarshal(v, &object) != nil {
			object = nil
		}
		for i := range f.Fields {
			l.collect(&f.Fields[i], name+"."+f.Fields[i].Name, object[f.Fields[i].Name])
		}
	case entity.FieldArray:
		if f.Items == nil {
			return
		}
		var list []json.RawMessage
		if json.Unmarshal(v, &list) != nil || len(list) == 0 {
			list = []json.RawMessage{nil}
		}
		for _, item := range list {
			l.collect(f.Items, name, item)
		}
	}
}
