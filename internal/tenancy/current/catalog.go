package current

import (
	"context"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/spec"
)

// Store reads documents for a catalog.
type Store interface {
	bundle.Documents
	Document(ctx context.Context, tenant, kind, name string) ([]byte, error)
	DocumentNames(ctx context.Context, tenant, kind string) ([]string, error)
}

// Catalog lists the tools and documents of a tenant, so that other documents can be checked against them. It is safe for concurrent use.
type Catalog struct {
	store   Store
	bundles *bundle.Names
	tools   func() []jig.Tool
}

// NewCatalog returns a catalog. tools lists the Go tools; [Catalog.KnownWith] calls it each time.
func NewCatalog(s Store, bundles *bundle.Names, tools func() []jig.Tool) *Catalog {
	return &Catalog{store: s, bundles: bundles, tools: tools}
}

// Skill returns a tenant's current skill.
func (c *Catalog) Skill(ctx context.Context, tenant, name string) (spec.Skill, error) {
	body, err := c.store.Document(ctx, tenant, string(spec.KindSkill), name)
	if err != nil {
		return spec.Skill{}, err
	}
	doc, problems := spec.LoadStored(string(spec.KindSkill), name, body)
	if err := problems.OrNil(); err != nil {
		return spec.Skill{}, err
	}
	return *doc.Skill(), nil
}

// Known lists the tools and documents of a tenant.
func (c *Catalog) Known(ctx context.Context, tenant string) (spec.Catalog, error) {
	return c.KnownWith(ctx, tenant, "")
}

// KnownWith is like [Catalog.Known], but includes the Go tools of one more bundle.
func (c *Catalog) KnownWith(ctx context.Context, tenant, with string) (spec.Catalog, error) {
	ctx = entity.WithTaint(ctx, &entity.Taint{}) // who only compares with these documents has not read them
	known := spec.Catalog{Whitelists: map[string][]string{}, Specs: []spec.Execution{}}
	installed, err := c.bundles.BundleNames(ctx, tenant)
	if err != nil {
		return known, err
	}
	known.Tools = bundle.Visible(c.tools(), tenant, append(slices.Clone(installed), with))
	if known.EntityTypes, err = c.types(ctx, tenant); err != nil {
		return known, err
	}
	if known.Agents, err = c.store.DocumentNames(ctx, tenant, string(spec.KindAgent)); err != nil {
		return known, err
	}
	for _, name := range known.Agents {
		body, err := c.store.Document(ctx, tenant, string(spec.KindAgent), name)
		if err != nil {
			return known, err
		}
		if agent, err := spec.ParseAgent(name, body); err == nil {
			known.Whitelists[name] = agent.Tools
		}
	}
	if known.Skills, err = c.store.DocumentNames(ctx, tenant, string(spec.KindSkill)); err != nil {
		return known, err
	}
	names, err := c.store.DocumentNames(ctx, tenant, bundle.KindSpec)
	if err != nil {
		return known, err
	}
	for _, name := range names {
		body, err := c.store.Document(ctx, tenant, bundle.KindSpec, name)
		if err != nil {
			return known, err
		}
		if x, err := spec.LoadExecution(name, body); err == nil {
			known.Specs, known.Tools = append(known.Specs, x), append(known.Tools, x.Tool)
		}
	}
	return known, nil
}

// types lists a tenant's entity types. It leaves out a type that can no longer be read (written in an older version of the language), so
// that a new version of it can be registered.
func (c *Catalog) types(ctx context.Context, tenant string) ([]entity.Type, error) {
	versions, err := c.store.CurrentDocuments(ctx, tenant, string(spec.KindEntityType))
	list := make([]entity.Type, 0, len(versions))
	for _, v := range versions {
		body, err := c.store.DocumentAt(ctx, tenant, v.Kind, v.Name, v.Version)
		if err != nil {
			return nil, err
		}
		if t, err := spec.LoadEntityType(v.Name, body); err == nil {
			list = append(list, t)
		}
	}
	return list, err
}
