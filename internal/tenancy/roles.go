package tenancy

import (
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/protocol"
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

// Operate says how somebody may do something to a schedule, whichever way it is asked for: its own principal and whoever operates do it, only those
// who manage take it over, and anybody else's trigger is a start of their own. operates and manages say what the credential allows. The error is
// NOT_PERMITTED.
func Operate(r protocol.OperateRequest, operates, manages bool) (protocol.OperateAnswer, error) {
	mine := r.Owner != "" && r.Owner == r.By
	switch {
	case r.Action == protocol.ScheduleTakeOver && !manages:
		return protocol.OperateAnswer{}, jig.Errorf(jig.CodeNotPermitted, "only owners take over schedules").WithReason("scope").
			WithHint("the permission " + PermissionManage + " allows it")
	case r.Action == protocol.ScheduleTakeOver, r.Action == protocol.ScheduleCreate, mine, operates:
		return protocol.OperateAnswer{}, nil
	case r.Action == protocol.ScheduleTrigger:
		return protocol.OperateAnswer{Own: true}, nil
	}
	return protocol.OperateAnswer{}, jig.Errorf(jig.CodeNotPermitted, "schedule %s acts for somebody else, so you cannot %s it", r.Schedule, jig.Known(r.Action)).
		WithReason("scope").WithHint("the permission " + PermissionOperate + " allows it; the schedule's own principal needs none")
}

// MayResume returns an error unless somebody may end a pause, whichever way it is asked for. Whoever set it may. Anybody else needs to decide, and
// nobody ends the pause of a session that acts for them, unless the tenant has nobody else. owner is the
// principal of the paused session, and decides says what the credential allows. The error is NOT_PERMITTED.
func (s Settings) MayResume(p jig.Pause, by, owner string, decides bool) error {
	switch {
	case p.By == by:
		return nil
	case !decides:
		return jig.Errorf(jig.CodeNotPermitted, "somebody else set this pause").WithReason("scope").
			WithHint("the permission " + PermissionDecide + ", or an API key with the scope decide, allows ending it")
	case p.Scope == jig.PauseSession && owner == by && !s.OnlyPerson(by):
		return jig.Errorf(jig.CodeNotPermitted, "somebody else paused this session, which acts for you").WithReason("own_session").
			WithHint("ask whoever paused it, or somebody else who decides")
	}
	return nil
}

// Allows returns what a server found out about a credential or, where no server asks, whether a principal has a permission.
func (s Settings) Allows(said *bool, who jig.Principal, permission string) bool {
	if said != nil {
		return *said
	}
	return s.Effective(who).Holds(permission)
}

// Voters returns what is known about the people who decide in the tenant.
func (s Settings) Voters() approval.Voters {
	v := approval.Voters{Proof: s.Proof, Disabled: s.Disabled, Open: s.open}
	known := map[string]jig.Principal{}
	for _, p := range s.People {
		known[p.ID] = p
	}
	for _, id := range s.Listed() {
		p := known[id]
		p.ID, p.Permissions = id, union(p.Permissions, s.Everybody)
		v.People = append(v.People, p)
	}
	if s.Owners != nil {
		v.Owners = &s.Owners.Approvers
	}
	return v
}

// OthersApprove reports whether, by the tenant's default terms, somebody could approve a call that rests on the word of a principal. Where the
// principal is the only person, they may do so themselves.
func (s Settings) OthersApprove(who jig.Principal, now time.Time) bool {
	if s.OnlyPerson("") || s.OnlyPerson(who.ID) {
		return true
	}
	_, none := s.Voters().Independent(jig.Pending{
		RequestedAt: now, Terms: &jig.Terms{NotRequester: true}, Askers: []jig.Asker{{Principal: who.ID, Maker: who.Maker, By: jig.AskedMessage}},
	}, now)
	return none == nil
}

// open reports whether approvers may include people whom the document does not list: an identity provider or a key that signs for everybody may
// know them.
func (s Settings) open(a jig.Approvers) bool {
	joined := func(group string) bool {
		return slices.ContainsFunc(s.LoginGroups, func(g LoginGroup) bool { return g.Group == group })
	}
	if a.Anybody() {
		return !s.ProofWanted() || len(s.LoginGroups) > 0 || s.shared() || jig.Principal{Permissions: s.Everybody}.Holds(PermissionDecide)
	}
	if a.Permission == "" {
		return slices.ContainsFunc(a.Groups, joined)
	}
	holds := func(r Role) bool {
		return jig.Principal{Permissions: r.Permissions}.Holds(a.Permission) && slices.ContainsFunc(r.Groups, joined)
	}
	return slices.ContainsFunc(a.Groups, joined) || jig.Principal{Permissions: s.Everybody}.Holds(a.Permission) || slices.ContainsFunc(s.Roles, holds)
}

// shared reports whether a key of the tenant signs for everybody, so that people can decide whom only a portal knows.
func (s Settings) shared() bool {
	for _, k := range s.Keys {
		if k.Principal == "" && s.ProofOf(k).AtLeast(s.Proof) {
			return true
		}
	}
	return false
}
