package bundles

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"golang.org/x/mod/semver"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/changes"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/retype"
	"github.com/jig-run/jig/spec"
)

// ReasonDowngrade is the reason for a refused installation when a higher version is installed. The store and the check of entity types have
// further reasons.
const ReasonDowngrade = "bundle_downgrade"

// Install installs a bundle for the tenant of a call, after checking it against the catalog that the tenant will have afterwards. found are
// the problems found while reading the bundle; they are reported in one INVALID_INPUT together with the problems that the check finds.
// replace also overwrites documents that the tenant has changed, and allows a lower version.
func (o Options) Install(ctx context.Context, inv jig.Invocation, b spec.Bundle, found spec.Problems, replace bool) (Installed, error) {
	return retype.Again(func() (Installed, error) { return o.installOnce(ctx, inv, b, found, replace) }, bundle.ReasonChanged, bundle.ReasonTypeChanged)
}

func (o Options) installOnce(ctx context.Context, inv jig.Invocation, b spec.Bundle, found spec.Problems, replace bool) (Installed, error) {
	before, err := o.installed(ctx, inv.Tenant, b.Manifest.Name)
	if err != nil {
		return Installed{}, err
	}
	warnings, err := o.check(ctx, inv.Tenant, b, found, before)
	if err != nil {
		return Installed{}, err
	}
	request := bundle.Install{
		Manifest: b.Manifest, Hash: b.Hash, Over: before.Hash, Shown: inv.Precondition, Replace: replace, Documents: changes.Stored(b.Documents),
	}
	if before.Hash != b.Hash || replace {
		if request.Types, err = o.checkUpgrade(ctx, inv.Tenant, b, before, replace); err != nil {
			return Installed{}, err
		}
	}
	if before.Hash != b.Hash && before.Version == b.Manifest.Version {
		warnings = append(warnings, fmt.Sprintf("version %s was installed already with other documents: raise the version when documents change", before.Version))
	}
	done, err := o.Store.InstallBundle(ctx, inv, request)
	if err != nil {
		return Installed{}, err
	}
	return Installed{
		Name: done.Bundle.Name, Version: done.Bundle.Version, Hash: done.Bundle.Hash, Changed: done.Changed, Before: done.Before,
		Documents: documentsOf(done.Bundle.Documents), Removed: documentsOf(done.Removed), Warnings: warnings,
	}, nil
}

// installed returns the installed version of a bundle; the zero value if it is not installed.
func (o Options) installed(ctx context.Context, tenant, name string) (bundle.Bundle, error) {
	all, err := o.Store.Bundles(ctx, tenant)
	if err != nil {
		return bundle.Bundle{}, err
	}
	if i := slices.IndexFunc(all, func(b bundle.Bundle) bool { return b.Name == name }); i >= 0 {
		return all[i], nil
	}
	return bundle.Bundle{}, nil
}

// check checks the documents against each other and against everything else that the tenant will have.
func (o Options) check(ctx context.Context, tenant string, b spec.Bundle, problems spec.Problems, before bundle.Bundle) (warnings []string, err error) {
	if len(problems.Errors()) == 0 {
		known, err := o.Known(ctx, tenant, b.Manifest.Name)
		if err != nil {
			return nil, err
		}
		known = without(known, before.Documents)
		problems = slices.Concat(problems, spec.Check(b.Documents, known), spec.Advise(b.Documents, known))
		tools := toolsWith(known.Tools, b.Documents)
		for _, doc := range b.Documents {
			if err := o.Check(ctx, tenant, doc, tools); err != nil {
				problems = append(problems, problemOf(doc, err))
			}
		}
	}
	if err := problems.OrNil(); err != nil {
		return nil, err
	}
	for _, p := range problems {
		warnings = append(warnings, p.String())
	}
	return warnings, nil
}

// toolsWith returns the tools together with those that the documents define, which replace tools of the same name.
func toolsWith(tools []jig.Tool, docs []spec.Document) []jig.Tool {
	all := slices.Clone(tools)
	for _, doc := range docs {
		if doc.Execution() != nil {
			all = append(slices.DeleteFunc(all, func(t jig.Tool) bool { return t.Name == doc.Name }), doc.Execution().Tool)
		}
	}
	return all
}

func problemOf(doc spec.Document, err error) spec.Problem {
	e := jig.AsError(err)
	return spec.Problem{Document: doc.Path, Path: e.Field, Code: spec.ProblemBadValue, Severity: spec.SeverityError, Message: e.Message, Words: e.Template, Hint: e.Hint, HintWords: e.HintTemplate}
}

// without returns the catalog without the given documents.
func without(c spec.Catalog, gone []bundle.DocumentVersion) spec.Catalog {
	return c.Without(func(kind, name string) bool {
		return slices.ContainsFunc(gone, func(d bundle.DocumentVersion) bool { return d.Kind == kind && d.Name == name })
	})
}

