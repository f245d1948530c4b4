package tenancy

import (
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
)

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
