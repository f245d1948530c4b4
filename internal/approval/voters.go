package approval

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jig-run/jig"
)

// Voters says how a tenant knows the people who decide, which determines whose votes and delegations count.
type Voters struct {
	// Proof is the weakest proof with which votes and delegations count.
	Proof jig.Proof
	// People are the people whom the tenant knows, with their groups and permissions. Others have neither.
	People []jig.Principal
	// Disabled lists the people whose votes and delegations do not count.
	Disabled []string
	// Open reports whether approvers may include people whom the tenant cannot list. nil means that only those do who include anybody.
	Open func(jig.Approvers) bool
	// Owners decide if too few others can; nil for a tenant without owners.
	Owners *jig.Approvers
}

// Counted returns the approval with only the votes and delegations that count now, and only for the requirements that their authors may
// decide for now: as approvers or through delegations that count themselves. So a vote ends with the delegation that it rests on, and a
// delegation with the delegate. What is stored with a vote or a delegation can only limit it further.
func (v Voters) Counted(p jig.Pending, now time.Time) jig.Pending {
	proof := v.Proof.Stronger(termsOf(p).Proof)
	votes, delegations := p.Votes, p.Delegations
	p.Votes, p.Delegations = nil, nil
	for _, d := range delegations {
		d.Counts = v.counts(p, jig.Principal{ID: d.From, Maker: d.Maker}, d.Counts, now)
		if len(d.Counts) > 0 && proofOf(d.Claimed, d.Proof).AtLeast(proof) && !slices.Contains(v.Disabled, d.To) {
			p.Delegations = append(p.Delegations, d)
		}
	}
	for _, vote := range votes {
		vote.Counts = v.counts(p, jig.Principal{ID: vote.By, Maker: vote.Maker}, vote.Counts, now)
		if len(vote.Counts) > 0 && proofOf(vote.Claimed, vote.Proof).AtLeast(proof) {
			p.Votes = append(p.Votes, vote)
		}
	}
	return p
}

// counts returns which of the given requirements a principal may decide for now.
func (v Voters) counts(p jig.Pending, who jig.Principal, given []int, now time.Time) []int {
	known := v.person(who.ID)
	known.Maker = who.Maker
	return v.entitled(p, known, given, now)
}

// entitled is like counts for a principal as the tenant knows it.
func (v Voters) entitled(p jig.Pending, who jig.Principal, given []int, now time.Time) []int {
	if slices.Contains(v.Disabled, who.ID) {
		return nil
	}
	entitled, _ := ConsentOf(p).Entitled(who, now)
	return slices.DeleteFunc(entitled, func(i int) bool { return !slices.Contains(given, i) })
}

// person returns a principal as the tenant knows it.
func (v Voters) person(id string) jig.Principal {
	if i := slices.IndexFunc(v.People, func(p jig.Principal) bool { return p.ID == id }); i >= 0 {
		return v.People[i]
	}
	return jig.Principal{ID: id}
}

// ReasonNoIndependentApprover is the reason of calls that end because too few people could approve them without those who asked.
const ReasonNoIndependentApprover = "no_independent_approver"

// Independent makes sure that a call which its askers may not decide can still be approved: for each requirement, enough people have approved it
// or may do so at the time now. If there are too few, the escalations of the requirement count at once, and then the owners of the tenant may
// decide, too; the reasons of the approval and of its escalations say so. If that does not suffice, the error is DENIED with
// [ReasonNoIndependentApprover]. Nothing changes where people may decide whom the tenant cannot list.
//
// The approval must have only the votes and delegations that count; see [Voters.Counted].
func (v Voters) Independent(p jig.Pending, now time.Time) (jig.Pending, *jig.Error) {
	if !termsOf(p).NotRequester {
		return p, nil
	}
	for i := range demands(termsOf(p)) {
		if v.enough(p, i, now) {
			continue
		}
		wider, ok := v.widen(p, i, now)
		if !ok {
			return p, jig.Errorf(jig.CodeDenied, "nobody can approve this call: %s", v.shortage(p, i, now)).
				WithReason(ReasonNoIndependentApprover).WithHint("have somebody else ask for it, or name more approvers")
		}
		p = wider
	}
	return p, nil
}

// Wider is like [Voters.Independent], but changes nothing if too few people could decide.
func (v Voters) Wider(p jig.Pending, now time.Time) jig.Pending {
	if wider, none := v.Independent(p, now); none == nil {
		return wider
	}
	return p
}

