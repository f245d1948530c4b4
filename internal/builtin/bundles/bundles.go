// Package bundles contains the tools that let an operator install, list and remove the bundles of a tenant. It must not know how bundles
// are stored.
//
// A bundle is a manifest and the documents that belong to it. It is installed and removed as a unit, and identified by the hash of its whole
// content: installing the same bundle again changes nothing. The documents are checked against the catalog that the tenant will have afterwards, without those
// of the version that is replaced. A document that the tenant has changed stays as it is unless the call says replace. Entities are kept when
// their type is removed.
//
// Begin with [Options.Install]. [Options.InstallShipped] installs the bundles that ship with a worker when it starts.
package bundles

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/changes"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/loaded"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// The names of the tools.
const (
	InstallTool = toolname.BundleInstall
	RemoveTool  = toolname.BundleRemove
	ListTool    = toolname.BundleList
)

// Store stores bundles.
type Store interface {
	// InstallBundle installs a bundle for the tenant in one transaction. It changes nothing if a bundle with the same hash is installed.
	InstallBundle(ctx context.Context, by jig.Invocation, b bundle.Install) (bundle.Installed, error)
	// RemoveBundle takes a bundle's documents out of use, and returns it with the documents that no longer have a current version. It returns
	// NOT_FOUND if the bundle is not installed, and CONFLICT if the tenant's documents are not in the state shown, unless that is empty.
	RemoveBundle(ctx context.Context, by jig.Invocation, name, shown string) (gone bundle.Bundle, removed []bundle.DocumentVersion, err error)
	// DocumentSnapshot returns what a change of the named bundle and of the given documents depends on.
	DocumentSnapshot(ctx context.Context, tenant, name string, documents []bundle.Key) (*bundle.Snapshot, error)
	// Bundles returns the bundles installed for a tenant, sorted by name.
	Bundles(ctx context.Context, tenant string) ([]bundle.Bundle, error)
	// EntityCounts returns the number of a tenant's entities by type.
	EntityCounts(ctx context.Context, tenant string) ([]entity.Count, error)
	changes.Documents
}

// Options are the settings of the tools; all but Loaded are required.
type Options struct {
	Store Store
	// Loaded reads documents; nil keeps none of them for the next time.
	Loaded *loaded.Documents
	// Known returns the tenant's catalog, against which documents are checked. It includes the Go tools that belong to the bundle.
	Known func(ctx context.Context, tenant, bundle string) (spec.Catalog, error)
	// Check runs further checks on a document, given the tenant's tools.
	Check func(ctx context.Context, tenant string, doc spec.Document, tools []jig.Tool) error
	// TypeOf returns the entity type against which a tenant's entities of that name were last checked; false if it is not known.
	TypeOf func(ctx context.Context, tenant, name string) (entity.Type, bool, error)
}

// File is a document as the author wrote it.
type File struct {
	Path string `json:"path" jsonschema:"the file's name in the bundle's folder, e.g. bundle.yaml" minLength:"1" maxLength:"512" path:"true"`
	Body string `json:"body" jsonschema:"the whole text of the document"                           minLength:"1"`
}

// Install is the input of bundle.install.
type Install struct {
	Files   []File `json:"files"             jsonschema:"the manifest bundle.yaml and every document of the bundle"                          minItems:"1" maxItems:"500"`
	Replace bool   `json:"replace,omitempty" jsonschema:"also replace documents that the tenant has changed, and allow a lower version"`
}

// Installed is the output of bundle.install.
type Installed struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Hash    string `json:"hash"`
	// Changed is false if exactly this bundle was already installed.
	Changed bool `json:"changed"`
	// Before is the version that was installed before; omitted if there was none.
	Before    string                   `json:"before,omitempty"`
	Documents []bundle.DocumentVersion `json:"documents"`
	// Removed are the documents of the previous version that the new one lacks.
	Removed []bundle.DocumentVersion `json:"removed,omitempty"`
	// Warnings are advice that did not prevent the installation.
	Warnings []string `json:"warnings,omitempty"`
}

// Summary implements tools.Summarizer.
func (i Installed) Summary() string {
	switch {
	case !i.Changed:
		return fmt.Sprintf("%s %s is installed already", i.Name, i.Version)
	case i.Before != "":
		return fmt.Sprintf("replaced %[3]s of %[1]s with %[2]s: %[4]s", i.Name, i.Version, i.Before, documents(len(i.Documents)))
	}
	return fmt.Sprintf("installed %s %s: %s", i.Name, i.Version, documents(len(i.Documents)))
}

func documents(n int) string {
	if n == 1 {
		return "1 document"
	}
	return fmt.Sprintf("%d documents", n)
}

// Named is the input of bundle.remove.
type Named struct {
	Name string `json:"name" jsonschema:"the bundle's name" minLength:"1" maxLength:"64"`
}

// Removed is the output of bundle.remove.
type Removed struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Documents are the documents that belonged to the bundle.
	Documents []bundle.DocumentVersion `json:"documents"`
	// Entities is the number of entities of its types that are kept but out of use.
	Entities int64 `json:"entities"`
}

// Summary implements tools.Summarizer.
func (r Removed) Summary() string {
	text := "removed " + strings.TrimSpace(r.Name+" "+r.Version)
	switch r.Entities {
	case 0:
		return text
	case 1:
		return text + "; 1 entity is kept for when it is installed again"
	}
	return fmt.Sprintf("%s; %d entities are kept for when it is installed again", text, r.Entities)
}