// checkUpgrade refuses a downgrade, and types that existing entities may not fit. It returns the facts on which the result is based.
func (o Options) checkUpgrade(ctx context.Context, tenant string, b spec.Bundle, before bundle.Bundle, replace bool) ([]bundle.TypeBasis, error) {
	if before.Version != "" && !replace && semver.Compare("v"+b.Manifest.Version, "v"+before.Version) < 0 {
		return nil, jig.Errorf(jig.CodeConflict, "%s %s is installed, which is higher than %s", before.Name, before.Version, b.Manifest.Version).
			WithField("version").WithReason(ReasonDowngrade).WithHint("raise the version in bundle.yaml, or go back with replace: true (jig bundle install --replace)")
	}
	var types []entity.Type
	kept := map[string]bool{}
	for _, doc := range b.Documents {
		if doc.EntityType() != nil {
			types, kept[doc.Name] = append(types, *doc.EntityType()), true
		}
	}
	gone := slices.DeleteFunc(bundle.NamesOf(before.Documents, spec.KindEntityType.Stored()), func(name string) bool { return kept[name] })
	return retype.Checker{Counts: o.Store.EntityCounts, TypeOf: o.TypeOf}.Check(ctx, tenant, "files", types, gone)
}

// Documents reads the record of all bundles that were ever installed.
type Documents interface {
	// DocumentAt returns a version of a document that a tenant has or had; NOT_FOUND if the tenant never had it.
	DocumentAt(ctx context.Context, tenant, kind, name, version string) ([]byte, error)
}

// InstallShipped installs a bundle that ships with the program, once per hash: a bundle that somebody removed stays removed, and a document
// that somebody registered under the name of a shipped one is kept. Several processes may do so at the same time.
func (o Options) InstallShipped(ctx context.Context, documents Documents, by jig.Invocation, b spec.Bundle) error {
	name := slog.String("bundle", b.Manifest.Name)
	_, err := documents.DocumentAt(ctx, by.Tenant, spec.KindBundle.Stored(), b.Manifest.Name, b.Hash)
	if err == nil || jig.CodeOf(err) != jig.CodeNotFound {
		return err
	}
	done, err := o.Install(ctx, by, b, nil, false)
	switch jig.CodeOf(err) { //nolint:exhaustive // any other error keeps the worker from starting
	case jig.CodeConflict, jig.CodeInvalidInput:
		by.Logger.WarnContext(ctx, "a shipped bundle was not installed, because it conflicts with what the tenant has", name,
			slog.String("tenant", by.Tenant), slog.String("why", err.Error()))
		return nil
	}
	if err != nil {
		return err
	}
	if done.Changed {
		by.Logger.InfoContext(ctx, "bundle installed", name, slog.String("version", done.Version), slog.Int("documents", len(done.Documents)))
	}
	return nil
}

// previewInstall shows what changes in each document, after the same checks as an installation.
func (o Options) previewInstall(ctx context.Context, inv jig.Invocation, in Install) (jig.Preview, error) {
	b, problems := o.read(in)
	stored := changes.Stored(b.Documents)
	snapshot, err := o.Store.DocumentSnapshot(ctx, inv.Tenant, b.Manifest.Name, changes.Keys(stored))
	if err != nil {
		return jig.Preview{}, err
	}
	var before bundle.Bundle
	if snapshot.Before != nil {
		before = *snapshot.Before
	}
	if _, err := o.check(ctx, inv.Tenant, b, problems, before); err != nil {
		return jig.Preview{}, err
	}
	if before.Hash != b.Hash || in.Replace {
		if _, err := o.checkUpgrade(ctx, inv.Tenant, b, before, in.Replace); err != nil {
			return jig.Preview{}, err
		}
	}
	plan, _, err := snapshot.Install(bundle.Install{Manifest: b.Manifest, Hash: b.Hash, Over: before.Hash, Replace: in.Replace, Documents: stored})
	if err != nil {
		return jig.Preview{}, err
	}
	what := "Installs " + b.Manifest.Name + " " + b.Manifest.Version
	if before.Version != "" {
		what = "Replaces " + b.Manifest.Name + " " + before.Version + " with " + b.Manifest.Version
	}
	return changes.Planned{Loaded: o.Loaded, Snapshot: snapshot, Plan: plan, Documents: b.Documents}.Preview(ctx, o.Store, inv.Tenant, what)
}

// previewRemove shows which documents are taken out of use, what guards less afterwards, and which other documents use them or the bundle's
// tools.
func (o Options) previewRemove(ctx context.Context, inv jig.Invocation, in Named) (jig.Preview, error) {
	snapshot, err := o.Store.DocumentSnapshot(ctx, inv.Tenant, in.Name, nil)
	if err != nil {
		return jig.Preview{}, err
	}
	plan, err := snapshot.Remove("")
	if err != nil {
		return jig.Preview{}, err
	}
	known, err := o.Known(ctx, inv.Tenant, in.Name)
	if err != nil {
		return jig.Preview{}, err
	}
	p, err := changes.Planned{Loaded: o.Loaded, Snapshot: snapshot, Plan: plan, Known: &known}.
		Preview(ctx, o.Store, inv.Tenant, "Removes "+in.Name+" "+snapshot.Before.Version)
	if err != nil {
		return p, err
	}
	counts, err := o.Store.EntityCounts(ctx, inv.Tenant)
	if n := changes.Entities(plan.Removed, counts); n > 0 {
		p.Title += fmt.Sprintf("; entities that stay, but are out of use: %d", n)
	}
	return p, err
}
