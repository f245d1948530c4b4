package tenancy

import (
	"slices"

	"github.com/jig-run/jig"
)

// Permissions for the operations of the HTTP API. A role may also have any other permission, such as one that a tool requires.
const (
	// PermissionRead allows reading everything that the tenant has.
	PermissionRead = "api.read"
	// PermissionRun allows starting, canceling and writing to sessions, and calling tools.
	PermissionRun = "api.run"
	// PermissionDecide allows deciding about calls that wait for approval, as far as policies allow it.
	PermissionDecide = "api.decide"
	// PermissionAuthor allows registering and removing documents.
	PermissionAuthor = "api.author"
	// PermissionOperate allows pausing, resuming and retrying, and managing schedules and grants.
	PermissionOperate = "api.operate"
	// PermissionManage allows managing everybody's credentials, and disabling people.
	PermissionManage = "api.manage"
)

// Role gives permissions to people and to the members of groups.
type Role struct {
	Name        string
	Permissions []string
	People      []string
	Groups      []string
}

// ShippedRoles lists the roles that every tenant has, and which nobody has until the tenant's document says so.
func ShippedRoles() []Role {
	return []Role{
		{Name: "reader", Permissions: []string{PermissionRead}},
		{Name: "reviewer", Permissions: []string{PermissionRead, PermissionDecide}},
		{Name: "author", Permissions: []string{PermissionRead, PermissionRun, PermissionAuthor}},
		{Name: "operator", Permissions: []string{PermissionRead, PermissionRun, PermissionOperate}},
		{Name: "owner", Permissions: []string{PermissionRead, PermissionRun, PermissionDecide, PermissionAuthor, PermissionOperate, PermissionManage}},
	}
}

// ShippedRole returns the permissions of a shipped role.
func ShippedRole(name string) (permissions []string, ok bool) {
	for _, r := range ShippedRoles() {
		if r.Name == name {
			return r.Permissions, true
		}
	}
	return nil, false
}

// has reports whether a principal has the role.
func (r Role) has(p jig.Principal) bool {
	return slices.Contains(r.People, p.ID) || slices.ContainsFunc(r.Groups, func(g string) bool { return slices.Contains(p.Groups, g) })
}

// WithRoles returns a principal with the permissions of its roles in addition to its own.
func WithRoles(p jig.Principal, roles []Role) jig.Principal {
	own := slices.Clone(p.Permissions)
	for _, r := range roles {
		if r.has(p) {
			for _, permission := range r.Permissions {
				if !slices.Contains(own, permission) {
					own = append(own, permission)
				}
			}
		}
	}
	p.Permissions = own
	return p
}

// RolesOf returns the names of a principal's roles, in the order of the document.
func (s Settings) RolesOf(p jig.Principal) []string {
	var names []string
	for _, r := range s.Roles {
		if r.has(p) && !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return names
}

// Login is how an identity provider names a person: the issuer and the subject of its tokens.
type Login struct{ Issuer, Subject string }

// Principal returns the id of the principal of a login that the tenant's document gives to nobody. An issuer has no "#", so different logins
// have different ids.
func (l Login) Principal() string { return l.Issuer + loginSeparator + l.Subject }

// loginSeparator stands between the issuer and the subject of a login's principal. No other principal contains it.
const loginSeparator = "#"

// LoginGroup makes a group of an identity provider count as a group of the tenant.
type LoginGroup struct {
	Issuer string
	// Value is the value in the groups claim of the issuer's tokens.
	Value string
	// Group is the tenant's group.
	Group string
}

// SignedIn returns the principal of a login whose token has the given groups: the person to whom the document gives the login, or else a
// principal that is named after the login. Of the token's groups, those count that the document maps. The principal has nothing else that the
// document gives it; see [Settings.Effective].
func (s Settings) SignedIn(l Login, groups []string) jig.Principal {
	p := jig.Principal{ID: l.Principal()}
	if id, ok := s.Logins[l]; ok {
		p.ID = id
	}
	for _, g := range s.LoginGroups {
		if g.Issuer == l.Issuer && slices.Contains(groups, g.Value) && !slices.Contains(p.Groups, g.Group) {
			p.Groups = append(p.Groups, g.Group)
		}
	}
	return p
}

// Effective returns a principal with the groups and permissions that the tenant's settings give it now, in addition to its own.
func (s Settings) Effective(p jig.Principal) jig.Principal {
	known := s.Person(p.ID)
	p.Groups = union(p.Groups, known.Groups)
	p.Permissions = union(WithRoles(p, s.Roles).Permissions, known.Permissions, s.Everybody)
	return p
}

func union(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}
