package worker

import (
	"context"
	"slices"

	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// storedKind returns the kind under which a document is stored. All execution specs share one kind, because they are called in the same way
// and share one space of names.
func storedKind(kind spec.Kind) string {
	switch kind {
	case spec.KindComposition, spec.KindPrompt, spec.KindTask, spec.KindThinTool:
		return activities.DocumentSpec
	case spec.KindAgent, spec.KindSkill, spec.KindPolicy, spec.KindTenant, spec.KindEntityType, spec.KindBundle:
	}
	return string(kind)
}

// documents reads specs and skills from the store.
type documents struct {
	db      *store.DB
	bundles *bundleNames
}

// Skill returns a tenant's current skill.
func (d documents) Skill(ctx context.Context, tenant, name string) (spec.Skill, error) {
	body, err := d.db.Document(ctx, tenant, string(spec.KindSkill), name)
	if err != nil {
		return spec.Skill{}, err
	}
	doc, problems := spec.Load(name+".json", body)
	if err := problems.OrNil(); err != nil {
		return spec.Skill{}, err
	}
	return *doc.Skill, nil
}

// known returns a function that lists what exists for a tenant, so that documents can be checked against it. registry points to the
// worker's registry, which may be set later but before the first call.
func (d documents) known(registry **tools.Registry) func(ctx context.Context, tenant string) (spec.Catalogue, error) {
	with := d.knownWith(registry)
	return func(ctx context.Context, tenant string) (spec.Catalogue, error) { return with(ctx, tenant, "") }
}

// knownWith is like known, but includes the tools of one more bundle.
func (d documents) knownWith(registry **tools.Registry) func(ctx context.Context, tenant, bundle string) (spec.Catalogue, error) {
	return func(ctx context.Context, tenant, bundle string) (spec.Catalogue, error) {
		c := spec.Catalogue{Whitelists: map[string][]string{}, Specs: []spec.Execution{}}
		installed, err := d.bundles.BundleNames(ctx, tenant)
		if err != nil {
			return c, err
		}
		c.Tools = seen((*registry).Tools(), tenant, append(slices.Clone(installed), bundle))
		if c.EntityTypes, err = d.types(ctx, tenant); err != nil {
			return c, err
		}
		if c.Agents, err = d.db.DocumentNames(ctx, tenant, string(spec.KindAgent)); err != nil {
			return c, err
		}
		for _, name := range c.Agents {
			body, err := d.db.Document(ctx, tenant, string(spec.KindAgent), name)
			if err != nil {
				return c, err
			}
			if agent, err := spec.ParseAgent(name, body); err == nil {
				c.Whitelists[name] = agent.Tools
			}
		}
		if c.Skills, err = d.db.DocumentNames(ctx, tenant, string(spec.KindSkill)); err != nil {
			return c, err
		}
		names, err := d.db.DocumentNames(ctx, tenant, activities.DocumentSpec)
		if err != nil {
			return c, err
		}
		for _, name := range names {
			body, err := d.db.Document(ctx, tenant, activities.DocumentSpec, name)
			if err != nil {
				return c, err
			}
			if x, err := spec.LoadExecution(name, body); err == nil {
				c.Specs, c.Tools = append(c.Specs, x), append(c.Tools, x.Tool)
			}
		}
		return c, nil
	}
}

// types lists a tenant's entity types. It leaves out a type that can no longer be read (written in an older version of the language), so
// that a new version of it can be registered.
func (d documents) types(ctx context.Context, tenant string) ([]entity.Type, error) {
	versions, err := d.db.CurrentDocuments(ctx, tenant, activities.DocumentEntityType)
	list := make([]entity.Type, 0, len(versions))
	for _, v := range versions {
		body, err := d.db.DocumentAt(ctx, tenant, v.Kind, v.Name, v.Version)
		if err != nil {
			return nil, err
		}
		if t, err := spec.LoadEntityType(v.Name, body); err == nil {
			list = append(list, t)
		}
	}
	return list, err
}
