package store

import (
	"context"
	"slices"
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
	Manifest    bundle.Manifest
	Documents   []bundle.DocumentVersion
	InstalledAt time.Time
	InstalledBy string
}

func bundles(rows []bundleRow) []bundle.Bundle {
	list := make([]bundle.Bundle, len(rows))
	for i, r := range rows {
		list[i] = bundle.Bundle{Manifest: r.Manifest, Hash: r.Hash, Documents: r.Documents, InstalledAt: r.InstalledAt, InstalledBy: r.InstalledBy}
	}
	return list
}

// Bundles returns a tenant's installed bundles, sorted by name.
func (db *DB) Bundles(ctx context.Context, tenant string) ([]bundle.Bundle, error) {
	rows, err := ask(ctx, db, tenant, list[bundleRow], "BundlesGet", tenant)
	return bundles(rows), err
}

// BundleNames returns the names of a tenant's installed bundles, sorted.
func (db *DB) BundleNames(ctx context.Context, tenant string) ([]string, error) {
	return ask(ctx, db, tenant, column[string], "BundleNames", tenant)
}

// InstallBundle installs a bundle for the tenant of a call, in one transaction. The bundle's documents become current, and documents
// that only the previously installed version had go out of use. If the same hash is already installed nothing changes, unless
// b.Replace is set and the tenant has replaced documents of the bundle by its own. It returns
//   - CONFLICT, reason precondition, when the tenant's documents are not in the state b.Shown;
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
		s, err := t.snapshot(ctx, b.Name, keysOf(b.Documents))
		if err != nil {
			return err
		}
		plan, already, err := s.Install(b)
		if err != nil {
			return err
		}
		done = bundle.Installed{}
		reason := ""
		if s.Before != nil {
			done.Before, reason = s.Before.Version, inPlaceOf+s.Before.Version+"+"+s.Before.Hash
		}
		if already {
			done.Bundle = *s.Before
			return nil
		}
		if err := t.holdTypes(ctx, b.Types); err != nil {
			return err
		}
		var at *time.Time
		done.Changed, done.Removed = true, plan.Removed
		done.Bundle = bundle.Bundle{Manifest: b.Manifest, Hash: b.Hash, Documents: sortedVersions(b.Documents), InstalledBy: text(by.Principal.ID)}
		if err := t.putBundle(done.Bundle, &at); err != nil {
			return err
		}
		t.documents(by, b.Name, plan)
		if err := t.sameBodies(ctx, b.Documents...); err != nil {
			return err
		}
		l := &log{audits: []audit.Entry{audited(by, audit.AuditBundle, bundleSubject(done.Bundle), reason)}}
		l.audits = append(l.audits, documentAudits(by, s, plan)...)
		if err := t.finish(ctx, l, by.SessionID); err != nil {
			return err
		}
		done.Bundle.InstalledAt = *at
		return nil
	})
	if err != nil {
		return bundle.Installed{}, err
	}
	return done, nil
}

// RemoveBundle removes a bundle from the tenant of a call. It returns the removed bundle, and those of its documents that have gone out of
// use: all except those that the tenant replaced or registered, too, and those that another bundle also brought, which then belong to that
// bundle. Running sessions keep the versions they started with, and entities stay. The error is NOT_FOUND when the bundle is not
// installed, CONFLICT, reason bundle_required, when another installed bundle requires it, and CONFLICT, reason precondition, when the
// tenant's documents are not in the state shown; an empty state stands for any.
func (db *DB) RemoveBundle(
	ctx context.Context, by jig.Invocation, name, shown string,
) (gone bundle.Bundle, removed []bundle.DocumentVersion, err error) {
	if err := mayWriteDocuments(by.Tenant); err != nil {
		return bundle.Bundle{}, nil, err
	}
	err = db.transact(ctx, by.Tenant, func(t *tx) error {
		s, err := t.snapshot(ctx, text(name), nil)
		if err != nil {
			return err
		}
		plan, err := s.Remove(shown)
		if err != nil {
			return err
		}
		gone, removed = *s.Before, plan.Removed
		t.queue("BundleRemove", t.tenant, name)
		t.documents(by, name, plan)
		l := &log{audits: []audit.Entry{audited(by, audit.AuditBundle, bundleSubject(gone), "removed")}}
		l.audits = append(l.audits, documentAudits(by, s, plan)...)
		return t.finish(ctx, l, by.SessionID)
	})
	if err != nil {
		return bundle.Bundle{}, nil, err
	}
	return gone, removed, nil
}

// DocumentSnapshot reads what a change of a tenant's documents depends on: of the named bundle, or of documents that belong to none.
func (db *DB) DocumentSnapshot(ctx context.Context, tenant, name string, documents []bundle.Key) (*bundle.Snapshot, error) {
	var s *bundle.Snapshot
	err := db.transact(ctx, tenant, func(t *tx) (err error) {
		t.queue("SerializeShared", changesOf(tenant))
		s, err = t.readSnapshot(ctx, text(name), documents, false)
		return err
	})
	return s, err
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
	return checkDocuments(b.Documents)
}

