package tenancy

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
)

// IsPerson reports whether a principal is a person: the tenant's document lists it in any way, even if only to disable it, or an identity provider
// names it, as [Login.Principal] does. The document cannot tell people from programs, so a program that it lists counts, too. All other principals
// are programs.
func (s Settings) IsPerson(id string) bool {
	if strings.Contains(id, loginSeparator) || s.IsDisabled(id) {
		return true
	}
	for known := range s.listed() {
		if known == id {
			return true
		}
	}
	return false
}

// OnlyPerson reports whether the tenant's document knows no person or program other than the principal, so that nobody else could decide. A principal
// that the document does not know is not the only one if groups of an identity provider may have members.
func (s Settings) OnlyPerson(id string) bool {
	known := s.Listed()
	if slices.Contains(known, id) {
		return len(known) == 1
	}
	return len(known) == 0 && len(s.LoginGroups) == 0
}

// Listed returns the people and programs that the tenant's document lists, sorted: under people, roles, owners, reconcilers or keys. An entry that
// only disables a principal lists nobody: to disable somebody whom the document does not know must not change who decides.
func (s Settings) Listed() []string {
	return slices.Compact(slices.Sorted(s.listed()))
}

// Reasons why a credential counts no longer; see [Settings.Ended].
const (
	// EndedDisabled: somebody in its lineage is disabled.
	EndedDisabled = "disabled"
	// EndedRemoved: somebody in its lineage was a person of the tenant and is no longer.
	EndedRemoved = "removed"
	// EndedPerson: somebody made it for a principal who has become a person since, whose name the maker must not use.
	EndedPerson = "person"
)

// Ended returns why a credential counts no longer, for the people in its lineage, or "" if it counts.
func (s Settings) Ended(line identity.Lineage) string {
	for _, l := range line {
		switch {
		case slices.ContainsFunc([]string{l.Principal, l.Maker, l.CreatedBy}, s.IsDisabled):
			return EndedDisabled
		case slices.ContainsFunc(l.Persons, func(id string) bool { return !s.IsPerson(id) }):
			return EndedRemoved
		case l.Maker != "" && l.Maker != jig.MakerOperator && s.IsPerson(l.Principal):
			return EndedPerson
		}
	}
	return ""
}

// Persons returns those of the principals of a credential who are people of the tenant.
func (s Settings) Persons(l identity.Link) []string {
	all := []string{l.Principal, l.Maker, l.CreatedBy}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(id string) bool { return id == "" || id == jig.MakerOperator || !s.IsPerson(id) })
}

// CheckNew returns an error if the name of a principal that is to get a credential resembles that of somebody whom the document lists. The error is
// CONFLICT with the field principal.
func (s Settings) CheckNew(principal string) error {
	for known := range s.listed() {
		if known == principal {
			return nil
		}
	}
	for known := range s.listed() {
		if identity.Resembles(known, principal) {
			return jig.Errorf(jig.CodeConflict, "the name looks like that of %q, whom the tenant's document lists", known).WithField("principal").
				WithHint("choose a name that nobody takes for it")
		}
	}
	return nil
}

// listed yields the principals of [Settings.Listed], some of them several times.
func (s Settings) listed() iter.Seq[string] {
	disabling := map[string]bool{}
	for _, p := range s.Directory.People {
		disabling[p.Principal] = p.onlyDisables()
	}
	return func(yield func(string) bool) {
		for _, p := range s.People {
			if !disabling[p.ID] && !yield(p.ID) {
				return
			}
		}
		for _, p := range s.Directory.People { // those whom only a key names
			if !disabling[p.Principal] && !yield(p.Principal) {
				return
			}
		}
		others := slices.Collect(maps.Values(s.Logins))
		if s.Owners != nil {
			others = append(others, s.Owners.Approvers.People...)
		}
		if s.Reconcilers != nil {
			others = append(others, s.Reconcilers.People...)
		}
		for _, id := range others {
			if !yield(id) {
				return
			}
		}
	}
}

// Directory lists whom and which keys a tenant's document knows.
type Directory struct {
	People []DirectoryPerson `json:"people" doc:"People and programs, including those that only a role names"`
	Groups []DirectoryGroup  `json:"groups"`
	Keys   []DirectoryKey    `json:"keys" doc:"Keys that sign for everybody, such as those of portals"`
}

// DirectoryPerson is a person or a program.
type DirectoryPerson struct {
	Principal   string           `json:"principal"`
	Disabled    bool             `json:"disabled" doc:"Servers and workers refuse everything that the principal asks for"`
	Groups      []string         `json:"groups"`
	Roles       []string         `json:"roles"`
	Permissions []string         `json:"permissions" doc:"Including the permissions of the person's roles; * means all"`
	Logins      []DirectoryLogin `json:"logins" doc:"How identity providers name the person"`
	Keys        []DirectoryKey   `json:"keys" doc:"Keys that sign the person's decisions"`
}

// DirectoryLogin is a person as an identity provider names it.
type DirectoryLogin struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
}

// onlyDisables reports whether an entry gives a principal nothing and is there only to disable it.
func (p DirectoryPerson) onlyDisables() bool {
	return p.Disabled && len(p.Groups)+len(p.Roles)+len(p.Permissions)+len(p.Logins)+len(p.Keys) == 0
}

// DirectoryGroup is a group of the tenant.
type DirectoryGroup struct {
	Name    string   `json:"name"`
	Members []string `json:"members" doc:"The members in the document; an identity provider may add others"`
	Roles   []string `json:"roles"`
}

// DirectoryKey is a key that verifies signatures. It has no end: it counts until it is disabled or the document lists it no more.
type DirectoryKey struct {
	ID        string `json:"id"`
	Algorithm string `json:"algorithm" enum:"ed25519,hmac-sha256,webauthn"`
	Disabled  bool   `json:"disabled" doc:"Signatures of the key are refused"`
}
