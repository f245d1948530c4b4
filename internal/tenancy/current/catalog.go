package current

import (
	"context"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/loaded"
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
	loaded  *loaded.Documents
	tools   func() []jig.Tool
}

// NewCatalog returns a catalog, which reads documents with loaded; it may be nil. tools lists the Go tools; [Catalog.KnownWith] calls it each time.
func NewCatalog(s Store, bundles *bundle.Names, loaded *loaded.Documents, tools func() []jig.Tool) *Catalog {
	return &Catalog{store: s, bundles: bundles, loaded: loaded, tools: tools}
}

// Skill returns a tenant's current skill.
func (c *Catalog) Skill(ctx context.Context, tenant, name string) (spec.Skill, error) {
	body, err := c.store.Document(ctx, tenant, string(spec.KindSkill), name)
	if err != nil {
		return spec.Skill{}, err
	}
	doc, problems := c.loaded.Stored(string(spec.KindSkill), name, body)
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
	types, err := c.documents(ctx, tenant, spec.KindEntityType.Stored())
	if err != nil {
		return known, err
	}
	known.EntityTypes = make([]entity.Type, len(types))
	for i, doc := range types {
		known.EntityTypes[i] = *doc.EntityType()
	}
	if known.Agents, err = c.store.DocumentNames(ctx, tenant, spec.KindAgent.Stored()); err != nil {
		return known, err
	}
	agents, err := c.documents(ctx, tenant, spec.KindAgent.Stored())
	if err != nil {
		return known, err
	}
	for _, doc := range agents {
		known.Whitelists[doc.Agent().Name] = doc.Agent().Tools
	}
	if known.Skills, err = c.store.DocumentNames(ctx, tenant, spec.KindSkill.Stored()); err != nil {
		return known, err
	}
	specs, err := c.documents(ctx, tenant, bundle.KindSpec)
	for _, doc := range specs {
		known.Specs, known.Tools = append(known.Specs, *doc.Execution()), append(known.Tools, doc.Execution().Tool)
	}
	return known, err
}

// documents reads a tenant's current documents of a kind. It leaves out those that can no longer be read (written in an older version of the
// language), so that new versions of them can be registered.
func (c *Catalog) documents(ctx context.Context, tenant, kind string) ([]spec.Document, error) {
	versions, err := c.store.CurrentDocuments(ctx, tenant, kind)
	list := make([]spec.Document, 0, len(versions))
	for _, v := range versions {
		body, err := c.store.DocumentAt(ctx, tenant, v.Kind, v.Name, v.Version)
		if err != nil {
			return nil, err
		}
		if doc, problems := c.loaded.Stored(v.Kind, v.Name, body); len(problems.Errors()) == 0 {
			list = append(list, doc)
		}
	}
	return list, err
}