// widen lets more people decide at once until there are enough for a requirement: those of its escalations, one step after the other, and then the
// owners. ok is false if there are too few people.
func (v Voters) widen(p jig.Pending, requirement int, now time.Time) (wider jig.Pending, ok bool) {
	terms, why := termsOf(p), v.shortage(p, requirement, now)
	terms.Requirements = slices.Clone(demands(terms))
	r := &terms.Requirements[requirement]
	r.Escalate = slices.Clone(r.Escalate)
	wider = p
	wider.Terms = &terms
	for i := range r.Escalate {
		e := &r.Escalate[i]
		if e.Counts(now.Sub(p.RequestedAt)) {
			continue
		}
		e.Reason = why
		if v.enough(wider, requirement, now) {
			wider.Reasons = append(slices.Clone(p.Reasons), fmt.Sprintf("%s; so %s may decide, too", why, e.Approvers))
			return wider, true
		}
	}
	if v.Owners == nil {
		return p, false
	}
	r.Escalate = append(r.Escalate, jig.Escalation{Approvers: *v.Owners, Reason: why})
	wider.Reasons = append(slices.Clone(p.Reasons), why+"; so the owners of the tenant may decide, too")
	return wider, v.enough(wider, requirement, now)
}

// shortage says how many approvals can be given for a requirement.
func (v Voters) shortage(p jig.Pending, requirement int, now time.Time) string {
	r := demands(termsOf(p))[requirement]
	without := ""
	if asked := Excluded(p); asked != "" {
		without = " without " + asked + ", on whose word it rests"
	}
	left, consent := v.left(p, requirement, now, math.MaxInt), ConsentOf(p)
	for who := range left {
		if why := consent.needsAnother(who, consent.persons()); why != "" && len(left) == 1 {
			without += " (" + why + ")"
		}
	}
	return fmt.Sprintf("only %d of %d approvals by %s can be given%s", len(left), need(p, r), r.Approvers, without)
}

// Ruled returns terms as a policy rules, without those who may decide only because too few others can.
func Ruled(t jig.Terms) jig.Terms {
	t.Requirements = slices.Clone(t.Requirements)
	for i := range t.Requirements {
		r := &t.Requirements[i]
		r.Escalate = slices.DeleteFunc(slices.Clone(r.Escalate), func(e jig.Escalation) bool { return e.Reason != "" && e.After == 0 })
		for k := range r.Escalate {
			r.Escalate[k].Reason = ""
		}
	}
	return t
}

// need returns how many people must approve for a requirement. One answer settles a question.
func need(p jig.Pending, r jig.Requirement) int {
	if p.Kind == jig.PendingQuestion {
		return 1
	}
	return max(1, r.Quorum)
}

// enough reports whether enough people have approved for a requirement or may do so now, and one of them suffices; see [Consent.needsAnother].
func (v Voters) enough(p jig.Pending, requirement int, now time.Time) bool {
	if v.unlisted(p, requirement, now) {
		return true
	}
	needed, consent := need(p, demands(termsOf(p))[requirement]), ConsentOf(p)
	left := v.left(p, requirement, now, max(needed, 2))
	if len(left) != 1 || needed > 1 || p.Kind == jig.PendingQuestion {
		return len(left) >= needed
	}
	for only := range left {
		if consent.needsAnother(only, consent.persons()) == "" {
			return true
		}
	}
	for i := range demands(consent.Terms) {
		if v.unlisted(p, i, now) {
			return true
		}
		for who := range v.left(p, i, now, 2) {
			left[who] = true
		}
	}
	return len(left) > 1
}

// unlisted reports whether people whom the tenant cannot list may decide for a requirement at a time.
func (v Voters) unlisted(p jig.Pending, requirement int, at time.Time) bool {
	open := v.Open
	if open == nil {
		open = jig.Approvers.Anybody
	}
	r := demands(termsOf(p))[requirement]
	return open(r.Approvers) || slices.ContainsFunc(r.Escalate, func(e jig.Escalation) bool { return e.Counts(at.Sub(p.RequestedAt)) && open(e.Approvers) })
}

// left returns people who have approved for a requirement or may do so at a time, each under one name, but at most as many as most. They are among
// those whom the tenant lists and those whom the requirement or a delegation names.
func (v Voters) left(p jig.Pending, requirement int, at time.Time, most int) map[string]bool {
	r := demands(termsOf(p))[requirement]
	named := slices.Clone(r.Approvers.People)
	for _, e := range r.Escalate {
		named = append(named, e.Approvers.People...)
	}
	for _, d := range p.Delegations {
		named = append(named, d.To)
	}
	candidates := slices.Clone(v.People)
	for _, id := range named {
		candidates = append(candidates, v.person(id))
	}
	same, people := ConsentOf(p).persons(), map[string]bool{}
	for _, who := range candidates {
		if len(people) == most {
			break
		}
		if len(v.entitled(p, who, []int{requirement}, at)) > 0 {
			people[same.of(who.ID)] = true
		}
	}
	return people
}
