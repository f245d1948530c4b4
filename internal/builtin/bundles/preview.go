package bundles

import (
	"context"
	"fmt"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/changes"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/spec"
)

// previewInstall shows what changes in each document, after the same checks as an installation.
func (o Options) previewInstall(ctx context.Context, inv jig.Invocation, in Install) (jig.Preview, error) {
	b, problems := read(in)
	stored := changes.Stored(b.Documents)
	shelf, err := o.Store.Shelf(ctx, inv.Tenant, b.Manifest.Name, changes.Keys(stored))
	if err != nil {
		return jig.Preview{}, err
	}
	var before bundle.Bundle
	if shelf.Before != nil {
		before = *shelf.Before
	}
	if _, err := o.check(ctx, inv.Tenant, b, problems, before); err != nil {
		return jig.Preview{}, err
	}
	if before.Hash != b.Hash || in.Replace {
		if _, err := o.checkUpgrade(ctx, inv.Tenant, b, before, in.Replace); err != nil {
			return jig.Preview{}, err
		}
	}
	plan, _, err := shelf.Install(bundle.Install{Manifest: b.Manifest, Hash: b.Hash, Over: before.Hash, Replace: in.Replace, Documents: stored})
	if err != nil {
		return jig.Preview{}, err
	}
	what := "Installs " + b.Manifest.Name + " " + b.Manifest.Version
	if before.Version != "" {
		what = "Replaces " + b.Manifest.Name + " " + before.Version + " with " + b.Manifest.Version
	}
	return o.planned(ctx, inv.Tenant, shelf, plan, b.Documents).Preview(what)
}

// previewRemove shows which documents are taken out of use, what guards less afterwards, and which other documents use them or the bundle's
// tools.
func (o Options) previewRemove(ctx context.Context, inv jig.Invocation, in Named) (jig.Preview, error) {
	shelf, err := o.Store.Shelf(ctx, inv.Tenant, in.Name, nil)
	if err != nil {
		return jig.Preview{}, err
	}
	plan, err := shelf.Remove("")
	if err != nil {
		return jig.Preview{}, err
	}
	known, err := o.Known(ctx, inv.Tenant, in.Name)
	if err != nil {
		return jig.Preview{}, err
	}
	planned := o.planned(ctx, inv.Tenant, shelf, plan, nil)
	if planned.Users, err = changes.ReadUsers(ctx, o.Store, inv.Tenant, known); err != nil {
		return jig.Preview{}, err
	}
	p, err := planned.Preview("Removes " + in.Name + " " + shelf.Before.Version)
	if err != nil {
		return p, err
	}
	counts, err := o.counts(ctx, inv.Tenant)
	if n := entities(plan.Removed, counts); n > 0 {
		p.Title += fmt.Sprintf("; entities that stay, but are out of use: %d", n)
	}
	return p, err
}

// planned returns a planned change with the documents and the function that its description needs.
func (o Options) planned(ctx context.Context, tenant string, shelf *bundle.Shelf, plan bundle.Plan, docs []spec.Document) changes.Planned {
	return changes.Planned{
		Shelf: shelf, Plan: plan, Documents: docs,
		Body: func(d bundle.DocumentVersion) ([]byte, error) {
			return o.Store.DocumentAt(ctx, tenant, d.Kind, d.Name, d.Version)
		},
	}
}
