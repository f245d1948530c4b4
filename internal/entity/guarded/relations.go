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

// Draft is a document's description of an entity to create.
type Draft struct {
	Type, Title string
	Content     map[string]json.RawMessage
	// Relations are ids by name. If a field of type relation has the name, the ids become the field's value, unless the content already has
	// one.
	Relations map[string][]string
	// At and RelationsAt are the positions of the content and of the relations in the document, for error messages.
	At, RelationsAt string
}

// New turns a draft into an entity to be created: it checks that the principal may write entities of the type, fills in defaults, and
// checks the content. missing lists ids of relation targets that do not exist or that the principal may not read; if there are any, no
// entity is returned.
func (g Entities) New(ctx context.Context, inv jig.Invocation, d Draft) (n entity.NewEntity, missing []string, err error) {
	t, err := g.Type(ctx, inv, "creates.type", d.Type, entity.ActionWrite)
	if err != nil {
		return n, nil, err
	}
	content := maps.Clone(d.Content)
	if content == nil {
		content = map[string]json.RawMessage{}
	}
	others := map[string][]string{}
	for name, ids := range d.Relations {
		whole, err := withLink(t.Fields, name, ids, d.RelationsAt+"."+name, content)
		if err != nil {
			return n, nil, err
		}
		if !whole {
			others[name] = ids
		}
	}
	raw, content, err := g.Complete(t, content, d.At)
	if err != nil {
		return n, nil, err
	}
	found := linksOf(t, content)
	if missing, err = g.unreadable(ctx, inv, found, others, d.At); len(missing) > 0 || err != nil {
		return n, missing, err
	}
	n.Entity = entity.Entity{Tenant: inv.Tenant, Type: t.Name, TypeVersion: t.Version, Title: d.Title, Content: raw}
	n.Relations = found.ends
	maps.Copy(n.Relations, others)
	return n, nil, nil
}

// withLink sets ids as the value of a relation field, which may be nested (dotted name), unless the field already has a value. It returns
// false if no field has that name.
func withLink(fields []entity.Field, name string, ids []string, at string, content map[string]json.RawMessage) (bool, error) {
	top, rest, dotted := strings.Cut(name, ".")
	i := slices.IndexFunc(fields, func(f entity.Field) bool { return f.Name == top })
	switch {
	case i < 0:
		return false, nil
	case dotted && fields[i].Type == entity.FieldObject:
		inner := map[string]json.RawMessage{}
		if raw, set := content[top]; set {
			if err := json.Unmarshal(raw, &inner); err != nil {
				return true, jig.Errorf(jig.CodeInvalidInput, "%q is an object, but fields contains something else: %w", top, err).WithField(at).
					WithHint("give an object, or leave it out of the fields")
			}
		}
		found, err := withLink(fields[i].Fields, rest, ids, at, inner)
		if err != nil || !found || len(inner) == 0 {
			return found, err
		}
		return true, encodeTo(content, top, inner)
	case dotted || fields[i].Type != entity.FieldRelation:
		return true, jig.Errorf(jig.CodeInvalidInput, "%q is a field of type %s, not a relation", top, jig.Known(fields[i].Type)).WithField(at).
			WithHint("set it among the fields, or give the relation another name")
	}
	if _, set := content[top]; set || len(ids) == 0 {
		return true, nil
	}
	if fields[i].Many {
		return true, encodeTo(content, top, ids)
	}
	if len(ids) > 1 {
		return true, jig.Errorf(jig.CodeInvalidInput, "%q points at one entity, and %d are given", name, len(ids)).WithField(at).WithHint("give one id")
	}
	return true, encodeTo(content, top, ids[0])
}

func encodeTo(content map[string]json.RawMessage, name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return jig.Errorf(jig.CodeInternal, "writing the relation %s: %w", name, err)
	}
	content[name] = raw
	return nil
}

// unreadable returns the ids of relation targets that the principal may not read. If there are none, it checks that each target has the
// type that its field requires.
func (g Entities) unreadable(
	ctx context.Context, inv jig.Invocation, found links, others map[string][]string, at string,
) (missing []string, err error) {
	var ids []string
	for _, ends := range []map[string][]string{found.ends, others} {
		for _, name := range slices.Sorted(maps.Keys(ends)) {
			ids = append(ids, ends[name]...)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	kinds, err := g.kinds(ctx, inv, ids)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if _, ok := kinds[id]; !ok && !slices.Contains(missing, id) {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		return missing, nil
	}
	for _, name := range slices.Sorted(maps.Keys(found.ends)) {
		for _, id := range found.ends[name] {
			if want := found.target[name]; want != "" && kinds[id] != want {
				return nil, jig.Errorf(jig.CodeInvalidInput, "%s points at entities of type %s, but %q has type %s", name, jig.Known(want), id, jig.Known(kinds[id])).
					WithField(at + "." + name).WithHint("give the id of a " + want)
			}
		}
	}
	return nil, nil
}

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
				return nil, jig.Errorf(jig.CodeInvalidInput, "%s points at entities of type %s, but %q has type %s", name, jig.Known(found.target[name]), id, jig.Known(kind)).
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
