package policy

import (
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/tenancy"
)

// ByDefault returns the ruling with the default terms of a tenant: where it has several people, those on whose word the call rests may not decide
// it, unless a rule lets them (not_requester: false) and none forbids it. Questions are excepted, because the person in the conversation answers
// them. If the tenant has one person, that person may decide.
func (r Ruling) ByDefault(s tenancy.Settings, tool jig.Tool, askers []jig.Asker) Ruling {
	switch {
	case r.Verdict != jig.VerdictAsk, tool.Implementation == jig.ImplementationPerson:
		return r
	case r.Terms.NotRequester:
		r.Terms.RequesterMay = ""
		return r
	}
	only := s.OnlyPerson("") || slices.ContainsFunc(askers, func(a jig.Asker) bool { return s.OnlyPerson(a.Principal) })
	if only {
		r.Terms.RequesterMay = ""
	}
	r.Terms.NotRequester = !only && r.Terms.RequesterMay == ""
	r.Terms.ByDefault = r.Terms.NotRequester
	return r
}
