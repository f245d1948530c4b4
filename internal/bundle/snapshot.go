package bundle

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig"
)

// Key identifies a document regardless of its version, by the kind under which it is stored.
type Key struct{ Kind, Name string }

// String returns the kind and the name, separated by a slash.
func (k Key) String() string { return k.Kind + "/" + k.Name }

// Compare orders keys by kind and name.
func (k Key) Compare(other Key) int {
	return cmp.Or(strings.Compare(k.Kind, other.Kind), strings.Compare(k.Name, other.Name))
}

// Key returns the document's kind and name.
func (d DocumentVersion) Key() Key { return Key{d.Kind, d.Name} }

// CurrentVersion is the current version of a document and the bundle that made it current; Bundle is empty for the tenant's own version.
type CurrentVersion struct {
	DocumentVersion
	Bundle string `json:"bundle"`
}

// Snapshot is the state of a tenant before its documents change: its bundles, and the current versions of the documents that will change.
type Snapshot struct {
	// Name names the bundle that changes. It is empty if the tenant changes documents of its own. Before is the bundle's installed version, or nil
	// if it is not installed.
	Name   string
	Before *Bundle
	// Others are the tenant's other bundles, sorted by name.
	Others []Bundle
	// Current holds the tenant's current versions.
	Current map[Key]CurrentVersion
	// Shared holds the current versions of all tenants, which the tenant sees as long as it has none of its own.
	Shared map[Key]DocumentVersion
}

// Seen returns the version of a document that the tenant sees; false if there is none.
func (s *Snapshot) Seen(key Key) (DocumentVersion, bool) {
	if have, there := s.Current[key]; there {
		return have.DocumentVersion, true
	}
	shared, there := s.Shared[key]
	return shared, there
}

// State names everything in the snapshot that decides what a change does. It is the precondition of previews: equal states mean that the same
// change has the same effect.
func (s *Snapshot) State() (string, error) {
	type claim struct{ Bundle, Kind, Name, Version string }
	var all struct {
		Before  string
		Current []CurrentVersion
		Shared  []DocumentVersion
		Claims  []claim
	}
	all.Current = slices.SortedFunc(maps.Values(s.Current), func(a, b CurrentVersion) int { return a.Key().Compare(b.Key()) })
	all.Shared = slices.SortedFunc(maps.Values(s.Shared), func(a, b DocumentVersion) int { return a.Key().Compare(b.Key()) })
	for _, other := range s.Others {
		for _, d := range other.Documents {
			if _, there := s.Current[d.Key()]; there {
				all.Claims = append(all.Claims, claim{other.Name, d.Kind, d.Name, d.Version})
			}
		}
	}
	what := "the current versions of these documents"
	if s.Name != "" {
		what = "a tenant without the bundle " + s.Name
	}
	if s.Before != nil {
		all.Before = s.Before.Hash
		what = "the bundle " + s.Name + " " + s.Before.Version + " and its current documents"
	}
	b, err := json.Marshal(all)
	if err != nil {
		return "", jig.Errorf(jig.CodeInternal, "the state of a tenant's documents cannot be encoded: %w", err)
	}
	sum := sha256.Sum256(b)
	return what + " (state " + hex.EncodeToString(sum[:]) + ")", nil
}

// checkShown returns CONFLICT if people were shown a change of another state. An empty state means that nobody was shown one.
func (s *Snapshot) checkShown(shown string) error {
	if shown == "" {
		return nil
	}
	now, err := s.State()
	if err != nil || now == shown {
		return err
	}
	return jig.Errorf(jig.CodeConflict, "people approved a change of %s, and now it is %s", shown, now).WithReason(ReasonPrecondition).WithHint("call again")
}

// installedVersion returns the version of a document that the installed bundle brought; "" if it has no such document.
func (s *Snapshot) installedVersion(key Key) string {
	if s.Before == nil {
		return ""
	}
	return s.Before.versionOf(key)
}

// versionOf returns the version of a document that the bundle has; "" if it has no such document.
func (b Bundle) versionOf(key Key) string {
	for _, d := range b.Documents {
		if d.Key() == key {
			return d.Version
		}
	}
	return ""
}

// successor returns the version of a document that another bundle has, and that bundle; false if there is none.
func (s *Snapshot) successor(key Key) (CurrentVersion, bool) {
	for _, o := range s.Others {
		if v := o.versionOf(key); v != "" {
			return CurrentVersion{DocumentVersion: DocumentVersion{Kind: key.Kind, Name: key.Name, Version: v}, Bundle: o.Name}, true
		}
	}
	return CurrentVersion{}, false
}

// requiring lists the other bundles that require the named one.
func (s *Snapshot) requiring(name string) []string {
	var list []string
	for _, o := range s.Others {
		if slices.Contains(o.Requires, name) {
			list = append(list, o.Name)
		}
	}
	return list
}
