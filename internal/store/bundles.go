package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/bundle"
)

// KindBundle is the document kind that records every bundle that was ever installed. The document has the bundle's name, the bundle's
// hash as its version, and the author's version as its body. It is never current.
const KindBundle = "bundle"

// bundleRow is a row of bundles.
type bundleRow struct {
	Name        string
	Hash        string
	Manifest    []byte
	Documents   []byte
	InstalledAt time.Time
	InstalledBy string
}

// documentRef is a document as the column bundles.documents stores it.
type documentRef struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

func (r *bundleRow) bundle() (bundle.Bundle, error) {
	b := bundle.Bundle{Hash: r.Hash, InstalledAt: r.InstalledAt.UTC(), InstalledBy: r.InstalledBy}
	if err := decode(r.Manifest, &b.Manifest); err != nil {
		return bundle.Bundle{}, err
	}
	var refs []documentRef
	if err := decode(r.Documents, &refs); err != nil {
		return bundle.Bundle{}, err
	}
	b.Documents = make([]bundle.DocumentVersion, len(refs))
	for i, d := range refs {
		b.Documents[i] = bundle.DocumentVersion(d)
	}
	return b, nil
}

func bundles(rows []bundleRow) ([]bundle.Bundle, error) {
	list := make([]bundle.Bundle, len(rows))
	for i := range rows {
		var err error
		if list[i], err = rows[i].bundle(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Bundles returns a tenant's installed bundles, sorted by name.
func (db *DB) Bundles(ctx context.Context, tenant string) ([]bundle.Bundle, error) {
	var rows []bundleRow
	if err := db.once(ctx, tenant, func(t *tx) { list(t.queue("BundlesGet", tenant), &rows) }); err != nil {
		return nil, err
	}
	return bundles(rows)
}

// BundleNames returns the names of a tenant's installed bundles, sorted.
func (db *DB) BundleNames(ctx context.Context, tenant string) ([]string, error) {
	var names []string
	err := db.once(ctx, tenant, func(t *tx) { column(t.queue("BundleNames", tenant), &names) })
	return names, err
}

// InstallBundle installs a bundle for the tenant of a call, in one transaction. The bundle's documents become current, and documents
// that only the previously installed version had go out of use. If the same hash is already installed nothing changes, unless
// b.Replace is set and the tenant has replaced documents of the bundle by its own. It returns
//   - CONFLICT, reason bundle_changed, when the installed hash is not b.Over;
//   - CONFLICT, reason type_changed, when the entity types are no longer in the state that b.Types describes;
//   - INVALID_INPUT, reason bundle_not_installed, when a required bundle is not installed;
//   - CONFLICT, reason document_taken, when another version of a document is current and belongs to the tenant or another bundle;
//   - CONFLICT, reason document_changed, when the tenant replaced a document of the bundle, unless b.Replace is set;
//   - CONFLICT, reason document_differs, when one of the versions is already stored with another body.
//
// A document that is already current in exactly the bundle's version becomes the bundle's if it was the tenant's own, and is shared
// if it belongs to another bundle.
func (db *DB) InstallBundle(ctx context.Context, by jig.Invocation, b bundle.Install) (bundle.Installed, error) {
	if err := mayWriteDocuments(by.Tenant); err != nil {
		return bundle.Installed{}, err
	}
	if err := checkInstall(b); err != nil {
		return bundle.Installed{}, err
	}
	var done bundle.Installed
	err := db.transact(ctx, by.Tenant, func(t *tx) error {
		s, err := t.shelf(ctx, b.Name, versionsOf(b.Documents))
		if err != nil {
			return err
		}
		done = bundle.Installed{Before: s.version()}
		replaced := s.replaced(b)
		if s.before != nil && s.before.Hash == b.Hash && (!b.Replace || len(replaced) == 0) {
			done.Bundle = *s.before
			return nil
		}
		if err := s.refuse(b, replaced); err != nil {
			return err
		}
		if err := t.holdTypes(ctx, b.Types); err != nil {
			return err
		}
		var at *time.Time
		plan := s.install(b)
		done.Changed, done.Removed = true, plan.removed
		done.Bundle = bundle.Bundle{Manifest: b.Manifest, Hash: b.Hash, Documents: sortedVersions(b.Documents), InstalledBy: text(by.Principal.ID)}
		if err := t.putBundle(done.Bundle, &at); err != nil {
			return err
		}
		reason := ""
		if s.before != nil {
			reason = inPlaceOf + s.before.Version + "+" + s.before.Hash
		}
		t.documents(b.Name, plan)
		if err := t.sameBodies(ctx, b.Documents...); err != nil {
			return err
		}
		l := &log{audits: []audit.Entry{audited(by, audit.AuditBundle, bundleSubject(done.Bundle), reason)}}
		l.audits = append(l.audits, plan.audits(by)...)
		if err := t.finish(ctx, l, by.SessionID); err != nil {
			return err
		}
		done.Bundle.InstalledAt = at.UTC()
		return nil
	})
	if err != nil {
		return bundle.Installed{}, err
	}
	return done, nil
}

// RemoveBundle removes a bundle from the tenant of a call and returns the removed bundle. Its documents go out of use, except those that
// the tenant replaced and those that another bundle also brought, which then belong to that bundle. Running sessions keep the versions
// they started with, and entities stay. The error is NOT_FOUND when the bundle is not installed, and CONFLICT, reason bundle_required,
// when another installed bundle requires it.
func (db *DB) RemoveBundle(ctx context.Context, by jig.Invocation, name string) (bundle.Bundle, error) {
	if err := mayWriteDocuments(by.Tenant); err != nil {
		return bundle.Bundle{}, err
	}
	var gone bundle.Bundle
	err := db.transact(ctx, by.Tenant, func(t *tx) error {
		s, err := t.shelf(ctx, text(name), nil)
		if err != nil {
			return err
		}
		if s.before == nil {
			return jig.Errorf(jig.CodeNotFound, "the bundle %q is not installed", text(name)).WithField("name")
		}
		if needing := s.requiring(name); len(needing) > 0 {
			return jig.Errorf(jig.CodeConflict, "the bundle %q is required by %s", name, strings.Join(needing, ", ")).WithField("name").
				WithReason("bundle_required").WithHint("remove those first")
		}
		gone = *s.before
		plan := s.giveUp(gone.Documents)
		t.queue("BundleRemove", t.tenant, name)
		t.documents(name, plan)
		l := &log{audits: []audit.Entry{audited(by, audit.AuditBundle, bundleSubject(gone), "removed")}}
		l.audits = append(l.audits, plan.audits(by)...)
		return t.finish(ctx, l, by.SessionID)
	})
	if err != nil {
		return bundle.Bundle{}, err
	}
	return gone, nil
}

func bundleSubject(b bundle.Bundle) string {
	return "bundle/" + b.Name + "@" + b.Version + "+" + b.Hash
}

func checkInstall(b bundle.Install) error {
	if err := b.Check(); err != nil {
		return err
	}
	if b.Hash == "" {
		return jig.Errorf(jig.CodeInvalidInput, "the bundle %q has no hash", b.Name).WithField("hash")
	}
	seen := map[documentKey]bool{}
	for _, d := range b.Documents {
		key := keyOf(d.DocumentVersion)
		switch {
		case d.Kind == "" || d.Name == "" || d.Version == "":
			return jig.Errorf(jig.CodeInvalidInput, "a document of the bundle has no kind, name or version: %q", key.String()).WithField("documents")
		case seen[key]:
			return jig.Errorf(jig.CodeInvalidInput, "the bundle has the document %s twice", key).WithField("documents").
				WithHint("give one of them another name")
		}
		seen[key] = true
	}
	return nil
}

// shelf reads and locks a tenant's bundles until the transaction ends: the named bundle, the others, and the owners of the documents that
// the named bundle has or will get.
func (t *tx) shelf(ctx context.Context, name string, documents []bundle.DocumentVersion) (*shelf, error) {
	var rows []bundleRow
	t.queue("TenantEnsure", t.tenant)
	t.queue("Serialize", "jig bundles "+t.tenant)
	list(t.queue("BundlesGet", t.tenant), &rows)
	if err := t.flush(ctx); err != nil {
		return nil, err
	}
	installed, err := bundles(rows)
	if err != nil {
		return nil, err
	}
	s := &shelf{name: name, current: map[documentKey]heldDocument{}}
	for _, b := range installed {
		if b.Name == name {
			s.before = &b
			documents = slices.Concat(documents, b.Documents)
			continue
		}
		s.others = append(s.others, b)
	}
	var held []heldDocument
	kinds, names, _ := documentColumns(documents)
	list(t.queue("DocumentsHold", t.tenant, kinds, names), &held)
	if err := t.flush(ctx); err != nil {
		return nil, err
	}
	for _, h := range held {
		s.current[documentKey{h.Kind, h.Name}] = h
	}
	return s, nil
}

// putBundle queues the bundle's row, and the record of the installation, which survives the bundle's removal.
func (t *tx) putBundle(b bundle.Bundle, at **time.Time) error {
	b.Title, b.Description = text(b.Title), text(b.Description)
	manifest, err := encode(b.Manifest)
	if err != nil {
		return err
	}
	refs := make([]documentRef, len(b.Documents))
	for i, d := range b.Documents {
		refs[i] = documentRef(d)
	}
	documents, err := encode(refs)
	if err != nil {
		return err
	}
	t.queue("DocumentKeep", t.tenant, KindBundle, b.Name, b.Hash, []byte(b.Version))
	value(t.queue("BundlePut", t.tenant, b.Name, b.Hash, manifest, documents, b.InstalledBy), at)
	return nil
}

// documents queues a plan's changes to documents.
func (t *tx) documents(owner string, p *bundlePlan) {
	kinds, names, versions := documentColumns(p.retired)
	t.queue("DocumentsRetire", t.tenant, kinds, names, versions)
	bodies := make([][]byte, len(p.put))
	for i, d := range p.put {
		bodies[i] = nonNil(d.Body)
	}
	kinds, names, versions = documentColumns(versionsOf(p.put))
	t.queue("DocumentsPut", t.tenant, owner, kinds, names, versions, bodies)
	owners, given := make([]string, len(p.given)), make([]bundle.DocumentVersion, len(p.given))
	for i, h := range p.given {
		owners[i], given[i] = h.Bundle, h.document()
	}
	kinds, names, versions = documentColumns(given)
	t.queue("DocumentsGive", t.tenant, kinds, names, versions, owners)
}

func documentColumns(list []bundle.DocumentVersion) (kinds, names, versions []string) {
	kinds, names, versions = make([]string, len(list)), make([]string, len(list)), make([]string, len(list))
	for i, d := range list {
		kinds[i], names[i], versions[i] = d.Kind, d.Name, d.Version
	}
	return kinds, names, versions
}

func versionsOf(documents []bundle.StoredDocument) []bundle.DocumentVersion {
	list := make([]bundle.DocumentVersion, len(documents))
	for i, d := range documents {
		list[i] = d.DocumentVersion
	}
	return list
}

func sortedVersions(documents []bundle.StoredDocument) []bundle.DocumentVersion {
	list := versionsOf(documents)
	slices.SortFunc(list, func(a, b bundle.DocumentVersion) int { return keyOf(a).compare(keyOf(b)) })
	return list
}
