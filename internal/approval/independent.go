package approval

import (
	"fmt"
	"slices"

	"github.com/jig-run/jig"
)

// ReasonNoIndependentApprover is the reason of calls that end because everybody who could approve them asked for them.
const ReasonNoIndependentApprover = "no_independent_approver"

// Electorate is what a tenant knows about who can decide.
type Electorate struct {
	// People are those whom the tenant lists, with their groups and permissions, without those who are disabled.
	People []jig.Principal
	// Disabled lists the people who may not decide.
	Disabled []string
	// Open reports whether approvers may include people whom the tenant cannot list. nil means that they never do.
	Open func(jig.Approvers) bool
	// Owners decide if too few others can; nil for a tenant without owners.
	Owners *jig.Approvers
}

// Independent makes sure that enough people who did not ask for a call can decide it. If the askers leave too few of them, the escalations of the
// requirement count at once, and then the owners of the tenant may decide, too; the reasons of the approval say so. If that does not suffice, the
// error is DENIED with [ReasonNoIndependentApprover]. It changes nothing where that cannot be known.
func Independent(p jig.Pending, e Electorate) (jig.Pending, *jig.Error) {
	terms := termsOf(p)
	if !terms.NotRequester {
		return p, nil
	}
	terms.Requirements = slices.Clone(demands(terms))
	var why []string
	for i, r := range terms.Requirements {
		s := shortage{consent: ConsentOf(p), electorate: e, need: max(1, r.Quorum)}
		if !s.short(r) {
			continue
		}
		before, left := r.Approvers.String(), s.left(r)
		added := ""
		if r, added = s.widen(r); added == "" {
			return p, jig.Errorf(jig.CodeDenied, "%s may not decide this call, because it rests on their word, and %d of %d approvals by %s can come from others",
				Excluded(p), left, s.need, before).WithReason(ReasonNoIndependentApprover).WithHint("have somebody else ask for it, or name more approvers")
		}
		terms.Requirements[i] = r
		why = append(why, fmt.Sprintf("%s may not decide it, which leaves %d of %d approvals by %s, so %s may decide, too", Excluded(p), left, s.need, before, added))
	}
	if len(why) > 0 {
		p.Terms, p.Reasons = &terms, append(slices.Clone(p.Reasons), why...)
	}
	return p, nil
}

// shortage finds out whether enough people can decide for a requirement that needs a number of them.
type shortage struct {
	consent    Consent
	electorate Electorate
	need       int
}

// short reports whether askers keep the requirement from being met. It is false if that cannot be known, and if askers are not the cause.
func (s shortage) short(r jig.Requirement) bool {
	if s.open(r) || s.left(r) >= s.need {
		return false
	}
	all := s
	all.consent.Askers = nil
	return all.left(r) > s.left(r)
}

// open reports whether people whom the tenant cannot list may decide for the requirement now.
func (s shortage) open(r jig.Requirement) bool {
	open := func(a jig.Approvers) bool { return s.electorate.Open != nil && s.electorate.Open(a) }
	return open(r.Approvers) || slices.ContainsFunc(r.Escalate, func(e jig.Escalation) bool { return e.After == 0 && open(e.Approvers) })
}

// left counts the people who can approve for the requirement now. Whoever changed the input does not count, if they would be the only one.
func (s shortage) left(r jig.Requirement) int {
	same := s.consent.persons()
	people := map[string]bool{}
	for _, p := range s.candidates(r) {
		if allows(r, p, 0) && !slices.Contains(s.electorate.Disabled, p.ID) && s.consent.asked(p.ID, same) == "" {
			people[same.of(p.ID)] = true
		}
	}
	if editor := s.consent.editor(); len(people) == 1 && people[same.of(editor)] {
		return 0
	}
	return len(people)
}

// candidates returns the people whom the tenant lists and those whom the requirement names.
func (s shortage) candidates(r jig.Requirement) []jig.Principal {
	list := slices.Clone(s.electorate.People)
	named := slices.Clone(r.Approvers.People)
	for _, e := range r.Escalate {
		named = append(named, e.Approvers.People...)
	}
	for _, id := range named {
		if !slices.ContainsFunc(list, func(p jig.Principal) bool { return p.ID == id }) {
			list = append(list, jig.Principal{ID: id})
		}
	}
	return list
}

// widen lets more people decide at once until there are enough: those of the escalations, one step after the other, and then the owners. It
// returns who may decide in addition, or "" if there are too few people.
func (s shortage) widen(r jig.Requirement) (wider jig.Requirement, added string) {
	wider = r
	wider.Escalate = slices.Clone(r.Escalate)
	for i := range wider.Escalate {
		wider.Escalate[i].After = 0
		if added = wider.Escalate[i].Approvers.String(); !s.short(wider) {
			return wider, added
		}
	}
	if s.electorate.Owners == nil {
		return r, ""
	}
	wider.Escalate = append(wider.Escalate, jig.Escalation{Approvers: *s.electorate.Owners})
	if s.open(wider) || s.left(wider) >= s.need {
		return wider, "the owners of the tenant"
	}
	return r, ""
}
