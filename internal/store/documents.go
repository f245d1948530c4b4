package store

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/suggest"
)

// PutDocument stores a version of a document and makes it current. The document is then the tenant's own, even if a bundle brought it.
// Only the owner of the tables can write documents of the tenant _global. It returns CONFLICT, reason document_differs, when the version
// is stored with another body.
func (db *DB) PutDocument(ctx context.Context, tenant, kind, name, version string, body []byte) error {
	if err := mayWriteDocuments(tenant); err != nil {
		return err
	}
	return db.transact(ctx, tenant, func(t *tx) error {
		t.queue("TenantEnsure", tenant)
		t.queue("Serialize", changesOf(tenant))
		t.queue("DocumentRetire", tenant, kind, name, version)
		t.queue("DocumentPut", tenant, kind, name, version, nonNil(body))
		if err := t.sameBodies(ctx, documentOf(kind, name, version, body)); err != nil {
			return err
		}
		return t.commit(ctx)
	})
}

// RegisterDocuments makes documents current on behalf of a call, for the call's tenant, in one transaction. The documents are then the
// tenant's own, even if a bundle brought them. Changes of current versions are recorded in the audit. It returns
//   - CONFLICT, reason precondition, when the tenant's documents are not in the state r.Shown;
//   - CONFLICT, reason type_changed, when the state that an entity type was checked against has changed;
//   - CONFLICT, reason document_differs, when one of the versions is already stored with another body.
//
// If all of them are current and the tenant's own already, nothing changes.
func (db *DB) RegisterDocuments(ctx context.Context, by jig.Invocation, r bundle.Register) error {
	if err := mayWriteDocuments(by.Tenant); err != nil {
		return err
	}
	if err := checkDocuments(r.Documents); err != nil {
		return err
	}
	return db.transact(ctx, by.Tenant, func(t *tx) error {
		s, err := t.snapshot(ctx, "", keysOf(r.Documents))
		if err != nil {
			return err
		}
		plan, done, err := s.Register(r.Documents, r.Shown)
		if err != nil {
			return err
		}
		if done {
			return t.sameBodies(ctx, r.Documents...)
		}
		if err := t.holdTypes(ctx, r.Types); err != nil {
			return err
		}
		t.documents(by, "", plan)
		if err := t.sameBodies(ctx, r.Documents...); err != nil {
			return err
		}
		return t.finish(ctx, &log{audits: documentAudits(by, s, plan)}, by.SessionID)
	})
}

// WithdrawDocuments takes documents of a tenant's own out of use on behalf of a call, in one transaction, and returns what that changed. A
// document that an installed bundle has, too, goes back to the bundle's version. All versions are kept, so each can be registered again. It
// returns NOT_FOUND when the tenant has no such document, CONFLICT, reason document_of_bundle, when it belongs to a bundle, and CONFLICT,
// reason precondition, when the tenant's documents are not in the state shown; an empty state stands for any. A later attempt of a call
// that has withdrawn them changes nothing.
func (db *DB) WithdrawDocuments(ctx context.Context, by jig.Invocation, documents []bundle.Key, shown string) (bundle.Plan, error) {
	var plan bundle.Plan
	if err := mayWriteDocuments(by.Tenant); err != nil {
		return plan, err
	}
	err := db.transact(ctx, by.Tenant, func(t *tx) error {
		s, err := t.snapshot(ctx, "", documents)
		if err != nil {
			return err
		}
		if plan, err = s.Withdraw(documents, shown, by.Attempt > 1); err != nil {
			return err
		}
		t.documents(by, "", plan)
		return t.finish(ctx, &log{audits: documentAudits(by, s, plan)}, by.SessionID)
	})
	return plan, err
}

