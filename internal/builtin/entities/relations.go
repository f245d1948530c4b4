package entities

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
)

// maxRelations is the number of relations that a list shows.
const maxRelations = 500

type relationsIn struct {
	ID string `json:"id" jsonschema:"the entity's id" minLength:"1"`
}

// Relations is the output of entities.listRelations.
type Relations struct {
	ID string `json:"entity_id"`
	// Relations lists the entities that it points at first. Entities that the principal may not read are left out.
	Relations []entity.RelatedEntity `json:"relations"`
	// More is true if there are more relations than the list shows.
	More bool `json:"more,omitempty"`
}

// Summary implements tools.Summarizer.
func (r Relations) Summary() string { return fmt.Sprintf("%d relations", len(r.Relations)) }

func (o Options) listRelations(ctx context.Context, inv jig.Invocation, in relationsIn) (Relations, error) {
	e, _, err := o.Entity(ctx, inv, "/id", in.ID, entity.ActionRead)
	if err != nil {
		return Relations{}, err
	}
	types, err := o.ReadableTypes(ctx, inv)
	if err != nil {
		return Relations{}, err
	}
	found, err := o.Store.RelationsOf(ctx, inv.Tenant, e.ID, slices.Sorted(maps.Keys(types)), maxRelations+1)
	if err != nil {
		return Relations{}, err
	}
	out := Relations{ID: e.ID, Relations: found, More: len(found) > maxRelations}
	out.Relations = out.Relations[:min(len(found), maxRelations)]
	return out, nil
}
