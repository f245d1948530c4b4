// Package catalog contains the tools that read a tenant's documents, catalog.list and catalog.get, and those with which an operator changes them:
// catalog.put, catalog.restore and catalog.remove for documents of every kind but the manifest of a bundle, and two that change the tenant's own
// document, to enroll a key and to disable a person. It must not know how documents are stored.
//
// A call changes all of its documents or none. The check is the same for the preview and for the run: the documents are read, checked against
// each other and against what the tenant has, and new entity types are checked against existing entities. A call changes only what people saw:
// it carries the state of the documents as its precondition, and a caller can name the version that a document must still have.
//
// Begin with [Tools] and Options.check. Package changes words the previews.
package catalog

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/changes"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/retype"
	"github.com/jig-run/jig/internal/loaded"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// Store stores documents.
type Store interface {
	// RegisterDocuments stores versions of documents for the call's tenant and makes them current, in one transaction. Changes of current
	// versions are recorded in the audit, together with the call. It returns CONFLICT if a fact that the request relies on no longer holds.
	RegisterDocuments(ctx context.Context, by jig.Invocation, r bundle.Register) error
	// WithdrawDocuments takes documents of the call's tenant out of use, in one transaction, and returns what that changed. It returns CONFLICT
	// if the tenant's documents are not in the state shown, unless that is empty.
	WithdrawDocuments(ctx context.Context, by jig.Invocation, documents []bundle.Key, shown string) (bundle.Plan, error)
	// DocumentSnapshot returns what a change of documents depends on. The name of a bundle is empty for a tenant's own documents.
	DocumentSnapshot(ctx context.Context, tenant, bundle string, documents []bundle.Key) (*bundle.Snapshot, error)
	// EntityCounts returns the number of a tenant's entities by type.
	EntityCounts(ctx context.Context, tenant string) ([]entity.Count, error)
	// Installation returns the id of the installation.
	Installation() string
	changes.Documents
	Reader
}

// Options are the settings of the tools.
type Options struct {
	// Store stores the documents; required.
	Store Store
	// Loaded reads documents; nil keeps none of them for the next time.
	Loaded *loaded.Documents
	// Known returns the tenant's current catalog, against which documents are checked; required.
	Known func(ctx context.Context, tenant string) (spec.Catalog, error)
	// Check runs further checks on a document, given the tenant's tools; required.
	Check func(ctx context.Context, tenant string, doc spec.Document, tools []jig.Tool) error
	// TypeOf returns the entity type against which a tenant's entities of that name were last checked; false if it is not known. Required.
	TypeOf func(ctx context.Context, tenant, name string) (entity.Type, bool, error)
}

// The names of the tools.
const (
	ListTool    = "catalog.list"
	GetTool     = "catalog.get"
	PutTool     = toolname.CatalogPut
	RestoreTool = toolname.CatalogRestore
	RemoveTool  = toolname.CatalogRemove
)

// File is a document as the author wrote it.
type File struct {
	Path string `json:"path" jsonschema:"the file's name, for messages, e.g. nightly.yaml" minLength:"1" maxLength:"512"`
	Body string `json:"body" jsonschema:"the whole text of the document"                   minLength:"1"`
	// Replaces keeps a change that was made in the meantime from getting lost.
	Replaces *Named `json:"replaces,omitempty" jsonschema:"the document that this one takes the place of, with its version; without a version it must be new"`
}

// Files are documents to register together.
type Files struct {
	Documents []File `json:"documents" minItems:"1" maxItems:"100"`
}

// Result is the output of catalog.put.
type Result struct {
	// Documents are the documents that are now current.
	Documents []bundle.DocumentVersion `json:"documents"`
	// Warnings are advice that did not prevent the registration.
	Warnings []string `json:"warnings,omitempty"`
}

// Summary implements tools.Summarizer.
func (r Result) Summary() string {
	names := make([]string, len(r.Documents))
	for i, d := range r.Documents {
		names[i] = d.Name
	}
	return "registered " + strings.Join(names, ", ")
}

