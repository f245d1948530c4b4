package bundle

import (
	"slices"
	"strings"

	"github.com/jig-run/jig"
)

// Plan lists what a change does to a tenant's documents. The zero Plan changes nothing.
type Plan struct {
	// Put holds the documents that become current and belong to the bundle or tenant that makes the change. Retired holds the versions that stop
	// being current. Inherited holds the documents that become or stay current and belong to another bundle from now on.
	Put       []StoredDocument
	Retired   []DocumentVersion
	Inherited []CurrentVersion
	// Removed are the retired versions whose documents have no current version of the tenant any more.
	Removed []DocumentVersion
	// Kept are documents that the bundle no longer has, but that others brought, so they stay as they are.
	Kept []CurrentVersion
}

// Install plans the installation of a bundle. done reports that there is nothing to do: exactly this bundle is installed, and b.Replace is
// not set or the tenant has replaced none of its documents. The errors are those of an installation.
func (s *Snapshot) Install(b Install) (p Plan, done bool, err error) {
	replaced := s.replaced(b)
	if s.Before != nil && s.Before.Hash == b.Hash && (!b.Replace || len(replaced) == 0) {
		return Plan{}, true, nil
	}
	if err := s.checkShown(b.Shown); err != nil {
		return Plan{}, false, err
	}
	if err := s.refuse(b, replaced); err != nil {
		return Plan{}, false, err
	}
	var gone []DocumentVersion
	if s.Before != nil {
		for _, d := range s.Before.Documents {
			if !slices.ContainsFunc(b.Documents, func(n StoredDocument) bool { return n.Key() == d.Key() }) {
				gone = append(gone, d)
			}
		}
	}
	p = s.drop(gone)
	for _, d := range b.Documents {
		have, there := s.Current[d.Key()]
		if there && have.Version == d.Version && have.Bundle != "" {
			continue // it already belongs to the bundle, or is shared with the bundle it belongs to
		}
		if there && have.Version != d.Version {
			p.Retired = append(p.Retired, have.DocumentVersion)
		}
		p.Put = append(p.Put, d)
	}
	return p, false, nil
}

// Remove plans the removal of the bundle. shown is the state that people were shown; empty if nobody was. The error is NOT_FOUND if the
// bundle is not installed, and CONFLICT if another one requires it.
func (s *Snapshot) Remove(shown string) (Plan, error) {
	if s.Before == nil {
		return Plan{}, jig.Errorf(jig.CodeNotFound, "the bundle %q is not installed", s.Name).WithField("name")
	}
	if err := s.checkShown(shown); err != nil {
		return Plan{}, err
	}
	if needing := s.requiring(s.Name); len(needing) > 0 {
		return Plan{}, jig.Errorf(jig.CodeConflict, "the bundle %q is required by %s", s.Name, strings.Join(needing, ", ")).WithField("name").
			WithReason("bundle_required").WithHint("remove those first")
	}
	return s.drop(s.Before.Documents), nil
}

// Register plans the registration of the tenant's own documents. done reports that each of them is the tenant's own and current already.
func (s *Snapshot) Register(documents []StoredDocument, shown string) (p Plan, done bool, err error) {
	done = true
	for _, d := range documents {
		have, there := s.Current[d.Key()]
		if there && have.Version == d.Version && have.Bundle == "" {
			continue
		}
		done = false
		if there && have.Version != d.Version {
			p.Retired = append(p.Retired, have.DocumentVersion)
		}
		p.Put = append(p.Put, d)
	}
	if done {
		return Plan{}, true, nil
	}
	return p, false, s.checkShown(shown)
}

