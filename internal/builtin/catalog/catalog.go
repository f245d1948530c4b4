// Package catalog contains the tool catalog.put, which lets an operator register documents: agents, execution specs, skills, policies and a
// tenant's settings. It must not know how documents are stored.
package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/changes"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/retype"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// Store stores documents.
type Store interface {
	// RegisterDocument stores a version of a document for the call's tenant and makes it current. A change of the current version is recorded
	// in the audit, together with the call. It returns a CONFLICT with the reason type_changed if a fact in types no longer holds.
	RegisterDocument(ctx context.Context, by jig.Invocation, d bundle.StoredDocument, types ...bundle.TypeBasis) error
	// EntityCounts returns the number of a tenant's entities by type.
	EntityCounts(ctx context.Context, tenant string) ([]entity.Count, error)
	// Document returns the current body of a document. It returns NOT_FOUND if there is none.
	Document(ctx context.Context, tenant, kind, name string) (body []byte, err error)
}

// Options are the settings of the tools.
type Options struct {
	// Store stores the documents; required.
	Store Store
	// Known returns the tenant's current catalog, against which documents are checked; required.
	Known func(ctx context.Context, tenant string) (spec.Catalogue, error)
	// KindOf returns the name under which the store keeps documents of a kind; required.
	KindOf func(kind spec.Kind) string
	// Check runs further checks on a document, given the tenant's tools; required.
	Check func(ctx context.Context, tenant string, doc spec.Document, tools []jig.Tool) error
	// TypeOf returns the entity type against which a tenant's entities of that name were last checked; false if it is not known. Required.
	TypeOf func(ctx context.Context, tenant, name string) (entity.Type, bool, error)
}

// PutTool is the name of the tool that registers documents.
const PutTool = toolname.CatalogPut

// File is a document as the author wrote it.
type File struct {
	Path string `json:"path" jsonschema:"the file's name, for messages, e.g. nightly.yaml" minLength:"1" maxLength:"512"`
	Body string `json:"body" jsonschema:"the whole text of the document"                   minLength:"1"`
}

// Files are documents to register together.
type Files struct {
	Documents []File `json:"documents" minItems:"1" maxItems:"100"`
}

// Registered is a document that is now current.
type Registered struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Result is the output of catalog.put.
type Result struct {
	Documents []Registered `json:"documents"`
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
	return []tools.Tool{tools.New(jig.Tool{
		Name: PutTool,
		Description: "Registers agents, execution specs, skills, policies and the settings of the tenant, or new versions of them, after checking them against what is there. " +
			"Sessions that run keep the versions they began with. Returns the kind, name and version of each document.",
		Permission: jig.PermissionWrite, Risk: jig.RiskHigh, Approval: jig.ApprovalAlwaysAsk, Idempotent: true, Timeout: 30 * time.Second, Tags: []string{"operator"},
		Labels: &jig.Labels{}, ConcurrencyKey: `'catalog'`,
	}, o.put, tools.WithPreview(o.preview))}
}

// preview shows what changes in each document, after the same checks as a registration.
func (o Options) preview(ctx context.Context, inv jig.Invocation, in Files) (jig.Preview, error) {
	c, err := o.check(ctx, inv.Tenant, in)
	if err != nil {
		return jig.Preview{}, err
	}
	var list changes.List
	for _, doc := range c.docs {
		before, err := o.Store.Document(ctx, inv.Tenant, o.KindOf(doc.Kind), doc.Name)
		if err != nil && jig.CodeOf(err) != jig.CodeNotFound {
			return jig.Preview{}, err
		}
		list.Put(doc, before)
	}
	return list.Preview("Registers documents"), nil
}

func (o Options) put(ctx context.Context, inv jig.Invocation, in Files) (Result, error) {
	stored := false
	out, err := retype.Again(func() (Result, error) {
		out, err := o.putOnce(ctx, inv, in)
		stored = stored || len(out.Documents) > 0
		return out, err
	}, bundle.ReasonTypeChanged)
	if err != nil && stored {
		err = jig.AsError(err).AfterEffect()
	}
	return out, err
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
		doc, found := spec.Load(file.Path, []byte(file.Body))
		c.docs, problems = append(c.docs, doc), append(problems, found...)
		if doc.Kind == spec.KindBundle {
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

// putOnce checks all documents before it stores the first. Storing is idempotent, so an interrupted attempt can be repeated. On an error,
// the result lists the documents that were already stored.
func (o Options) putOnce(ctx context.Context, inv jig.Invocation, in Files) (Result, error) {
	c, err := o.check(ctx, inv.Tenant, in)
	if err != nil {
		return Result{}, err
	}
	out := Result{Warnings: c.warnings}
	for _, doc := range c.docs {
		stored := bundle.StoredDocument{DocumentVersion: bundle.DocumentVersion{Kind: o.KindOf(doc.Kind), Name: doc.Name, Version: doc.Version}, Body: doc.Body}
		var over []bundle.TypeBasis
		if doc.EntityType != nil {
			over = slices.DeleteFunc(slices.Clone(c.types), func(b bundle.TypeBasis) bool { return b.Type != doc.Name })
		}
		if err := o.Store.RegisterDocument(ctx, inv, stored, over...); err != nil {
			return out, fmt.Errorf("store %s: %w", doc.Name, err)
		}
		out.Documents = append(out.Documents, Registered{Kind: string(doc.Kind), Name: doc.Name, Version: doc.Version})
	}
	return out, nil
}

// types checks the entity types among the documents against existing entities.
func (o Options) types(ctx context.Context, tenant string, docs []spec.Document) ([]bundle.TypeBasis, error) {
	var types []entity.Type
	for _, doc := range docs {
		if doc.EntityType != nil {
			types = append(types, *doc.EntityType)
		}
	}
	return retype.Checker{Counts: o.Store.EntityCounts, TypeOf: o.TypeOf}.Check(ctx, tenant, "documents", types, nil)
}