// Nothing is the input of bundle.list.
type Nothing struct{}

// Bundle is a bundle that is installed for the tenant.
type Bundle struct {
	Name        string                   `json:"name"`
	Version     string                   `json:"version"`
	Hash        string                   `json:"hash"`
	Title       string                   `json:"title,omitempty"`
	Description string                   `json:"description,omitempty"`
	Requires    []string                 `json:"requires,omitempty"`
	Documents   []bundle.DocumentVersion `json:"documents"`
	InstalledAt time.Time                `json:"installed_at"`
	InstalledBy string                   `json:"installed_by"`
}

// List is the output of bundle.list.
type List struct {
	Bundles []Bundle `json:"bundles"`
}

// Summary implements tools.Summarizer.
func (l List) Summary() string {
	if len(l.Bundles) == 0 {
		return "no bundle is installed"
	}
	names := make([]string, len(l.Bundles))
	for i, b := range l.Bundles {
		names[i] = b.Name + " " + b.Version
	}
	return "installed: " + strings.Join(names, ", ")
}

// Tools returns the tools of this package.
func Tools(o Options) []tools.Tool {
	const timeout = 30 * time.Second
	operator := []string{"operator"}
	return []tools.Tool{
		tools.New(jig.Tool{
			Name: InstallTool,
			Description: "Installs a bundle (entity types, agents, tools, prompts, skills and policies that belong together) for the tenant, or another version of it, " +
				"after checking all of it. Either everything is installed or nothing changes. Returns the version, the documents and what was removed.",
			Permission: jig.PermissionWrite, Risk: jig.RiskHigh, Approval: jig.ApprovalAlwaysAsk, Idempotent: true, Timeout: timeout, Tags: operator,
			Labels: &jig.Labels{}, ConcurrencyKey: `'catalog'`,
		}, o.install, tools.WithPreview(o.previewInstall)),
		tools.New(jig.Tool{
			Name: RemoveTool,
			Description: "Takes all documents of a bundle out of use for the tenant: its types, agents, tools and policies are no longer available. " +
				"Entities are kept, and are available again when the bundle is installed again. Returns what was removed.",
			Permission: jig.PermissionDestructive, Risk: jig.RiskHigh, Approval: jig.ApprovalAlwaysAsk, Idempotent: true, Timeout: timeout, Tags: operator,
			Labels: &jig.Labels{}, ConcurrencyKey: `'catalog'`,
		}, o.remove, tools.WithPreview(o.previewRemove)),
		tools.New(jig.Tool{
			Name:        ListTool,
			Description: "Lists the bundles that the tenant has, with their versions, their documents, and who installed them when.",
			Permission:  jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true, Timeout: timeout, Tags: operator,
			Labels: &jig.Labels{},
		}, o.list),
	}
}

func (o Options) install(ctx context.Context, inv jig.Invocation, in Install) (Installed, error) {
	bundle, problems := o.read(in)
	return o.Install(ctx, inv, bundle, problems, in.Replace)
}

// read reads the documents of a bundle.
func (o Options) read(in Install) (spec.Bundle, spec.Problems) {
	var docs []spec.Document
	var problems spec.Problems
	for _, file := range in.Files {
		doc, found := o.Loaded.Load(file.Path, []byte(file.Body))
		docs, problems = append(docs, doc), append(problems, found...)
	}
	bundle, found := spec.BundleOf(docs)
	return bundle, append(problems, found...)
}

// remove takes a bundle out of use. If an earlier attempt removed it but could not report so, a later attempt finds it gone and succeeds.
func (o Options) remove(ctx context.Context, inv jig.Invocation, in Named) (Removed, error) {
	counts, err := o.Store.EntityCounts(ctx, inv.Tenant)
	if err != nil {
		return Removed{}, err
	}
	gone, removed, err := o.Store.RemoveBundle(ctx, inv, in.Name, inv.Precondition)
	if jig.CodeOf(err) == jig.CodeNotFound && inv.Attempt > 1 {
		return Removed{Name: in.Name}, nil
	}
	if err != nil {
		return Removed{}, err
	}
	return Removed{
		Name: gone.Name, Version: gone.Version, Documents: documentsOf(gone.Documents), Entities: changes.Entities(removed, counts),
	}, nil
}

func (o Options) list(ctx context.Context, inv jig.Invocation, _ Nothing) (List, error) {
	installed, err := o.Store.Bundles(ctx, inv.Tenant)
	if err != nil {
		return List{}, err
	}
	out := List{Bundles: make([]Bundle, len(installed))}
	for i, b := range installed {
		out.Bundles[i] = Bundle{
			Name: b.Name, Version: b.Version, Hash: b.Hash, Title: b.Title, Description: b.Description, Requires: b.Requires,
			Documents: documentsOf(b.Documents), InstalledAt: b.InstalledAt.UTC(), InstalledBy: b.InstalledBy,
		}
	}
	return out, nil
}

// documentsOf returns a list that is not nil, so that JSON has an empty list and not null.
func documentsOf(versions []bundle.DocumentVersion) []bundle.DocumentVersion {
	return append([]bundle.DocumentVersion{}, versions...)
}
