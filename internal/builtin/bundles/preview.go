package bundles

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/changes"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/spec"
)

// previewInstall shows what changes in each document, after the same checks as an installation.
func (o Options) previewInstall(ctx context.Context, inv jig.Invocation, in Install) (jig.Preview, error) {
	b, problems := read(in)
	before, others, err := o.beside(ctx, inv.Tenant, b.Manifest.Name)
	if err != nil {
		return jig.Preview{}, err
	}
	if _, err := o.check(ctx, inv.Tenant, b, problems, before); err != nil {
		return jig.Preview{}, err
	}
	if before.Hash != b.Hash || in.Replace {
		if _, err := o.checkUpgrade(ctx, inv.Tenant, b, before, in.Replace); err != nil {
			return jig.Preview{}, err
		}
	}
	var list changes.List
	for _, doc := range b.Documents {
		body, err := o.current(ctx, inv.Tenant, o.KindOf(doc.Kind), doc.Name)
		if err != nil {
			return jig.Preview{}, err
		}
		list.Put(doc, body)
	}
	gone := slices.DeleteFunc(slices.Clone(before.Documents), func(d bundle.DocumentVersion) bool {
		return slices.ContainsFunc(b.Documents, func(n spec.Document) bool { return o.KindOf(n.Kind) == d.Kind && n.Name == d.Name })
	})
	if _, err := o.leave(ctx, inv.Tenant, &list, gone, others); err != nil {
		return jig.Preview{}, err
	}
	what := "Installs " + b.Manifest.Name + " " + b.Manifest.Version
	if before.Version != "" {
		what = "Replaces " + b.Manifest.Name + " " + before.Version + " with " + b.Manifest.Version
	}
	p := list.Preview(what)
	// The store refuses to replace documents that the tenant has changed. It keeps those that the bundle no longer brings, so what happens to
	// them depends on more than the installed version.
	if !in.Replace && len(gone) == 0 {
		p.Precondition = stateOf(b.Manifest.Name, before)
	}
	return p, nil
}

// previewRemove shows which documents are taken out of use, and what guards less afterwards.
func (o Options) previewRemove(ctx context.Context, inv jig.Invocation, in Named) (jig.Preview, error) {
	before, others, err := o.beside(ctx, inv.Tenant, in.Name)
	if err != nil {
		return jig.Preview{}, err
	}
	if before.Name == "" {
		return jig.Preview{}, jig.Errorf(jig.CodeNotFound, "the bundle %q is not installed", in.Name).WithField("/name")
	}
	for _, other := range others {
		if slices.Contains(other.Requires, in.Name) {
			return jig.Preview{}, jig.Errorf(jig.CodeConflict, "the bundle %s is required by %s", in.Name, other.Name).WithField("/name")
		}
	}
	var list changes.List
	removed, err := o.leave(ctx, inv.Tenant, &list, before.Documents, others)
	if err != nil {
		return jig.Preview{}, err
	}
	p := list.Preview("Removes " + before.Name + " " + before.Version)
	counts, err := o.counts(ctx, inv.Tenant)
	if n := o.entities(removed, counts); n > 0 {
		p.Title += fmt.Sprintf("; entities that stay, but are out of use: %d", n)
	}
	return p, err
}

// beside returns the installed version of a bundle, the zero value if there is none, and the tenant's other bundles.
func (o Options) beside(ctx context.Context, tenant, name string) (before bundle.Bundle, others []bundle.Bundle, err error) {
	all, err := o.Store.Bundles(ctx, tenant)
	for _, b := range all {
		if b.Name == name {
			before = b
		} else {
			others = append(others, b)
		}
	}
	return before, others, err
}

// leave adds documents that a bundle no longer brings, and returns those that go out of use. Those that the tenant has replaced, and those of
// another bundle, stay in use.
func (o Options) leave(
	ctx context.Context, tenant string, list *changes.List, gone []bundle.DocumentVersion, others []bundle.Bundle,
) (removed []bundle.DocumentVersion, err error) {
	for _, d := range gone {
		body, err := o.current(ctx, tenant, d.Kind, d.Name)
		if err != nil {
			return nil, err
		}
		heir := slices.IndexFunc(others, func(b bundle.Bundle) bool { return slices.Contains(b.Documents, d) })
		switch {
		case body == nil:
		case heir >= 0:
			list.Keep(d.Kind, d.Name, "the bundle "+others[heir].Name+" has it, too")
		case changes.VersionOf(d.Kind, d.Name, body) != d.Version:
			list.Keep(d.Kind, d.Name, "the tenant has a version of its own")
		default:
			list.Remove(d.Kind, d.Name, body)
			removed = append(removed, d)
		}
	}
	return removed, nil
}

// current returns the current body of a document; nil if there is none.
func (o Options) current(ctx context.Context, tenant, kind, name string) ([]byte, error) {
	body, err := o.Store.Document(ctx, tenant, kind, name)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return nil, nil
	}
	return body, err
}

// stateOf names the installed version of a bundle. It is the precondition of an installation.
func stateOf(name string, installed bundle.Bundle) string {
	if installed.Hash == "" {
		return "a tenant without the bundle " + name
	}
	return strings.Join([]string{"the bundle", name, installed.Version, installed.Hash}, " ")
}

// unchanged returns CONFLICT if another version of the bundle is installed than people were shown. An attempt that has already installed the
// bundle is no conflict.
func unchanged(precondition, name string, before bundle.Bundle, hash string) error {
	now := stateOf(name, before)
	if precondition == "" || precondition == now || before.Hash == hash {
		return nil
	}
	return jig.Errorf(jig.CodeConflict, "people approved an installation on %s, and now it is %s", precondition, now).WithReason("precondition").
		WithHint("call again")
}
