package entity

import (
	"context"
	"sync/atomic"

	"github.com/jig-run/jig"
)

// Action is something that principals can be permitted to do with the entities of a type.
type Action string

// The actions. To a principal who may not read the entities of a type, the type and its entities do not exist, whatever else is permitted.
const (
	ActionRead   Action = "read"
	ActionWrite  Action = "write"
	ActionDelete Action = "delete"
)

// Actions lists the actions.
func Actions() []Action { return []Action{ActionRead, ActionWrite, ActionDelete} }

// May reports whether a principal has the permission for an action: entities.<type>.<action> or entities.*.<action>.
func May(p jig.Principal, typeName string, action Action) bool {
	return p.Holds(permission(typeName, action)) || p.Holds(permission("*", action))
}

func permission(typeName string, action Action) string {
	return "entities." + typeName + "." + string(action)
}

// Permit returns NOT_PERMITTED if a principal does not have the permission for an action. It does not check whether the type exists for the
// principal; see [Readable].
func Permit(p jig.Principal, typeName string, action Action) error {
	if May(p, typeName, action) {
		return nil
	}
	return jig.Errorf(jig.CodeNotPermitted, "%s may not %s entities of type %q", jig.Known(p.ID), jig.Known(action), typeName).
		WithHint("this requires the permission " + permission(typeName, action))
}

// Readable returns those of a tenant's types that a principal may read, by name. Other types do not exist for the principal.
func Readable(p jig.Principal, types []Type) map[string]Type {
	readable := map[string]Type{}
	for _, t := range types {
		if May(p, t.Name, ActionRead) {
			readable[t.Name] = t
		}
	}
	return readable
}

// Visible returns those of a tenant's entities that have a readable type. Other entities do not exist for the principal.
func Visible(readable map[string]Type, entities []Entity) []Entity {
	var visible []Entity
	for _, e := range entities {
		if _, ok := readable[e.Type]; ok {
			visible = append(visible, e)
		}
	}
	return visible
}

// Visible returns the sources that a principal may use for the values of the entity with the given id: other entities that have a readable
// type, and the texts of all of them, including those of the entity itself.
func (s Sources) Visible(readable map[string]Type, id string) Sources {
	var visible Sources
	seen := map[string]bool{id: true}
	for _, e := range s.Entities {
		_, seen[e.ID] = readable[e.Type]
		if e.ID != id && seen[e.ID] {
			visible.Entities = append(visible.Entities, e)
		}
	}
	for _, t := range s.Texts {
		if seen[t.EntityID] {
			visible.Texts = append(visible.Texts, t)
		}
	}
	return visible
}

// Taint accompanies the entities that a call reads and writes: what is written by a session that has read untrusted data is not trusted, and a
// call that reads it has read untrusted data. It is passed in the context, because every way to read an entity must take part.
type Taint struct {
	// Session reports that the session has read untrusted data.
	Session bool
	read    atomic.Bool
}

type taintKey struct{}

// WithTaint returns a context in which entities are read and written under t.
func WithTaint(ctx context.Context, t *Taint) context.Context {
	return context.WithValue(ctx, taintKey{}, t)
}

// Read reports whether anything was read that is not trusted.
func (t *Taint) Read() bool { return t.read.Load() }

// Tainted reports whether what is written in this context is not trusted.
func Tainted(ctx context.Context) bool {
	t, ok := ctx.Value(taintKey{}).(*Taint)
	return ok && t.Session
}

// Traced reports whether somebody wants to know what is read in this context.
func Traced(ctx context.Context) bool {
	_, ok := ctx.Value(taintKey{}).(*Taint)
	return ok
}

// MarkRead records in the context that something was read that is not trusted.
func MarkRead(ctx context.Context) {
	if t, ok := ctx.Value(taintKey{}).(*Taint); ok {
		t.read.Store(true)
	}
}
