// Package retype checks new versions of entity types against a tenant's entities: existing content must fit them. It must not know how
// documents and entities are stored, nor which tool supplies the types.
package retype

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/spec"
)

// ReasonFieldsChanged is the reason for a refusal: there are entities whose content may not fit the new version.
const ReasonFieldsChanged = "fields_changed"

// maxTries is the number of attempts at an operation. The second attempt is needed if the data that the first one checked changed before it
// stored its result.
const maxTries = 2

// Checker checks types against existing entities.
type Checker struct {
	// Counts returns the number of a tenant's entities by type.
	Counts func(ctx context.Context, tenant string) ([]entity.Count, error)
	// TypeOf returns the entity type against which a tenant's entities of that name were last checked; false if it is not known.
	TypeOf func(ctx context.Context, tenant, name string) (entity.Type, bool, error)
}

// Check refuses new versions that existing content may not fit, and the removal of types that still have entities. The error is a CONFLICT
// with the reason fields_changed that lists all of these changes; field is the input field at fault. On success, Check returns the facts on
// which the result is based, so that they can be verified again when the types are stored.
func (c Checker) Check(ctx context.Context, tenant, field string, latest []entity.Type, gone []string) ([]bundle.TypeBasis, error) {
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
	basis := make([]bundle.TypeBasis, 0, len(latest)+len(gone))
	var found []jig.Violation
	for _, t := range latest {
		b := bundle.TypeBasis{Type: t.Name}
		if counts[t.Name] > 0 {
			old, known, err := c.TypeOf(ctx, tenant, t.Name)
			if err != nil {
				return nil, err
			}
			if !known { // the version that the entities were checked against no longer exists
				continue
			}
			b.Version, b.Defaults = old.Version, added(old, t)
			found = append(found, breaking(old, t)...)
		}
		basis = append(basis, b)
	}
	for _, name := range gone {
		if n := counts[name]; n > 0 {
			found = append(found, violation("/"+name, "the type %s is missing, but %d entities have it: keep the type, or delete them first", jig.Known(name), jig.Known(n)))
		}
		basis = append(basis, bundle.TypeBasis{Type: name})
	}
	return basis, refusal(field, found)
}

// breaking returns the changes to a type that existing content may not fit.
func breaking(old, latest entity.Type) []jig.Violation {
	var found []jig.Violation
	for _, change := range spec.CompareTypes(old, latest) {
		if change.Breaks {
			found = append(found, violation("/"+latest.Name+"/"+change.Field, "%s.%s: %s: keep it as it was and add a new field, or make a new type",
				latest.Name, change.Field, change.Change))
		}
	}
	return found
}

func violation(at, format string, args ...any) jig.Violation {
	message := jig.Templatef(format, args...)
	return jig.Violation{Pointer: at, Message: jig.Text(message), Template: message}
}

// added returns the defaults of required fields that the new version adds.
func added(old, latest entity.Type) map[string]json.RawMessage {
	var defaults map[string]json.RawMessage
	for _, f := range latest.Fields {
		if !f.Required || len(f.Default) == 0 || slices.ContainsFunc(old.Fields, func(was entity.Field) bool { return was.Name == f.Name }) {
			continue
		}
		if defaults == nil {
			defaults = map[string]json.RawMessage{}
		}
		defaults[f.Name] = f.Default
	}
	return defaults
}

// refusal returns an error that lists all changes; nil if there are none.
func refusal(field string, found []jig.Violation) error {
	if len(found) == 0 {
		return nil
	}
	e := jig.Errorf(jig.CodeConflict, "existing entities do not fit the new version").WithReason(ReasonFieldsChanged).WithField(field).
		WithHint("keep the fields and add new ones, make a new type, or change and delete the entities first; types without entities may change freely")
	e.Violations = found
	for _, v := range found {
		e = e.Reworded("%s; %s", e.Words(), v.Words())
	}
	return e
}

// Again calls do, and calls it once more if it fails with a CONFLICT that has one of the given reasons: the data that do had checked
// changed before it stored its result.
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
