package store

import (
	"cmp"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/bundle"
)

// documentKey identifies a document regardless of its version.
type documentKey struct{ kind, name string }

func keyOf(d bundle.DocumentVersion) documentKey { return documentKey{d.Kind, d.Name} }

func (k documentKey) String() string { return k.kind + "/" + k.name }

func (k documentKey) compare(other documentKey) int {
	return cmp.Or(strings.Compare(k.kind, other.kind), strings.Compare(k.name, other.name))
}

// heldDocument is the current version of a document and the bundle that installed it; Bundle is empty for the tenant's own version.
type heldDocument struct{ Kind, Name, Version, Bundle string }

func (h heldDocument) document() bundle.DocumentVersion {
	return bundle.DocumentVersion{Kind: h.Kind, Name: h.Name, Version: h.Version}
}

// shelf holds a tenant's bundles and, for one of them, the current versions of its documents.
type shelf struct {
	name string
	// before is the installed bundle of that name; nil when no such bundle is installed.
	before *bundle.Bundle
	// others are the tenant's other bundles, sorted by name.
	others []bundle.Bundle
	// current holds the current versions of the documents that the bundle has or will get.
	current map[documentKey]heldDocument
}

// bundlePlan lists the changes to documents when a bundle is installed or removed.
type bundlePlan struct {
	// put lists the documents that become current and belong to the bundle, retired the versions that stop being current, and given the
	// documents that become current and belong to another bundle.
	put     []bundle.StoredDocument
	retired []bundle.DocumentVersion
	given   []heldDocument
	// removed lists the retired versions whose documents have no current version any more.
	removed []bundle.DocumentVersion
	// before holds the versions that were current before the change.
	before map[documentKey]heldDocument
}

func (s *shelf) version() string {
	if s.before == nil {
		return ""
	}
	return s.before.Version
}

// had returns the version of a document that the installed bundle brought; "" when it has no such document.
func (s *shelf) had(key documentKey) string {
	if s.before == nil {
		return ""
	}
	return versionIn(*s.before, key)
}

func versionIn(b bundle.Bundle, key documentKey) string {
	for _, d := range b.Documents {
		if keyOf(d) == key {
			return d.Version
		}
	}
	return ""
}

// replaced lists the documents of the installed bundle for which the tenant has put its own version, which installing b would overwrite.
func (s *shelf) replaced(b bundle.Install) []string {
	var list []string
	for _, d := range b.Documents {
		key := keyOf(d.DocumentVersion)
		have, there := s.current[key]
		had := s.had(key)
		if there && have.Bundle == "" && had != "" && have.Version != had && have.Version != d.Version {
			list = append(list, key.String())
		}
	}
	return list
}

// taken lists the documents of b that exist in another version and belong to somebody else, each with its owner.
func (s *shelf) taken(b bundle.Install) []string {
	var list []string
	for _, d := range b.Documents {
		key := keyOf(d.DocumentVersion)
		have, there := s.current[key]
		if there && have.Version == d.Version {
			continue
		}
		other := slices.IndexFunc(s.others, func(o bundle.Bundle) bool {
			v := versionIn(o, key)
			return v != "" && v != d.Version
		})
		switch {
		case other >= 0:
			list = append(list, key.String()+" (of the bundle "+s.others[other].Name+")")
		case there && have.Bundle == "" && s.had(key) == "":
			list = append(list, key.String()+" (the tenant's own)")
		}
	}
	return list
}

// requiring lists the other bundles that require the named one.
func (s *shelf) requiring(name string) []string {
	var list []string
	for _, o := range s.others {
		if slices.Contains(o.Requires, name) {
			list = append(list, o.Name)
		}
	}
	return list
}

