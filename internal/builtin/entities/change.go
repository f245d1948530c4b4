package entities

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
)

type createIn struct {
	Type      string                     `json:"type"                jsonschema:"the entity type's name" minLength:"1"`
	Title     string                     `json:"title,omitempty"     jsonschema:"what people call it"    maxLength:"500"`
	Content   map[string]json.RawMessage `json:"content"             jsonschema:"the fields and their values"`
	Workspace string                     `json:"workspace,omitempty" jsonschema:"a workspace to put it in" maxLength:"128"`
}

// Changed is the output of entities.create, entities.update and entities.delete.
type Changed struct {
	ID       string `json:"entity_id"`
	Type     string `json:"type"`
	Revision int64  `json:"revision,omitempty"`
	did      string
}

// Summary implements tools.Summarizer.
func (c Changed) Summary() string { return c.did + " " + c.Type + " " + c.ID }

func (o Options) create(ctx context.Context, inv jig.Invocation, in createIn) (Changed, error) {
	t, err := o.typeFor(ctx, inv, "/type", in.Type, entity.ActionWrite)
	if err != nil {
		return Changed{}, err
	}
	b, content, err := o.complete(t, in.Content, "/content")
	if err != nil {
		return Changed{}, err
	}
	relations, err := o.relations(ctx, inv, t, content, "/content")
	if err != nil {
		return Changed{}, err
	}
	n := entity.NewEntity{
		Entity: entity.Entity{Tenant: inv.Tenant, Type: t.Name, TypeVersion: t.Version, Title: in.Title, Content: b},
		Key:    inv.IdempotencyKey, Relations: relations,
	}
	if in.Workspace != "" {
		n.Workspaces = []string{in.Workspace}
	}
	e, _, err := o.Store.CreateEntity(ctx, n)
	return Changed{e.ID, e.Type, e.Revision, "created"}, err
}

// complete fills in the defaults of a new entity and checks its content. If the type has fields that tasks fill, these may be missing.
func (o Options) complete(
	t entity.Type, given map[string]json.RawMessage, at string,
) (raw json.RawMessage, content map[string]json.RawMessage, err error) {
	awaits := false
	content = map[string]json.RawMessage{}
	for _, f := range t.Fields {
		awaits = awaits || f.Task != ""
		if len(f.Default) > 0 {
			content[f.Name] = f.Default
		}
	}
	maps.Copy(content, given)
	for _, f := range t.Fields {
		if _, ok := content[f.Name]; awaits && f.Required && f.Task == "" && !ok {
			return nil, nil, jig.Errorf(jig.CodeInvalidInput, "the field %q is required", f.Name).WithField(at)
		}
	}
	raw, err = o.checked(t, content, awaits, at)
	return raw, content, err
}

// checked encodes fields as an entity's content and checks the content. at is the content's position in the input; it becomes a prefix of
// the pointers in errors.
func (o Options) checked(t entity.Type, fields map[string]json.RawMessage, partial bool, at string) (json.RawMessage, error) {
	b, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("write the content: %w", err)
	}
	if err := o.Check(t, b, partial); err != nil {
		e := *jig.AsError(err)
		e.Field = at + e.Field
		e.Violations = slices.Clone(e.Violations)
		for i := range e.Violations {
			e.Violations[i].Pointer = at + e.Violations[i].Pointer
		}
		return nil, &e
	}
	return b, nil
}

type updateIn struct {
	ID       string                     `json:"id"              jsonschema:"the entity's id" minLength:"1"`
	Revision int64                      `json:"revision"        jsonschema:"the revision that you read" minimum:"1"`
	Title    *string                    `json:"title,omitempty" maxLength:"500"`
	Set      map[string]json.RawMessage `json:"set,omitempty"   jsonschema:"fields and their new values; null removes a field"`
}