// checkDocuments refuses documents without a kind, name or version, and a document that is given twice.
func checkDocuments(documents []bundle.StoredDocument) error {
	seen := map[bundle.Key]bool{}
	for _, d := range documents {
		key := d.Key()
		switch {
		case d.Kind == "" || d.Name == "" || d.Version == "":
			return jig.Errorf(jig.CodeInvalidInput, "a document has no kind, name or version: %q", key.String()).WithField("documents")
		case seen[key]:
			return jig.Errorf(jig.CodeInvalidInput, "the document %s is given twice", key).WithField("documents").
				WithHint("give one of them another name")
		}
		seen[key] = true
	}
	return nil
}

// changesOf is the name of the lock on a tenant's documents and bundles.
func changesOf(tenant string) string { return "jig bundles " + tenant }

// snapshot reads and locks a tenant's bundles until the transaction ends: the named bundle, the others, and the owners of the documents that
// change and of those that the named bundle has.
func (t *tx) snapshot(ctx context.Context, name string, documents []bundle.Key) (*bundle.Snapshot, error) {
	t.queue("TenantEnsure", t.tenant)
	t.queue("Serialize", changesOf(t.tenant))
	return t.readSnapshot(ctx, name, documents, true)
}

// readSnapshot reads a snapshot. hold locks the tenant's current versions until the transaction ends.
func (t *tx) readSnapshot(ctx context.Context, name string, documents []bundle.Key, hold bool) (*bundle.Snapshot, error) {
	var rows []bundleRow
	list(t.queue("BundlesGet", t.tenant), &rows)
	if err := t.flush(ctx); err != nil {
		return nil, err
	}
	s := &bundle.Snapshot{Name: name, Current: map[bundle.Key]bundle.CurrentVersion{}, Shared: map[bundle.Key]bundle.DocumentVersion{}}
	for _, b := range bundles(rows) {
		if name == "" || b.Name != name {
			s.Others = append(s.Others, b)
			continue
		}
		s.Before = &b
		for _, d := range b.Documents {
			documents = append(documents, d.Key())
		}
	}
	kinds, names := make([]string, len(documents)), make([]string, len(documents))
	for i, key := range documents {
		kinds[i], names[i] = key.Kind, key.Name
	}
	var held []bundle.CurrentVersion
	var shared []bundle.DocumentVersion
	if hold {
		list(t.queue("DocumentsHold", t.tenant, kinds, names), &held)
	} else {
		list(t.queue("DocumentsOwn", t.tenant, kinds, names), &held)
	}
	list(t.queue("DocumentsShared", kinds, names), &shared)
	if err := t.flush(ctx); err != nil {
		return nil, err
	}
	for _, h := range held {
		s.Current[h.Key()] = h
	}
	for _, d := range shared {
		s.Shared[d.Key()] = d
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
	documents, err := encode(b.Documents)
	if err != nil {
		return err
	}
	t.queue("DocumentKeep", t.tenant, KindBundle, b.Name, b.Hash, []byte(b.Version))
	value(t.queue("BundlePut", t.tenant, b.Name, b.Hash, manifest, documents, b.InstalledBy), at)
	return nil
}

// documents queues a plan's changes to documents.
func (t *tx) documents(by jig.Invocation, owner string, p bundle.Plan) {
	kinds, names, versions := documentColumns(p.Retired)
	t.queue("DocumentsRetire", t.tenant, kinds, names, versions)
	bodies := make([][]byte, len(p.Put))
	for i, d := range p.Put {
		bodies[i] = nonNil(d.Body)
	}
	kinds, names, versions = documentColumns(versionsOf(p.Put))
	t.queue("DocumentsPut", t.tenant, owner, kinds, names, versions, bodies, by.SessionID, by.CallID)
	owners, given := make([]string, len(p.Inherited)), make([]bundle.DocumentVersion, len(p.Inherited))
	for i, h := range p.Inherited {
		owners[i], given[i] = h.Bundle, h.DocumentVersion
	}
	kinds, names, versions = documentColumns(given)
	t.queue("DocumentsGive", t.tenant, kinds, names, versions, owners)
}

// documentAudits returns the audit rows for the current versions that a plan changes.
func documentAudits(by jig.Invocation, s *bundle.Snapshot, p bundle.Plan) []audit.Entry {
	var rows []audit.Entry
	change := func(d bundle.DocumentVersion) {
		have, there := s.Current[d.Key()]
		switch {
		case !there:
			rows = append(rows, audited(by, audit.AuditDocument, subjectOf(d), ""))
		case have.Version != d.Version:
			rows = append(rows, audited(by, audit.AuditDocument, subjectOf(d), inPlaceOf+have.Version))
		}
	}
	for _, d := range p.Removed {
		rows = append(rows, audited(by, audit.AuditDocument, subjectOf(d), "out of use"))
	}
	for _, d := range p.Put {
		change(d.DocumentVersion)
	}
	for _, h := range p.Inherited {
		change(h.DocumentVersion)
	}
	return rows
}

func subjectOf(d bundle.DocumentVersion) string { return d.Kind + "/" + d.Name + "@" + d.Version }

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
	slices.SortFunc(list, func(a, b bundle.DocumentVersion) int { return a.Key().Compare(b.Key()) })
	return list
}

func keysOf(documents []bundle.StoredDocument) []bundle.Key {
	list := make([]bundle.Key, len(documents))
	for i, d := range documents {
		list[i] = d.Key()
	}
	return list
}