// Tools returns the tools of this package.
func Tools(o Options) []tools.Tool {
	contract := jig.Tool{
		Risk: jig.RiskHigh, Approval: jig.ApprovalAlwaysAsk, Idempotent: true, Timeout: 30 * time.Second, Tags: []string{"operator"},
		Labels: &jig.Labels{}, ConcurrencyKey: `'catalog'`,
	}
	read := jig.Tool{
		Permission: jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true, Timeout: 30 * time.Second, Tags: []string{"operator"},
		Labels: &jig.Labels{Reads: []string{jig.ReadsPrivate}}, RequiredPermission: tenancy.PermissionRead,
	}
	list, get := read, read
	list.Name = ListTool
	list.Description = "Lists the documents that are in use, by kind and name, with their versions and the bundle that brought each. With kind and name, lists the " +
		"stored versions of that document instead, the latest first. Use catalog.get to read a text."
	get.Name = GetTool
	get.Description = "Returns a document exactly as it was registered: an agent, a composition, a skill, a policy, an entity type or the settings of the tenant; " +
		"with version, an earlier text. Use it before you change a document with catalog.put."
	put, restore, remove := contract, contract, contract
	restore.Name, restore.Permission = RestoreTool, jig.PermissionWrite
	restore.Description = "Makes an earlier version of a document current again, after the checks of catalog.put. Sessions that run keep the versions they began with. " +
		"catalog.list names the versions; use catalog.put for a new text. Returns the kind, name and version."
	put.Name, put.Permission = PutTool, jig.PermissionWrite
	put.Description = "Registers agents, compositions, skills, policies and the settings of the tenant, or new versions of them, after checking them against " +
		"what is there. Either all of them are registered or nothing changes. Sessions that run keep the versions they began with. " +
		"Returns the kind, name and version of each document."
	remove.Name, remove.Permission = RemoveTool, jig.PermissionDestructive
	remove.Description = "Takes documents that the tenant has registered out of use: agents, compositions, skills, policies, entity types or the settings of the " +
		"tenant. A document that an installed bundle has, too, goes back to the bundle's version. Entities are kept. Versions are kept, too: registering a " +
		"document again restores it. Returns the versions that went out of use."
	enrol := contract
	enrol.Name, enrol.Permission = EnrolTool, jig.PermissionWrite
	enrol.Description = "Lets a key sign for the principal of the call, by adding it to the tenant's document. The token proves that the principal holds the key. " +
		"Somebody else must approve it, who makes sure that it is the principal who asks. Returns the key's id and the document's version."
	disable := contract
	disable.Name, disable.Permission = DisableTool, jig.PermissionWrite
	disable.Description = "Disables a person or a key of the tenant, or enables them again, by changing the tenant's document. Within a second, servers and workers " +
		"refuse everything that a disabled person asks for, and every signature of a disabled key. Returns the document's version."
	return []tools.Tool{
		tools.New(list, o.list),
		tools.New(get, o.get),
		tools.New(restore, o.restore, tools.WithPreview(o.previewRestore)),
		tools.New(disable, o.setDisabled, tools.WithPreview(o.previewDisable)),
		tools.New(enrol, o.enrol, tools.WithPreview(o.previewEnrol)),
		tools.New(put, o.put, tools.WithPreview(o.preview)),
		tools.New(remove, o.remove, tools.WithPreview(o.previewRemove)),
	}
}

// preview shows what changes in each document, after the same checks as a registration.
func (o Options) preview(ctx context.Context, inv jig.Invocation, in Files) (jig.Preview, error) {
	c, err := o.check(ctx, inv.Tenant, in)
	if err != nil {
		return jig.Preview{}, err
	}
	stored := changes.Stored(c.docs)
	snapshot, err := o.Store.DocumentSnapshot(ctx, inv.Tenant, "", changes.Keys(stored))
	if err != nil {
		return jig.Preview{}, err
	}
	if err := o.unchanged(snapshot, replaced(c.docs, in)); err != nil {
		return jig.Preview{}, err
	}
	plan, _, err := snapshot.Register(stored, "")
	if err != nil {
		return jig.Preview{}, err
	}
	return changes.Planned{Loaded: o.Loaded, Snapshot: snapshot, Plan: plan, Documents: c.docs}.Preview(ctx, o.Store, inv.Tenant, "Registers documents")
}

