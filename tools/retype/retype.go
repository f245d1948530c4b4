// Package retype holds new versions of entity types against the entities that a tenant has: content that is there must fit them. It
// must not know how documents and entities are stored, nor which tool brings the types.
package retype

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

// ReasonFieldsChanged is the reason of a refusal: entities are there whose content the new version may not take.
const ReasonFieldsChanged = "fields_changed"

// maxTries is how often types are looked at: once more when what they were held against changed before they were stored.
const maxTries = 2

// Checker holds types against entities.
type Checker struct {
	// Counts gives a tenant's entities by type.
	Counts func(ctx context.Context, tenant string) ([]jig.EntityCount, error)
	// TypeOf gives the entity type that a tenant's entities of a name were last checked against; false when nobody knows of one.
	TypeOf func(ctx context.Context, tenant, name string) (jig.EntityType, bool, error)
}

// Check refuses types whose new version the content of entities may not survive, and names that go while there are entities of them:
// CONFLICT with the reason fields_changed and all of these changes, at a field of the input. Otherwise it gives what its answer
// rests on, which whoever stores the types looks at once more.
func (c Checker) Check(ctx context.Context, tenant, field string, latest []jig.EntityType, gone []string) ([]jig.TypeBasis, error) {
	if len(latest)+len(gone) == 0 {
		return nil, nil
	}
	list, err := c.Counts(ctx, tenant)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int64, len(list))
	for _, n := range list {
		counts[n.Type] = n.Count
	}
	basis := make([]jig.TypeBasis, 0, len(latest)+len(gone))
	var found []jig.Violation
	for _, t := range latest {
		b := jig.TypeBasis{Type: t.Name}
		if counts[t.Name] > 0 {
			old, known, err := c.TypeOf(ctx, tenant, t.Name)
			if err != nil {
				return nil, err
			}
			if !known { // whatever the entities were checked against, nobody has it any more
				continue
			}
			b.Version, b.Defaults = old.Version, added(old, t)
			found = append(found, breaking(old, t)...)
		}
		basis = append(basis, b)
	}
	for _, name := range gone {
		if n := counts[name]; n > 0 {
			found = append(found, jig.Violation{
				Pointer: "/" + name,
				Message: fmt.Sprintf("the type %s is gone, and there are %d entities of it: keep the type, or delete them first", name, n),
			})
		}
		basis = append(basis, jig.TypeBasis{Type: name})
	}
	return basis, refusal(field, found)
}

// breaking are the changes of a type that the content of its entities may not survive.
func breaking(old, latest jig.EntityType) []jig.Violation {
	var found []jig.Violation
	for _, change := range spec.CompareTypes(old, latest) {
		if change.Breaks {
			found = append(found, jig.Violation{
				Pointer: "/" + latest.Name + "/" + change.Field,
				Message: fmt.Sprintf("%s.%s: %s: keep it as it was and add a new field, or make a new type", latest.Name, change.Field, change.Change),
			})
		}
	}
	return found
}

// added are the defaults of required fields that a type has from now on.
func added(old, latest jig.EntityType) map[string]json.RawMessage {
	var defaults map[string]json.RawMessage
	for _, f := range latest.Fields {
		if !f.Required || len(f.Default) == 0 || slices.ContainsFunc(old.Fields, func(was jig.Field) bool { return was.Name == f.Name }) {
			continue
		}
		if defaults == nil {
			defaults = map[string]json.RawMessage{}
		}
		defaults[f.Name] = f.Default
	}
	return defaults
}

// refusal lists all changes of fields; nil when there are none.
func refusal(field string, found []jig.Violation) error {
	if len(found) == 0 {
		return nil
	}
	e := jig.Errorf(jig.CodeConflict, "the new version does not fit the entities that are there").WithReason(ReasonFieldsChanged).WithField(field).
		WithHint("keep the fields and add new ones, make a new type, or change and delete the entities first; types without entities may change freely")
	e.Violations = found
	for _, v := range found {
		e.Message += "; " + v.Message
	}
	return e
}

// Again does what checks and stores, once more when what was checked changed in between: a CONFLICT with one of some reasons.
func Again[T any](do func() (T, error), reasons ...string) (T, error) {
	for try := 1; ; try++ {
		out, err := do()
		if try == maxTries || !changed(err, reasons) {
			return out, err
		}
	}
}

func changed(err error, reasons []string) bool {
	return jig.CodeOf(err) == jig.CodeConflict && slices.Contains(reasons, jig.AsError(err).Reason)
}