func (o Options) update(ctx context.Context, inv jig.Invocation, in updateIn) (Changed, error) {
	e, t, err := o.entity(ctx, inv, "/id", in.ID, entity.ActionWrite)
	if err != nil {
		return Changed{}, err
	}
	kept := map[string]json.RawMessage{}
	for name, v := range in.Set {
		if string(v) != "null" {
			kept[name] = v
			continue
		}
		f, err := fieldAt(t, "/set/"+name, name)
		if err != nil {
			return Changed{}, err
		}
		if f.Required {
			return Changed{}, jig.Errorf(jig.CodeInvalidInput, "the field %q is required and cannot be removed", name).WithField("/set/" + name)
		}
	}
	if _, err := o.checked(t, kept, true, "/set"); err != nil {
		return Changed{}, err
	}
	relations, err := o.relations(ctx, inv, t, in.Set, "/set")
	if err != nil {
		return Changed{}, err
	}
	e, err = o.Store.UpdateEntity(ctx, inv.Tenant, e.ID, in.Revision, entity.Patch{
		Fields: in.Set, Title: in.Title, TypeVersion: t.Version, Relations: relations, Key: inv.IdempotencyKey,
	})
	return Changed{e.ID, e.Type, e.Revision, "updated"}, err
}

// relations returns the targets of the relation fields among the given fields, by the dotted names of those fields. It checks that the
// principal may read the targets and that they have the right type.
func (o Options) relations(
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
	kinds, err := o.kinds(ctx, inv, ids)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(found.ends)) {
		field := at + "/" + strings.ReplaceAll(name, ".", "/")
		for _, id := range found.ends[name] {
			switch kind, ok := kinds[id]; {
			case !ok:
				return nil, notFound(field, id)
			case found.target[name] != "" && kind != found.target[name]:
				return nil, jig.Errorf(jig.CodeInvalidInput, "%s points at entities of type %s, but %q has type %s", name, found.target[name], id, kind).
					WithField(field).WithHint("give the id of a " + found.target[name])
			}
		}
	}
	return found.ends, nil
}

// kinds returns the types of the given entities, by id, leaving out those that the principal may not read.
func (o Options) kinds(ctx context.Context, inv jig.Invocation, ids []string) (map[string]string, error) {
	types, err := o.readable(ctx, inv)
	if err != nil {
		return nil, err
	}
	there, err := o.Store.Entities(ctx, inv.Tenant, ids)
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

// Related is both the input and the output of entities.createRelation.
type Related struct {
	From string `json:"from" jsonschema:"the id of the entity that points" minLength:"1"`
	Name string `json:"name" jsonschema:"what the relation is called, e.g. depends_on" pattern:"^[a-z][a-z0-9_]*$" maxLength:"64"`
	To   string `json:"to"   jsonschema:"the id of the entity that it points at" minLength:"1"`
}

// Summary implements tools.Summarizer.
func (r Related) Summary() string { return r.From + " " + r.Name + " " + r.To }

func (o Options) createRelation(ctx context.Context, inv jig.Invocation, in Related) (Related, error) {
	_, to, err := o.entity(ctx, inv, "/to", in.To, entity.ActionRead)
	if err != nil {
		return Related{}, err
	}
	_, t, err := o.entity(ctx, inv, "/from", in.From, entity.ActionWrite)
	if err != nil {
		return Related{}, err
	}
	if slices.ContainsFunc(t.Fields, func(f entity.Field) bool { return f.Name == in.Name }) {
		return Related{}, jig.Errorf(jig.CodeInvalidInput, "%q is a field of the type %s", in.Name, t.Name).WithField("/name").
			WithHint("set the field with " + UpdateTool + ", or use another name for a relation to a " + to.Name)
	}
	return in, o.Store.Relate(ctx, inv.Tenant, entity.Relation{From: in.From, Name: in.Name, To: in.To})
}

type deleteIn struct {
	ID       string `json:"id"                 jsonschema:"the entity's id" minLength:"1"`
	Revision int64  `json:"revision,omitempty" jsonschema:"the revision that you read; without it, the entity is deleted at any revision" minimum:"1"`
}

func (o Options) delete(ctx context.Context, inv jig.Invocation, in deleteIn) (Changed, error) {
	types, err := o.readable(ctx, inv)
	if err != nil {
		return Changed{}, err
	}
	// This also works for a deleted entity, because the call may be another attempt at a deletion that succeeded.
	kind, err := o.Store.EntityTypeOf(ctx, inv.Tenant, in.ID)
	if _, ok := types[kind]; !ok && (err == nil || jig.CodeOf(err) == jig.CodeNotFound) {
		return Changed{}, notFound("/id", in.ID)
	}
	if err != nil {
		return Changed{}, err
	}
	if err := entity.Permit(inv.Principal, kind, entity.ActionDelete); err != nil {
		return Changed{}, err
	}
	return Changed{ID: in.ID, Type: kind, did: "deleted"}, o.Store.DeleteEntity(ctx, inv.Tenant, in.ID, in.Revision)
}