func (o Options) put(ctx context.Context, inv jig.Invocation, in Files) (Result, error) {
	return retype.Again(func() (Result, error) { return o.putOnce(ctx, inv, in) }, bundle.ReasonTypeChanged)
}

// checked holds documents that can be registered.
type checked struct {
	docs     []spec.Document
	types    []bundle.TypeBasis
	warnings []string
}

// check checks all documents against each other and against what is there.
func (o Options) check(ctx context.Context, tenant string, in Files) (checked, error) {
	known, err := o.Known(ctx, tenant)
	if err != nil {
		return checked{}, err
	}
	var c checked
	var problems spec.Problems
	for _, file := range in.Documents {
		doc, found := o.Loaded.Load(file.Path, []byte(file.Body))
		c.docs, problems = append(c.docs, doc), append(problems, found...)
		if doc.Kind.IsManifest() {
			problems = append(problems, spec.Problem{
				Document: file.Path, Path: "kind", Line: 1, Column: 1, Code: spec.ProblemUnknownKind, Severity: spec.SeverityError,
				Message: "the manifest of a bundle cannot be registered by itself", Hint: "install the bundle: jig bundle install FOLDER",
			})
		}
	}
	if len(problems.Errors()) == 0 {
		problems = append(problems, spec.Check(c.docs, known)...)
		problems = append(problems, spec.Advise(c.docs, known)...)
	}
	if err := problems.OrNil(); err != nil {
		return checked{}, err
	}
	for i, doc := range c.docs {
		if r := in.Documents[i].Replaces; r != nil && (doc.Kind.Stored() != spec.Kind(r.Kind).Stored() || doc.Name != r.Name) {
			return checked{}, jig.Errorf(jig.CodeInvalidInput, "the document is %s %s, not %s %s", doc.Kind, doc.Name, r.Kind, r.Name).
				WithField(fmt.Sprintf("/documents/%d/replaces", i)).WithHint("a document keeps its kind and its name; remove the old one to rename it")
		}
	}
	for _, doc := range c.docs {
		if err := o.Check(ctx, tenant, doc, known.Tools); err != nil {
			return checked{}, err
		}
	}
	for _, p := range problems {
		c.warnings = append(c.warnings, p.String())
	}
	c.types, err = o.types(ctx, tenant, c.docs)
	return c, err
}

// putOnce checks all documents and stores them together.
func (o Options) putOnce(ctx context.Context, inv jig.Invocation, in Files) (Result, error) {
	c, err := o.check(ctx, inv.Tenant, in)
	if err != nil {
		return Result{}, err
	}
	stored := changes.Stored(c.docs)
	shown, err := o.shown(ctx, inv, changes.Keys(stored), replaced(c.docs, in))
	if err != nil {
		return Result{}, err
	}
	if err := o.Store.RegisterDocuments(ctx, inv, bundle.Register{Documents: stored, Shown: shown, Types: c.types}); err != nil {
		return Result{}, err
	}
	out := Result{Documents: make([]bundle.DocumentVersion, len(c.docs)), Warnings: c.warnings}
	for i, doc := range c.docs {
		out.Documents[i] = bundle.DocumentVersion{Kind: string(doc.Kind), Name: doc.Name, Version: doc.Version}
	}
	return out, nil
}

// types checks the entity types among the documents against existing entities.
func (o Options) types(ctx context.Context, tenant string, docs []spec.Document) ([]bundle.TypeBasis, error) {
	var types []entity.Type
	for _, doc := range docs {
		if doc.EntityType() != nil {
			types = append(types, *doc.EntityType())
		}
	}
	return retype.Checker{Counts: o.Store.EntityCounts, TypeOf: o.TypeOf}.Check(ctx, tenant, "documents", types, nil)
}
