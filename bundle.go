package jig

import (
	"encoding/json"
	"regexp"
	"time"
)

// BundleManifest is a document of kind bundle: what a bundle is called and what it needs. It stands at the top of the bundle's
// folder; every document below that folder belongs to the bundle.
type BundleManifest struct {
	Name string `json:"name"`
	// Version is the author's, MAJOR.MINOR.PATCH (semver.org).
	Version     string `json:"version"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// Requires names the bundles that must be installed before this one.
	Requires []string `json:"requires,omitempty"`
}

// Bundle is a bundle that a tenant has.
type Bundle struct {
	BundleManifest
	// Hash covers the versions of the manifest and the documents: the same hash is the same bundle.
	Hash string `json:"hash"`
	// Documents are those that it brought, under the kinds by which they are stored, sorted by kind and name.
	Documents   []DocumentVersion `json:"documents"`
	InstalledAt time.Time         `json:"installed_at"`
	InstalledBy string            `json:"installed_by"`
}

// BundleInstall asks for a bundle to be made a tenant's, in one transaction.
type BundleInstall struct {
	BundleManifest
	Hash      string
	Documents []StoredDocument
	// Over is the hash of the installed version that the new one was checked against; empty when none was. With another one in
	// place by now, nothing changes.
	Over string
	// Replace lets documents of the bundle that the tenant has changed since be replaced; they are kept as they are otherwise, and
	// the installation is refused.
	Replace bool
	// Types says what its entity types were checked against; when that does not hold by now, nothing changes.
	Types []TypeBasis
}

// Reasons of a CONFLICT when something changed between a check and the transaction that it was for: checked anew, it may pass.
const (
	// ReasonTypeChanged: what new versions of entity types were checked against does not hold any more.
	ReasonTypeChanged = "type_changed"
	// ReasonBundleChanged: another version of the bundle than BundleInstall.Over is installed.
	ReasonBundleChanged = "bundle_changed"
)

// TypeBasis is what a new version of an entity type was checked against.
type TypeBasis struct {
	Type string
	// Version is the one that the tenant's entities fit; empty when there were none.
	Version string
	// Defaults are the values of required fields that the new version adds: entities get them with it.
	Defaults map[string]json.RawMessage
}

// StoredDocument is a document with its body, under the kind by which it is stored.
type StoredDocument struct {
	DocumentVersion
	Body []byte
}

// BundleInstalled says what an installation changed.
type BundleInstalled struct {
	Bundle Bundle
	// Before is the version that was there; empty for none.
	Before string
	// Changed is false when the tenant had just this bundle already.
	Changed bool
	// Removed are documents of the version before that the new one does not have: they are out of use.
	Removed []DocumentVersion
}

var (
	bundleNameForm    = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,63}$`)
	bundleVersionForm = regexp.MustCompile(`^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(-[0-9A-Za-z.-]{1,64})?$`)
)

// Check refuses a manifest whose name or version is not written as it must be.
func (m BundleManifest) Check() error {
	if !bundleNameForm.MatchString(m.Name) {
		return Errorf(CodeInvalidInput, "%q is not a bundle's name", m.Name).WithField("name").
			WithHint("use lower-case letters, digits, dots, dashes and underscores, e.g. dependency-review")
	}
	if !bundleVersionForm.MatchString(m.Version) {
		return Errorf(CodeInvalidInput, "%q is not a version", m.Version).WithField("version").WithHint("write MAJOR.MINOR.PATCH, e.g. 1.4.0")
	}
	return nil
}
