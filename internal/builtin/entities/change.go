package entities

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/guarded"
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
	t, err := o.Type(ctx, inv, "/type", in.Type, entity.ActionWrite)
	if err != nil {
		return Changed{}, err
	}
	if now := ofType(t); inv.Precondition != "" && inv.Precondition != now {
		return Changed{}, unmet(inv.Precondition, now)
	}
	b, content, err := o.Complete(t, in.Content, "/content")
	if err != nil {
		return Changed{}, err
	}
	relations, err := o.Relations(ctx, inv, t, content, "/content")
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

type updateIn struct {
	ID       string                     `json:"id"              jsonschema:"the entity's id" minLength:"1"`
	Revision int64                      `json:"revision"        jsonschema:"the revision that you read" minimum:"1"`
	Title    *string                    `json:"title,omitempty" maxLength:"500"`
	Set      map[string]json.RawMessage `json:"set,omitempty"   jsonschema:"fields and their new values; null removes a field"`
}

func (o Options) update(ctx context.Context, inv jig.Invocation, in updateIn) (Changed, error) {
	if now := atRevision(in.Revision); inv.Precondition != "" && inv.Precondition != now {
		return Changed{}, unmet(inv.Precondition, now)
	}
	e, t, err := o.Entity(ctx, inv, "/id", in.ID, entity.ActionWrite)
	if err != nil {
		return Changed{}, err
	}
	patch, err := o.patch(ctx, inv, t, in)
	if err != nil {
		return Changed{}, err
	}
	e, err = o.Store.UpdateEntity(ctx, inv.Tenant, e.ID, in.Revision, patch)
	return Changed{e.ID, e.Type, e.Revision, "updated"}, err
}

// patch checks the changes of an entity of type t.
func (o Options) patch(ctx context.Context, inv jig.Invocation, t entity.Type, in updateIn) (entity.Patch, error) {
	kept := map[string]json.RawMessage{}
	for name, v := range in.Set {
		if string(v) != "null" {
			kept[name] = v
			continue
		}
		f, err := guarded.FieldAt(t, "/set/"+name, name)
		if err != nil {
			return entity.Patch{}, err
		}
		if f.Required {
			return entity.Patch{}, jig.Errorf(jig.CodeInvalidInput, "the field %q is required and cannot be removed", name).WithField("/set/" + name)
		}
	}
	if _, err := o.CheckFields(t, kept, true, "/set"); err != nil {
		return entity.Patch{}, err
	}
	relations, err := o.Relations(ctx, inv, t, in.Set, "/set")
	if err != nil {
		return entity.Patch{}, err
	}
	return entity.Patch{Fields: in.Set, Title: in.Title, TypeVersion: t.Version, Relations: relations, Key: inv.IdempotencyKey}, nil
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
	_, to, err := o.Entity(ctx, inv, "/to", in.To, entity.ActionRead)
	if err != nil {
		return Related{}, err
	}
	_, t, err := o.Entity(ctx, inv, "/from", in.From, entity.ActionWrite)
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
	types, err := o.ReadableTypes(ctx, inv)
	if err != nil {
		return Changed{}, err
	}
	// This also works for a deleted entity, because the call may be another attempt at a deletion that succeeded.
	kind, err := o.Store.EntityTypeOf(ctx, inv.Tenant, in.ID)
	if _, ok := types[kind]; !ok && (err == nil || jig.CodeOf(err) == jig.CodeNotFound) {
		return Changed{}, guarded.NotFound("/id", in.ID)
	}
	if err != nil {
		return Changed{}, err
	}
	if err := entity.Permit(inv.Principal, kind, entity.ActionDelete); err != nil {
		return Changed{}, err
	}
	revision, err := deletes(in, inv.Precondition)
	if err != nil {
		return Changed{}, err
	}
	return Changed{ID: in.ID, Type: kind, did: "deleted"}, o.Store.DeleteEntity(ctx, inv.Tenant, in.ID, revision)
}

// deletes returns the revision at which the entity may be deleted; 0 means any.
func deletes(in deleteIn, precondition string) (int64, error) {
	if precondition == "" {
		return in.Revision, nil
	}
	approved, err := strconv.ParseInt(strings.TrimPrefix(precondition, "revision "), 10, 64)
	if err != nil || in.Revision != 0 && in.Revision != approved {
		return 0, unmet(precondition, atRevision(in.Revision))
	}
	return approved, nil
}
