package bundle

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/cache"
)

// Manifest is a document of kind bundle: the name of a bundle and what it requires. The manifest is at the top of the bundle's
// folder, and every document below that folder belongs to the bundle.
type Manifest struct {
	Name string `json:"name"`
	// Version is chosen by the author: MAJOR.MINOR.PATCH (semver.org).
	Version     string `json:"version"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// Requires names the bundles that must be installed before this one.
	Requires []string `json:"requires,omitempty"`
}

// Bundle is a bundle that is installed for a tenant.
type Bundle struct {
	Manifest
	// Hash covers the versions of the manifest and of the documents: equal hashes mean equal bundles.
	Hash string `json:"hash"`
	// Documents are the documents that the bundle installed, with the kinds under which they are stored, sorted by kind and name.
	Documents   []DocumentVersion `json:"documents"`
	InstalledAt time.Time         `json:"installed_at"`
	InstalledBy string            `json:"installed_by"`
}

// Install is a request to install a bundle for a tenant, in one transaction.
type Install struct {
	Manifest
	Hash      string
	Documents []StoredDocument
	// Over is the hash of the installed version that the new one was checked against; empty when none was installed. If another version is
	// installed by now, nothing changes and the error has the reason [ReasonChanged].
	Over string
	// Shown is the [Snapshot.State] that people were shown; empty if nobody was shown one. If it is another one by now, nothing changes and the
	// error has the reason [ReasonPrecondition].
	Shown string
	// Replace allows the installation to overwrite documents of the bundle that the tenant has changed since. Otherwise the installation is
	// refused and the changed documents stay.
	Replace bool
	// Types records the facts against which the bundle's entity types were checked. If one of them no longer holds, nothing changes and the
	// error has the reason [ReasonTypeChanged].
	Types []TypeBasis
}

// Reasons of a CONFLICT when something changed between a check and the transaction that relied on it. The caller may check again and retry.
const (
	// ReasonTypeChanged: the [TypeBasis] of a new version of an entity type no longer holds.
	ReasonTypeChanged = "type_changed"
	// ReasonChanged: the installed version of the bundle is not [Install.Over].
	ReasonChanged = "bundle_changed"
	// ReasonPrecondition: the documents are not in the state that people were shown. Repeating the call would not help them.
	ReasonPrecondition = "precondition"
)

// Register is a request to register documents of a tenant's own, in one transaction.
type Register struct {
	Documents []StoredDocument
	// Shown and Types are as in [Install].
	Shown string
	Types []TypeBasis
}

// TypeBasis records the facts against which a new version of an entity type was checked.
type TypeBasis struct {
	Type string
	// Version is the version that the tenant's entities fit; empty when there were none.
	Version string
	// Defaults are the values of required fields that the new version adds. Existing entities get them with the new version.
	Defaults map[string]json.RawMessage
}

// Installed says what an installation changed.
type Installed struct {
	Bundle Bundle
	// Before is the version that was installed before; empty when there was none.
	Before string
	// Changed is false when exactly this bundle was already installed.
	Changed bool
	// Removed are the documents of the previous version that the new one lacks. They are no longer in use.
	Removed []DocumentVersion
}

var (
	nameForm    = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,63}$`)
	versionForm = regexp.MustCompile(`^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(-[0-9A-Za-z.-]{1,64})?$`)
)

// Check returns an error if the name or the version of the manifest is malformed.
func (m Manifest) Check() error {
	if !nameForm.MatchString(m.Name) {
		return jig.Errorf(jig.CodeInvalidInput, "%q is not a bundle's name", m.Name).WithField("name").
			WithHint("use lower-case letters, digits, dots, dashes and underscores, e.g. dependency-review")
	}
	if !versionForm.MatchString(m.Version) {
		return jig.Errorf(jig.CodeInvalidInput, "%q is not a version", m.Version).WithField("version").WithHint("write MAJOR.MINOR.PATCH, e.g. 1.4.0")
	}
	return nil
}

// KindSpec is the kind under which compositions are stored, and what is called like them: prompts, tasks and thin tools. They share one space of
// names because they are called in the same way. Documents of any other kind are stored under that kind.
const KindSpec = "composition"

// StoredDocument is a document with its body, identified by the kind under which it is stored.
type StoredDocument struct {
	DocumentVersion
	Body []byte
}

// NamesOf returns the names of the documents that are stored under a kind.
func NamesOf(documents []DocumentVersion, kind string) []string {
	var names []string
	for _, d := range documents {
		if d.Kind == kind {
			names = append(names, d.Name)
		}
	}
	return names
}

// DocumentVersion identifies a version of a document.
type DocumentVersion struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Names lists the bundles that tenants have installed. It caches each list for a second. It is safe for concurrent use.
type Names struct {
	read  func(ctx context.Context, tenant string) ([]string, error)
	known *cache.Cache[string, []string]
}

// NewNames returns a Names that calls read for the bundles of a tenant.
func NewNames(read func(ctx context.Context, tenant string) ([]string, error)) *Names {
	return &Names{read: read, known: cache.OfTenants[[]string]()}
}

// BundleNames lists a tenant's bundles. The list is shared; callers must not modify it.
func (n *Names) BundleNames(ctx context.Context, tenant string) ([]string, error) {
	return n.known.Get(tenant, func([]string, bool) ([]string, error) { return n.read(ctx, tenant) })
}

// Forget makes a change of a tenant's bundles visible at once.
func (n *Names) Forget(tenant string) { n.known.Forget(tenant) }

// Visible returns the Go tools that are visible to a tenant with the given bundles installed.
func Visible(all []jig.Tool, tenant string, installed []string) []jig.Tool {
	return slices.DeleteFunc(slices.Clone(all), func(t jig.Tool) bool {
		return len(t.Tenants) > 0 && !slices.Contains(t.Tenants, tenant) || t.Bundle != "" && !slices.Contains(installed, t.Bundle)
	})
}