// holdTypes refuses new versions of entity types when the state that they were checked against has changed. Otherwise it keeps that state
// fixed until the transaction ends: nobody can create an entity meanwhile. Existing entities get the defaults that the new versions add.
func (t *tx) holdTypes(ctx context.Context, types []bundle.TypeBasis) error {
	if len(types) == 0 {
		return nil
	}
	names, versions := make([]string, len(types)), make([]string, len(types))
	for i, b := range types {
		names[i], versions[i] = b.Type, b.Version
	}
	var changed []string
	t.queue("Serialize", typesOf(t.tenant))
	column(t.queue("TypesChanged", t.tenant, names, versions), &changed)
	if err := t.flush(ctx); err != nil {
		return err
	}
	if len(changed) > 0 {
		return jig.Errorf(jig.CodeConflict, "entities of the type %s were created, or the type was changed, at the same time", strings.Join(changed, ", ")).
			WithReason(bundle.ReasonTypeChanged).WithHint("try again")
	}
	for _, b := range types {
		if len(b.Defaults) == 0 {
			continue
		}
		defaults, err := encode(b.Defaults)
		if err != nil {
			return err
		}
		t.queue("EntitiesDefault", t.tenant, b.Type, defaults, slices.Sorted(maps.Keys(b.Defaults)))
	}
	return nil
}

// typesOf is the name of the lock on a tenant's entity types.
func typesOf(tenant string) string { return "jig types " + tenant }

// inPlaceOf starts the reason of an audit row that names the previous version.
const inPlaceOf = "in place of "

// audited returns an audit row for a call's change to something that outlives its session.
func audited(by jig.Invocation, kind audit.Kind, subject, reason string) audit.Entry {
	return audit.Entry{
		Kind: kind, By: by.Principal.ID, Claimed: by.Principal.Claimed, SessionID: by.SessionID, Call: by.CallID,
		Subject: subject, Reason: reason,
	}
}

// KeepDocument stores a version of a document without making it current. An existing version is left alone, current or not. It returns
// CONFLICT, reason document_differs, when it is stored with another body.
func (db *DB) KeepDocument(ctx context.Context, tenant, kind, name, version string, body []byte) error {
	if err := mayWriteDocuments(tenant); err != nil {
		return err
	}
	return db.transact(ctx, tenant, func(t *tx) error {
		t.queue("TenantEnsure", tenant)
		t.queue("DocumentKeep", tenant, kind, name, version, nonNil(body))
		if err := t.sameBodies(ctx, documentOf(kind, name, version, body)); err != nil {
			return err
		}
		return t.commit(ctx)
	})
}

// reasonDocumentDiffers means that the version, which is a document's hash, is already stored with another body.
const reasonDocumentDiffers = "document_differs"

// sameBodies sends the queued statements and returns CONFLICT if a version of the documents is stored with another body. Without this
// check, registering one document could make a different one current that nobody has looked at.
func (t *tx) sameBodies(ctx context.Context, documents ...bundle.StoredDocument) error {
	kinds, names, versions := documentColumns(versionsOf(documents))
	bodies := make([][]byte, len(documents))
	for i, d := range documents {
		bodies[i] = nonNil(d.Body)
	}
	var differ []string
	column(t.queue("DocumentsDiffer", t.tenant, kinds, names, versions, bodies), &differ)
	if err := t.flush(ctx); err != nil {
		return err
	}
	if len(differ) > 0 {
		return jig.Errorf(jig.CodeConflict, "another text is stored under the same version of %s", strings.Join(differ, ", ")).
			WithField("version").WithReason(reasonDocumentDiffers).WithHint("change the document, for example a comment, so that it gets a version of its own")
	}
	return nil
}

func documentOf(kind, name, version string, body []byte) bundle.StoredDocument {
	return bundle.StoredDocument{DocumentVersion: bundle.DocumentVersion{Kind: kind, Name: name, Version: version}, Body: body}
}

func mayWriteDocuments(tenant string) error {
	if tenant == jig.GlobalTenant {
		return jig.Errorf(jig.CodeNotPermitted, "only operators can write documents of the tenant %s", tenant).WithField("tenant")
	}
	return jig.CheckTenant(tenant)
}

