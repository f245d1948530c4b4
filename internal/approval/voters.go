package approval

import (
	"fmt"
	"math"
	"slices"
	"strings"
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

// askers returns those on whose word a call rests, with the principal on whose behalf it is made.
func askers(p jig.Pending) []jig.Asker {
	started := func(a jig.Asker) bool { return a.Principal == p.RequestedBy && a.By == jig.AskedStarted }
	if p.RequestedBy == "" || slices.ContainsFunc(p.Askers, started) {
		return p.Askers
	}
	return append([]jig.Asker{{Principal: p.RequestedBy, By: jig.AskedStarted}}, p.Askers...)
}

// excluded reports whether an asker may not decide where the terms exclude askers. An author whose name nobody checked excludes nobody,
// because otherwise anybody could keep somebody from deciding. Reviewers are no askers; see [Consent.needsAnother].
func excluded(a jig.Asker) bool {
	return a.By != jig.AskedEdited && a.By != jig.AskedReview && (!a.Claimed || a.By == jig.AskedStarted)
}

// persons says which principals are one person for a call: somebody who acts with a credential that somebody else made, and its maker. It maps
// principals to another principal of the same person.
type persons map[string]string

// of returns the principal that represents a person.
func (p persons) of(id string) string {
	for p[id] != "" {
		id = p[id]
	}
	return id
}

// join makes a principal and the maker of its credential one person. The installation's operator is nobody's maker.
func (p persons) join(id, maker string) {
	if maker == "" || maker == jig.MakerOperator {
		return
	}
	if a, b := p.of(id), p.of(maker); a != b {
		p[a] = b
	}
}

// persons returns who is one person with whom, by what everybody has done so far who has to do with the call.
func (c Consent) persons(more ...jig.Principal) persons {
	same := persons{}
	for _, a := range c.Askers {
		same.join(a.Principal, a.Maker)
	}
	for _, v := range c.Votes {
		same.join(v.By, v.Maker)
	}
	for _, d := range c.Delegations {
		same.join(d.From, d.Maker)
	}
	for _, p := range more {
		same.join(p.ID, p.Maker)
	}
	return same
}

// asked returns why a person may not decide because the call rests on their word, or "". same says who is one person with whom.
func (c Consent) asked(id string, same persons) string {
	if !c.Terms.NotRequester {
		return ""
	}
	for _, a := range c.Askers {
		switch {
		case !excluded(a) || same.of(a.Principal) != same.of(id):
		case a.Principal == id:
			return fmt.Sprintf("%s asked for this call and may not decide it", id)
		default:
			return fmt.Sprintf("%s may not decide this call: %s asked for it, and one of the two made the other's credential", id, a.Principal)
		}
	}
	return ""
}

// needsAnother returns why the approval of one person does not suffice where the terms exclude askers, or "": the call has words of theirs, because they
// changed its input or reviewed earlier calls. same says who is one person with whom.
func (c Consent) needsAnother(person string, same persons) string {
	for _, a := range c.Askers {
		switch {
		case !c.Terms.NotRequester || same.of(a.Principal) != person:
		case a.By == jig.AskedEdited:
			return a.Principal + " changed the input, so somebody else must approve it"
		case a.By == jig.AskedReview && !a.Claimed:
			return a.Principal + " changed an earlier call or said why it was denied, so somebody else must approve this one"
		}
	}
	return ""
}

// WithEditor returns askers with a person who changed the input, instead of those who changed it before; with nobody if editor is the zero
// value.
func WithEditor(list []jig.Asker, editor jig.Principal) []jig.Asker {
	list = slices.DeleteFunc(slices.Clone(list), func(a jig.Asker) bool { return a.By == jig.AskedEdited })
	if editor.ID == "" {
		return list
	}
	return append(list, *said(editor, jig.AskedEdited))
}

// said returns an asker for somebody who puts words into a session.
func said(who jig.Principal, by string) *jig.Asker {
	return &jig.Asker{Principal: who.ID, Claimed: who.Claimed, Maker: who.Maker, By: by}
}

// Requesters says for people on whose word a call rests, e.g. "requested by ci; words by ana (message); changed by ben". It is empty if nobody is
// known.
func Requesters(p jig.Pending) string {
	var asked, words, changed []string
	for _, a := range askers(p) {
		name := a.Principal
		switch a.By {
		case jig.AskedStarted:
			asked = appendNew(asked, name)
			continue
		case jig.AskedEdited:
			changed = appendNew(changed, name)
			continue
		}
		how := a.By
		if a.Claimed {
			how += ", claimed"
		}
		words = appendNew(words, name+" ("+how+")")
	}
	var parts []string
	for _, part := range []struct {
		says string
		who  []string
	}{{"requested by ", asked}, {"words by ", words}, {"changed by ", changed}} {
		if len(part.who) > 0 {
			parts = append(parts, part.says+strings.Join(part.who, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// Excluded names those who may not decide about a call because they asked for it, e.g. "ci or ana". It is empty if the terms exclude nobody.
func Excluded(p jig.Pending) string {
	if !termsOf(p).NotRequester {
		return ""
	}
	var names []string
	for _, a := range askers(p) {
		if excluded(a) {
			names = appendNew(names, a.Principal)
		}
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

func appendNew(list []string, one string) []string {
	if slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}
