package wire

import (
	"context"
	"log/slog"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/bundles"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/store"
	"github.com/jig-run/jig/tools"
)

// storedKind is the kind under which a document is kept: execution specs share one, because they are called alike.
func storedKind(kind spec.Kind) string {
	switch kind {
	case spec.KindComposition, spec.KindPrompt, spec.KindTask:
		return activities.DocumentSpec
	case spec.KindAgent, spec.KindSkill, spec.KindPolicy, spec.KindTenant, spec.KindEntityType:
	}
	return string(kind)
}

// documents reads the specs and skills that are kept in the store.
type documents struct{ db *store.DB }

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

// known is what a tenant has, for documents to be checked against. The registry is that of the worker, filled by then.
func (d documents) known(registry **tools.Registry) func(ctx context.Context, tenant string) (spec.Catalogue, error) {
	return func(ctx context.Context, tenant string) (spec.Catalogue, error) {
		c := spec.Catalogue{Tools: (*registry).Tools(), Whitelists: map[string][]string{}, Specs: []spec.Execution{}}
		var err error
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

// installBundles makes the documents of the shipped bundles current for the default tenant, each version once: what somebody
// registered under the same name since then stays. Another worker may do so at the same time: both write the same.
func installBundles(ctx context.Context, db *store.DB, logger *slog.Logger) error {
	docs, err := bundles.Documents()
	if err != nil {
		return err
	}
	for _, doc := range docs {
		kind := storedKind(doc.Kind)
		_, err := db.DocumentAt(ctx, jig.DefaultTenant, kind, doc.Name, doc.Version)
		if err == nil {
			continue
		}
		if jig.CodeOf(err) != jig.CodeNotFound {
			return err
		}
		if err := db.PutDocument(ctx, jig.DefaultTenant, kind, doc.Name, doc.Version, doc.Body); err != nil {
			return err
		}
		logger.InfoContext(ctx, "document installed", slog.String("kind", string(doc.Kind)), slog.String("name", doc.Name), slog.String("version", doc.Version))
	}
	return nil
}