// DocumentAt returns the body of a version, current or not: the tenant's own version, or else that of the tenant _global. It returns
// NOT_FOUND when neither exists.
func (db *DB) DocumentAt(ctx context.Context, tenant, kind, name, version string) ([]byte, error) {
	bodies, err := ask(ctx, db, tenant, column[[]byte], "DocumentAt", tenant, kind, name, version)
	if err != nil {
		return nil, err
	}
	if len(bodies) == 0 {
		return nil, jig.Errorf(jig.CodeNotFound, "there is no version %q of the %s %q", jig.ShortVersion(version), jig.Known(kind), name).WithField("version")
	}
	return bodies[0], nil
}

// DocumentTrusted reports whether a version was registered and no outsider can have written its text. See the column documents.untrusted.
func (db *DB) DocumentTrusted(ctx context.Context, tenant, kind, name, version string) (bool, error) {
	trusted, err := ask(ctx, db, tenant, column[bool], "DocumentTrusted", tenant, kind, name, version)
	return len(trusted) > 0 && trusted[0], err
}

// CurrentDocuments lists the current versions of a kind that a tenant sees, sorted by name. A tenant's own document hides the document of
// the same name that belongs to the tenant _global.
func (db *DB) CurrentDocuments(ctx context.Context, tenant, kind string) ([]bundle.DocumentVersion, error) {
	current, err := ask(ctx, db, tenant, list[bundle.DocumentVersion], "DocumentsCurrent", tenant, kind)
	slices.SortFunc(current, func(a, b bundle.DocumentVersion) int { return strings.Compare(a.Name, b.Name) }) // byte order
	return current, err
}

// SeenDocuments lists up to limit current documents that a tenant sees, sorted by kind and name, after one of them. An empty kind means all kinds.
func (db *DB) SeenDocuments(ctx context.Context, tenant, kind string, after bundle.Key, limit int) ([]protocol.DocumentState, error) {
	return ask(ctx, db, tenant, list[protocol.DocumentState], "DocumentsSeen", tenant, text(kind), text(after.Kind), text(after.Name), limit)
}

// DocumentVersions lists up to limit stored versions of a document that a tenant sees, the latest first: the current one and the latest others, or
// only the given version. Versions that were stored but never current are among them. NOT_FOUND suggests the nearest names.
func (db *DB) DocumentVersions(ctx context.Context, tenant, kind, name, version string, limit int) ([]protocol.DocumentState, error) {
	found, err := ask(ctx, db, tenant, list[protocol.DocumentState], "DocumentVersions", tenant, text(kind), text(name), text(version), limit)
	if err != nil || len(found) > 0 {
		return found, err
	}
	if version != "" {
		_, err := db.DocumentVersions(ctx, tenant, kind, name, "", 1)
		return nil, err
	}
	return nil, db.noDocument(ctx, tenant, kind, name)
}

// writtenRow is a row of the query DocumentGet.
type writtenRow struct {
	Body      []byte
	Untrusted bool
}

// Document returns the current body: that of the tenant's own document, or else that of the tenant _global. Whoever reads a text that outsiders may
// have written has read untrusted data; see [entity.MarkRead]. NOT_FOUND suggests the nearest names.
func (db *DB) Document(ctx context.Context, tenant, kind, name string) ([]byte, error) {
	row, err := ask(ctx, db, tenant, first[writtenRow], "DocumentGet", tenant, kind, name)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, db.noDocument(ctx, tenant, kind, name)
	}
	if row.Untrusted {
		entity.MarkRead(ctx)
	}
	return row.Body, nil
}

func (db *DB) noDocument(ctx context.Context, tenant, kind, name string) error {
	names, err := db.DocumentNames(ctx, tenant, kind)
	if err != nil {
		return err
	}
	return jig.Errorf(jig.CodeNotFound, "there is no %s %q", jig.Known(kind), name).WithField("name").WithHint(suggest.Hint(name, names, "`jig catalog` lists what is registered"))
}

// DocumentNames lists the names of a kind that a tenant sees, sorted.
func (db *DB) DocumentNames(ctx context.Context, tenant, kind string) ([]string, error) {
	names, err := ask(ctx, db, tenant, column[string], "DocumentNames", tenant, kind)
	slices.Sort(names) // byte order, regardless of the database's collation
	return names, err
}

func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