// refuse returns why a bundle cannot be installed; nil when it can.
func (s *shelf) refuse(b bundle.Install, replaced []string) error {
	have := ""
	if s.before != nil {
		have = s.before.Hash
	}
	var missing []string
	for _, name := range b.Requires {
		if !slices.ContainsFunc(s.others, func(o bundle.Bundle) bool { return o.Name == name }) {
			missing = append(missing, name)
		}
	}
	taken := s.taken(b)
	switch {
	case have != b.Over:
		return jig.Errorf(jig.CodeConflict, "the bundle %q was changed by somebody else at the same time", b.Name).
			WithReason(bundle.ReasonChanged).WithHint("try again")
	case len(missing) > 0:
		return jig.Errorf(jig.CodeInvalidInput, "the bundle %q requires bundles that are not installed: %s", b.Name, strings.Join(missing, ", ")).
			WithField("requires").WithReason(jig.ReasonBundleNotInstalled).WithHint("install them first")
	case len(taken) > 0:
		return jig.Errorf(jig.CodeConflict, "documents of the bundle %q already exist and belong to others: %s", b.Name, strings.Join(taken, ", ")).
			WithField("documents").WithReason("document_taken").WithHint("give the bundle's documents other names")
	case len(replaced) > 0 && !b.Replace:
		return jig.Errorf(jig.CodeConflict, "the tenant has its own versions of documents of the bundle %q: %s", b.Name, strings.Join(replaced, ", ")).
			WithField("replace").WithReason("document_changed").WithHint("set replace: true to put the bundle's in their place (jig bundle install --replace)")
	}
	return nil
}

// install plans the changes of documents for a bundle that was not refused.
func (s *shelf) install(b bundle.Install) *bundlePlan {
	var gone []bundle.DocumentVersion
	if s.before != nil {
		for _, d := range s.before.Documents {
			if !slices.ContainsFunc(b.Documents, func(n bundle.StoredDocument) bool { return keyOf(n.DocumentVersion) == keyOf(d) }) {
				gone = append(gone, d)
			}
		}
	}
	p := s.giveUp(gone)
	for _, d := range b.Documents {
		have, there := s.current[keyOf(d.DocumentVersion)]
		if there && have.Version == d.Version && have.Bundle != "" {
			continue // it already belongs to the bundle, or is shared with the bundle it belongs to
		}
		if there && have.Version != d.Version {
			p.retired = append(p.retired, have.document())
		}
		p.put = append(p.put, d)
	}
	return p
}

// giveUp plans what happens to documents that the bundle no longer has. A document that still belongs to the bundle passes to another
// bundle that also brought it. If no other bundle did, the document goes out of use.
func (s *shelf) giveUp(documents []bundle.DocumentVersion) *bundlePlan {
	p := &bundlePlan{before: s.current}
	for _, d := range documents {
		key := keyOf(d)
		have, there := s.current[key]
		if !there || have.Bundle != s.name {
			continue
		}
		heir := heldDocument{Kind: d.Kind, Name: d.Name}
		for _, o := range s.others {
			if heir.Version = versionIn(o, key); heir.Version != "" {
				heir.Bundle = o.Name
				break
			}
		}
		if heir.Version != have.Version {
			p.retired = append(p.retired, have.document())
		}
		if heir.Version == "" {
			p.removed = append(p.removed, have.document())
		} else {
			p.given = append(p.given, heir)
		}
	}
	return p
}

// audits returns the audit rows for the current versions that changed.
func (p *bundlePlan) audits(by jig.Invocation) []audit.Entry {
	var rows []audit.Entry
	change := func(d bundle.DocumentVersion) {
		have, there := p.before[keyOf(d)]
		switch {
		case !there:
			rows = append(rows, audited(by, audit.AuditDocument, subjectOf(d), ""))
		case have.Version != d.Version:
			rows = append(rows, audited(by, audit.AuditDocument, subjectOf(d), inPlaceOf+have.Version))
		}
	}
	for _, d := range p.removed {
		rows = append(rows, audited(by, audit.AuditDocument, subjectOf(d), "out of use"))
	}
	for _, d := range p.put {
		change(d.DocumentVersion)
	}
	for _, h := range p.given {
		change(h.document())
	}
	return rows
}

func subjectOf(d bundle.DocumentVersion) string { return d.Kind + "/" + d.Name + "@" + d.Version }