// Withdraw plans the removal of the tenant's own documents. A document that a bundle has, too, goes back to the bundle's version. again
// reports that an earlier attempt may have removed them: if none of them is the tenant's own, nothing happens. Otherwise the error is
// NOT_FOUND if the tenant has no such document, and CONFLICT if it belongs to a bundle.
func (s *Snapshot) Withdraw(documents []Key, shown string, again bool) (p Plan, err error) {
	own := func(key Key) bool {
		have, there := s.Current[key]
		return there && have.Bundle == ""
	}
	if again && !slices.ContainsFunc(documents, own) {
		return Plan{}, nil
	}
	if err := s.checkShown(shown); err != nil {
		return Plan{}, err
	}
	for _, key := range documents {
		have, there := s.Current[key]
		if !there {
			return Plan{}, s.absent(key)
		}
		if have.Bundle != "" {
			return Plan{}, jig.Errorf(jig.CodeConflict, "%s belongs to the bundle %s", key, have.Bundle).WithField("/documents").
				WithReason("document_of_bundle").WithHint("remove the bundle with bundle.remove, or register a version of your own in its place")
		}
		next, has := s.successor(key)
		switch {
		case !has:
			p.Removed, p.Retired = append(p.Removed, have.DocumentVersion), append(p.Retired, have.DocumentVersion)
		case next.Version != have.Version:
			p.Inherited, p.Retired = append(p.Inherited, next), append(p.Retired, have.DocumentVersion)
		default:
			p.Inherited = append(p.Inherited, next)
		}
	}
	return p, nil
}

// absent returns the error of a change that needs a document which the tenant does not have.
func (s *Snapshot) absent(key Key) error {
	e := jig.Errorf(jig.CodeNotFound, "the tenant has no document %s", key).WithField("/documents")
	if _, shared := s.Shared[key]; shared {
		return e.WithHint("the document belongs to all tenants; only the installation's operator can remove it")
	}
	return e
}

// replaced lists the documents of the installed bundle for which the tenant has put its own version, which installing b would overwrite.
func (s *Snapshot) replaced(b Install) []string {
	var list []string
	for _, d := range b.Documents {
		have, there := s.Current[d.Key()]
		installed := s.installedVersion(d.Key())
		if there && have.Bundle == "" && installed != "" && have.Version != installed && have.Version != d.Version {
			list = append(list, d.Key().String())
		}
	}
	return list
}

// taken lists the documents of b that exist in another version and belong to somebody else, each with its owner.
func (s *Snapshot) taken(b Install) []string {
	var list []string
	for _, d := range b.Documents {
		key := d.Key()
		have, there := s.Current[key]
		if there && have.Version == d.Version {
			continue
		}
		other := slices.IndexFunc(s.Others, func(o Bundle) bool {
			v := o.versionOf(key)
			return v != "" && v != d.Version
		})
		switch {
		case other >= 0:
			list = append(list, key.String()+" (of the bundle "+s.Others[other].Name+")")
		case there && have.Bundle == "" && s.installedVersion(key) == "":
			list = append(list, key.String()+" (the tenant's own)")
		}
	}
	return list
}

// refuse returns why a bundle cannot be installed; nil if it can.
func (s *Snapshot) refuse(b Install, replaced []string) error {
	have := ""
	if s.Before != nil {
		have = s.Before.Hash
	}
	var missing []string
	for _, name := range b.Requires {
		if !slices.ContainsFunc(s.Others, func(o Bundle) bool { return o.Name == name }) {
			missing = append(missing, name)
		}
	}
	taken := s.taken(b)
	switch {
	case have != b.Over:
		return jig.Errorf(jig.CodeConflict, "the bundle %q was changed by somebody else at the same time", b.Name).
			WithReason(ReasonChanged).WithHint("try again")
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

// drop plans what happens to documents that the bundle no longer has. A document that still belongs to the bundle passes to another
// bundle that also brought it. If no other bundle did, the document goes out of use.
func (s *Snapshot) drop(documents []DocumentVersion) (p Plan) {
	for _, d := range documents {
		have, there := s.Current[d.Key()]
		if !there {
			continue
		}
		if have.Bundle != s.Name {
			p.Kept = append(p.Kept, have)
			continue
		}
		next, has := s.successor(d.Key())
		if next.Version != have.Version {
			p.Retired = append(p.Retired, have.DocumentVersion)
		}
		if has {
			p.Inherited = append(p.Inherited, next)
		} else {
			p.Removed = append(p.Removed, have.DocumentVersion)
		}
	}
	return p
}
